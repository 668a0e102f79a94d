"""I/O against collective calls: how long do they take before, during and after each rank writes?

The program, the turns and the gathering are those of overlap.py; here each step has an allreduce
after its barrier, there are steps after the file is there, and what is asked for is percentiles,
for several numbers of ranks and sizes.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Optional

from brigade.bench import overlap
from brigade.bench.cache.measure import takes_direct
from brigade.bench.checkpoint.summary import quantile
from brigade.bench.overlap import Settings

VARIANTS = {
    "plain": "write through the page cache; the kernel writes it back when it likes",
    "fsync": "write through the page cache and fsync, in a thread",
    "direct": "O_DIRECT and fsync, in a thread",
    "async": "Brigade, in the background, as fast as it goes",
    "yielding": "Brigade, in the background, giving way to the calls",
    "capped": "Brigade, in the background, at most --rate",
}
PHASES = ("before", "during", "after")
CALLS = ("barrier", "allreduce")
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
PIECE = 4096  # bytes, of which O_DIRECT writes multiples
CAP = 0.8  # of what async reaches: the rate of `capped`, unless one is given
MOST_TIMES, MOST_LOST = 2.0, 0.2  # what is wanted of `yielding`
Progress = Optional[Callable[[int, int], None]]
Sample = dict[str, Any]


def absent(folder: Path, sizes: Sequence[int]) -> dict[str, str]:
    """The variants that cannot be measured in that folder, and why."""
    if any(size % PIECE for size in sizes):
        return {"direct": f"it writes multiples of {PIECE} bytes (--size)"}
    if not takes_direct(folder):
        return {"direct": "this file system takes no O_DIRECT"}
    return {}


def mode_and_hints(name: str, settings: Settings) -> tuple[str, str]:
    """How the program writes as one of VARIANTS."""
    if name in ("async", "yielding", "capped"):
        rated = settings if name == "capped" else dataclasses.replace(settings, rate=0)
        return "async", overlap.behind(rated, settings.slowdown if name == "yielding" else 1000)
    return name, "sync=yes"


def measure(
    program: Path, variants: Sequence[str], settings: Settings, progress: Progress = None
) -> list[Sample]:
    """The samples of all rounds of one cell (ranks, size). Where `capped` has no rate, it gets CAP
    of what async reaches in a turn of its own, which is not kept."""
    if "capped" in variants and not settings.rate:
        alone = dataclasses.replace(settings, rounds=1)
        free = overlap.measure(program, ["async"], alone, None, mode_and_hints)[0]
        rate = int(CAP * settings.bytes / free["done"])
        settings = dataclasses.replace(settings, rate=max(rate, 1))
    found = overlap.measure(program, variants, settings, progress, mode_and_hints)
    where = {"ranks": settings.ranks, "bytes": settings.bytes}
    return [
        {**where, **({"rate": settings.rate} if one["variant"] == "capped" else {}), **one}
        for one in found
    ]


def calls(sample: Sample, call: str, phase: str) -> list[float]:
    """Microseconds of each call of a phase."""
    prefix = "" if call == "barrier" else "reduce_"
    if phase != "during":
        values: list[float] = sample[f"{prefix}{phase}_us"]
        return values
    whole = {**sample, "within_us": sample[f"{prefix}within_us"]}
    return overlap.affected(whole)


def summarize(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """An object for each cell: percentiles of all rounds' calls together, in microseconds; rates;
    and how many times as long the 99th percentile is as in the quiet before."""
    cells = sorted({(one["ranks"], one["bytes"]) for one in samples})
    return [
        _cell(ranks, size, [s for s in samples if (s["ranks"], s["bytes"]) == (ranks, size)])
        for ranks, size in cells
    ]


def _cell(ranks: int, size: int, samples: Sequence[Sample]) -> dict[str, Any]:
    names = [name for name in VARIANTS if any(one["variant"] == name for one in samples)]
    found = [_variant(name, [s for s in samples if s["variant"] == name]) for name in names]
    cell: dict[str, Any] = {"ranks": ranks, "bytes": size, "variants": found}
    by_name = {one["variant"]: one for one in found}
    if "async" in by_name and "yielding" in by_name:
        times = by_name["yielding"]["barrier"]["times"]
        lost = 1 - by_name["yielding"]["mib_s"] / by_name["async"]["mib_s"]
        reached = times <= MOST_TIMES and lost <= MOST_LOST
        cell["yielding"] = {"times": times, "lost": lost, "reached": reached}
    return cell


def _variant(name: str, samples: Sequence[Sample]) -> dict[str, Any]:
    found: dict[str, Any] = {"variant": name, "n": len(samples)}
    ranks, size = samples[0]["ranks"], samples[0]["bytes"]
    found["mib_s"] = statistics.median(ranks * size / 2**20 / one["done"] for one in samples)
    if "rate" in samples[0]:
        found["rate"] = samples[0]["rate"]
    for call in CALLS:
        phases = {}
        for phase in PHASES:
            values = [us for one in samples for us in calls(one, call, phase)]
            phases[phase] = {key: quantile(values, share) for key, share in SHARES.items()}
            phases[phase]["n"] = len(values)
        each = [times(one, call) for one in samples]
        found[call] = {
            **phases,
            "times": phases["during"]["p99"] / max(phases["before"]["p99"], 1.0),
            "times_low": min(each),
            "times_high": max(each),
        }
    return found


def times(sample: Sample, call: str) -> float:
    """The 99th percentile during the write, by that before it, of one turn."""
    during, before = (quantile(calls(sample, call, phase), 0.99) for phase in ("during", "before"))
    return during / max(before, 1.0)
