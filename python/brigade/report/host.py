"""The machine that figures were taken on."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

from brigade import __version__


def host() -> dict[str, Any]:
    """The machine, the kernel, and the version and commit of Brigade (None: not a working tree)."""
    try:
        commit = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
        ).stdout.strip()  # fmt: skip
    except OSError:
        commit = ""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        models = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "cpu": models[0] if models else platform.machine(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "brigade": __version__,
        "commit": commit or None,
    }
