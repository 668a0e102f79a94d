"""Raw samples of a benchmark, with what is needed to judge them: host, commit, time, versions."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

from brigade.report.host import host


def save(path: Path, name: str, settings: dict[str, Any], samples: Any, **more: Any) -> None:
    """Write the samples of benchmark `name` as JSON; `more` stands beside them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"benchmark": name, "host": host(), "settings": settings, "samples": samples, **more}
    path.write_text(_dense(json.dumps(content, indent=1)) + "\n", encoding="utf-8")


def as_table(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Many samples that all say the same as {"columns", "rows"}."""
    columns = list(samples[0]) if samples else []
    return {"columns": columns, "rows": [[one[name] for name in columns] for one in samples]}


def as_rows(samples: list[dict[str, Any]], *more: str) -> dict[str, Any]:
    """Many samples of shared files as {"columns", "rows"}: a list for each, seconds by phase;
    `more` keys have a column as well."""
    names = ["pattern", "record", "ranks", "variant", "component", "round", *more]
    phases = ["open", "move", "close", "total"]
    ways = [way for way in ("write", "read") if samples and samples[0].get(way)]
    columns = names + [f"{way}_{phase}" for way in ways for phase in phases]
    rows = [
        [one[name] for name in names] + [one[way][phase] for way in ways for phase in phases]
        for one in samples
    ]
    return {"columns": columns, "rows": rows}


def from_rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    """The samples that as_rows was given, as far as it keeps them."""
    samples = []
    for row in table["rows"]:
        one: dict[str, Any] = {}
        for name, value in zip(table["columns"], row):
            way, _, phase = name.partition("_")
            if phase:
                one.setdefault(way, {})[phase] = value
            else:
                one[name] = value
        samples.append(one)
    return samples


def _dense(text: str) -> str:
    """JSON in which a list of plain values stands on one line."""
    return re.sub(
        r"\[\n\s+([^\[\]{}]*?)\n\s+\]",
        lambda found: "[" + re.sub(r"\n\s+", " ", found[1]) + "]",
        text,
    )


def median(samples: list[dict[str, Any]], key: str, **where: Any) -> float | None:
    """Median of `key` over the samples that match `where`; None if there are none."""
    values = [
        sample[key]
        for sample in samples
        if sample.get(key) is not None and all(sample[k] == v for k, v in where.items())
    ]
    return statistics.median(values) if values else None
