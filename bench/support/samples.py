"""Raw samples of a benchmark, with what is needed to judge them: host, commit, time, versions."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any


def host() -> dict[str, Any]:
    """The machine, the kernel and the commit that samples were taken with."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        models = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "cpu": models[0] if models else platform.machine(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "commit": commit or None,
    }


def save(path: Path, name: str, settings: dict[str, Any], samples: list[dict[str, Any]]) -> None:
    """Write the samples of benchmark `name` as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"benchmark": name, "host": host(), "settings": settings, "samples": samples}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def median(samples: list[dict[str, Any]], key: str, **where: Any) -> float | None:
    """Median of `key` over the samples that match `where`; None if there are none."""
    values = [
        sample[key]
        for sample in samples
        if sample.get(key) is not None and all(sample[k] == v for k, v in where.items())
    ]
    return statistics.median(values) if values else None
