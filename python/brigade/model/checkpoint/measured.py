"""Seconds of measured writes, from what benchmarks leave: text in, samples out.

Understood: JSON of `brigade bench checkpoint --json`, the files of bench/results that hold such
samples as rows, and plain text with one number of seconds after another ('#' begins a comment).

A sample of a benchmark is the slowest of its ranks. Several cells (pattern, record) have several
means: each sample is divided by its cell's mean, and multiplied by the mean of all, so that what is
left is how much writes of the same kind differ. A mean lies amid its own few samples: their
distances from it (of the logarithms) are lengthened to those of one cell with as many as all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from brigade.errors import BrigadeError
from brigade.load_json import load_json

HINT = "give JSON of `brigade bench checkpoint --json`, or a file with one number of seconds a line"


@dataclass(frozen=True)
class Measured:
    seconds: tuple[float, ...]
    of: int  # ranks of which each is the slowest
    what: str


def parse(text: str, variant: str = "brigade") -> Measured:
    """BrigadeError if there are no such samples."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            report = load_json(text)
        except ValueError as error:
            raise BrigadeError(f"not JSON: {error}", hint=HINT) from error
        return _report(report, variant)
    words = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
    try:
        seconds = tuple(float(word) for word in words)
    except ValueError as error:
        raise BrigadeError(f"{error}", hint=HINT) from error
    return Measured(_checked(seconds), 1, f"{len(seconds)} writes")


def _report(report: Any, variant: str) -> Measured:
    if isinstance(report, list):
        report = {"samples": report}
    rows = []
    for name in ("samples", "steady_samples"):
        try:
            rows += _rows(report.get(name, []))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BrigadeError(f"'{name}' holds no samples of writes", hint=HINT) from error
    there = sorted({row[0] for row in rows})
    found = [row for row in rows if row[0] == variant]
    if not found:
        raise BrigadeError(
            f"no writes of '{variant}'",
            hint=f"--variant is one of {', '.join(there)}" if there else HINT,
        )
    ranks = max(row[1] for row in found)
    cells: dict[Any, list[float]] = {}
    for _, width, cell, seconds in found:
        if width == ranks:
            cells.setdefault(cell, []).append(seconds)
    several = {cell: values for cell, values in cells.items() if len(values) > 1}
    _checked(tuple(value for values in several.values() for value in values))
    count = sum(map(len, several.values()))
    mean = math.fsum(value for values in several.values() for value in values) / count
    scaled = [mean * one for values in several.values() for one in _differences(values, count)]
    what = f"{count} writes of '{variant}' with {ranks} ranks, {len(several)} kinds"
    return Measured(tuple(scaled), ranks, what)


def _differences(values: list[float], count: int) -> list[float]:
    """How much the samples of a cell differ, in the mean 1, if there are `count` in all cells."""
    few = len(values)
    longer = math.sqrt(few / (few - 1) * (count - 1) / count)
    middle = math.fsum(map(math.log, values)) / few
    apart = [math.exp(longer * (math.log(value) - middle)) for value in values]
    return [one * few / math.fsum(apart) for one in apart]


def _rows(samples: Any) -> list[tuple[str, int, Any, float]]:
    """(variant, ranks, cell, seconds) of each sample."""
    if isinstance(samples, dict):
        names = samples["columns"]
        samples = [dict(zip(names, row)) for row in samples["rows"]]
    found = []
    for one in samples:
        seconds = one["write"]["total"] if "write" in one else one["write_total"]
        cell = (one["pattern"], one["record"], one.get("component"))
        found.append((str(one["variant"]), int(one["ranks"]), cell, float(seconds)))
    return found


def _checked(seconds: tuple[float, ...]) -> tuple[float, ...]:
    if not seconds or not all(math.isfinite(one) and one > 0 for one in seconds):
        raise BrigadeError("no seconds above 0", hint=HINT)
    return seconds
