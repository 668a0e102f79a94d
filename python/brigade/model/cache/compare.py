"""A simulation beside what was measured: how far apart are they? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LEAST_S = 0.1  # what took less says more of the processor and its scheduler than of the cache
KINDS = ("write", "fsync", "read", "direct")


@dataclass(frozen=True)
class Phase:
    """Seconds of a step: of its calls and fsyncs, without sleeps."""

    name: str
    kind: str
    measured: float
    simulated: float

    @property
    def error(self) -> float:
        """Of the simulation, by what was measured."""
        return self.simulated / self.measured - 1


@dataclass(frozen=True)
class Look:
    """Shares of a file that were found cached: of all of it, and of each half."""

    name: str
    measured: tuple[float, float, float]
    simulated: tuple[float, float, float]


def busy(step: dict[str, Any]) -> float:
    """Seconds of a step's calls and fsyncs."""
    if "samples" not in step:
        return float(step.get("seconds", 0.0))
    return float(sum(one[1] for one in [*step["samples"], *step.get("fsyncs", [])]))


def phases(
    direct: Sequence[bool], measured: Sequence[dict[str, Any]], simulated: Sequence[dict[str, Any]]
) -> list[Phase]:
    """All that took long enough. `direct`: of each step, whether it goes by the cache."""
    found = []
    for straight, one, other in zip(direct, measured, simulated):
        kind = "direct" if straight else one["operation"]
        if kind in KINDS and busy(one) >= LEAST_S:
            found.append(Phase(one["name"], kind, busy(one), busy(other)))
    return found


def looks(measured: Sequence[dict[str, Any]], simulated: Sequence[dict[str, Any]]) -> list[Look]:
    pairs = zip(measured, simulated)
    return [Look(a["name"], _shares(a), _shares(b)) for a, b in pairs if a["operation"] == "look"]


def cached(step: dict[str, Any], first: float = 0.0, past: float = 1.0) -> float:
    """Share of a file, or of a part of it, that a `look` found cached."""
    parts, pages = step["parts"], step["pages"]
    low, high = round(first * len(parts)), round(past * len(parts))
    return float(sum(parts[low:high]) / max(1.0, pages * (high - low) / len(parts)))


def _shares(step: dict[str, Any]) -> tuple[float, float, float]:
    return cached(step), cached(step, 0, 0.5), cached(step, 0.5, 1)


def summary(found: Sequence[Phase]) -> dict[str, dict[str, float]]:
    """Of each kind of phase, and of "cache" (all that go through it): how many, and the mean and
    the largest absolute error."""
    groups = {kind: [one for one in found if one.kind == kind] for kind in KINDS}
    groups["cache"] = [one for one in found if one.kind != "direct"]
    return {
        name: {
            "phases": len(group),
            "mean": sum(abs(one.error) for one in group) / len(group),
            "max": max(abs(one.error) for one in group),
        }
        for name, group in groups.items()
        if group
    }
