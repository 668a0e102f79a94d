"""Raw samples of a benchmark, with what is needed to judge them: host, commit, time, versions."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from brigade.report.host import host


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
