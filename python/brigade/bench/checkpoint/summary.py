"""Medians, quartiles and ratios of the samples of a checkpoint benchmark.

A ratio says how many times faster Brigade is than a peer: the peer's median seconds by Brigade's,
both of the jobs in which both ran. Its interval is a bootstrap over rounds, each drawn with both.
Where a sample says how many bytes it moved, seconds are those of a byte.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import Any

Sample = dict[str, Any]
DIRECTIONS = ("write", "read")
_DRAWS = 1000
_PHASES = ("open", "move", "close")


def summarize(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """One object for each cell, in the order in which they are met in the schedule's plan."""
    keys = sorted({cell_of(s) for s in samples}, key=lambda key: (key[2], key[0], key[1]))
    return [_cell(key, [s for s in samples if cell_of(s) == key]) for key in keys]


def cell_of(sample: Sample) -> tuple[str, int, int]:
    return sample["pattern"], sample["record"], sample["ranks"]


def seconds(samples: Sequence[Sample], direction: str, phase: str = "total") -> list[float]:
    return [s[direction][phase] for s in samples if s.get(direction)]


def subject(names: Sequence[str]) -> str | None:
    """The variant that ratios are of: the first of Brigade's."""
    return next((name for name in names if name.partition(":")[0] == "brigade"), None)


def _cell(key: tuple[str, int, int], samples: Sequence[Sample]) -> dict[str, Any]:
    names = list(dict.fromkeys(sorted(s["variant"] for s in samples)))
    mine = subject(names)
    cell = {
        "pattern": key[0],
        "record": key[1],
        "ranks": key[2],
        "bytes": samples[0]["bytes"],
        "variants": {},
        "ratios": {},
    }
    for name in names:
        same = [s for s in samples if s["variant"] == name]
        cell["variants"][name] = {d: _spread(same, d) for d in DIRECTIONS if seconds(same, d)}
        if mine and name != mine:
            cell["ratios"][name] = {
                d: ratio(samples, mine, name, d) for d in DIRECTIONS if seconds(same, d)
            }
    return cell


def _spread(samples: Sequence[Sample], direction: str) -> dict[str, float]:
    values = seconds(samples, direction)
    middle = statistics.median(values)
    low, high, first, third = (quantile(values, q) for q in (0.1, 0.9, 0.25, 0.75))
    phases = {phase: statistics.median(seconds(samples, direction, phase)) for phase in _PHASES}
    return {
        "n": len(values),
        "median": middle,
        "q1": first,
        "q3": third,
        "p10": low,
        "p90": high,
        "spread": (high - low) / middle,
        **phases,
    }


def quantile(values: Sequence[float], share: float) -> float:
    """Linear between the values that lie nearest."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def ratio(samples: Sequence[Sample], mine: str, peer: str, direction: str) -> dict[str, float]:
    """{"ratio", "low", "high"}: how many times faster `mine` is, with a 95% interval."""
    pairs = _pairs(samples, mine, peer, direction)
    chance = random.Random(len(pairs))
    draws = sorted(_faster(chance.choices(pairs, k=len(pairs))) for _ in range(_DRAWS))
    return {"ratio": _faster(pairs), "low": quantile(draws, 0.025), "high": quantile(draws, 0.975)}


def _pairs(
    samples: Sequence[Sample], mine: str, peer: str, direction: str
) -> list[tuple[float, float]]:
    """(cost of `mine`, of `peer`) of each job that had both; where none can, of each round."""
    by_job: dict[tuple[str, int], dict[str, float]] = {}
    by_round: dict[int, dict[str, float]] = {}
    for sample in samples:
        if sample["variant"] in (mine, peer):
            cost = {sample["variant"]: _cost(sample[direction])}
            by_job.setdefault((sample["component"], sample["round"]), {}).update(cost)
            by_round.setdefault(sample["round"], {}).update(cost)
    pairs = [job for job in by_job.values() if len(job) == 2]
    pairs = pairs or [job for job in by_round.values() if len(job) == 2]
    return [(pair[mine], pair[peer]) for pair in pairs]


def _cost(moved: dict[str, float]) -> float:
    return moved["total"] / moved.get("bytes", 1)


def _faster(pairs: Sequence[tuple[float, float]]) -> float:
    return statistics.median(pair[1] for pair in pairs) / statistics.median(
        pair[0] for pair in pairs
    )
