"""Values of a demand and a system from measured start-ups at a few widths.

Requests come from counters, by least squares (they are counted, so two widths are enough).
Seconds come from the slowest rank; the values that are wanted are those whose predictions differ
least from the measured ones, as ratios, in the mean (squares would follow a single disturbed run):
a search by Nelder and Mead's simplex over logarithms.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from brigade.model import simulate
from brigade.model.demand import Demand
from brigade.model.startup import Phase
from brigade.model.system import System

EVENTS = 1_000
STARTS = 5
Build = Callable[[Demand, System, int, int], Phase]


@dataclass(frozen=True)
class Sample:
    """One measured width; of several runs, their medians."""

    nodes: int
    ranks: int
    seconds: float
    requests: float = 0.0
    kinds: dict[str, float] = field(default_factory=dict)


def first_and_further(samples: Sequence[Sample]) -> tuple[dict[str, float], dict[str, float]]:
    """Requests by kind of a node's first rank and of each further one, from counts at some widths.

    Least squares of  count = nodes x first + (ranks - nodes) x further, neither below 0.
    """
    first, further = {}, {}
    for kind in sorted({kind for one in samples for kind in one.kinds}):
        rows = [(one.nodes, one.ranks - one.nodes, one.kinds.get(kind, 0.0)) for one in samples]
        a, b = _plane(rows)
        if a > 0:
            first[kind] = a
        if b > 0:
            further[kind] = b
    return first, further


def _plane(rows: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """a, b >= 0 of z = a x + b y with the least sum of squares."""
    xx, xy, yy = (sum(r[i] * r[j] for r in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    xz, yz = (sum(r[i] * r[2] for r in rows) for i in (0, 1))
    determinant = xx * yy - xy * xy
    if determinant > 1e-12 * xx * yy:
        a, b = (xz * yy - yz * xy) / determinant, (yz * xx - xz * xy) / determinant
        if a >= 0 and b >= 0:
            return a, b
    only_a, only_b = (xz / xx if xx else 0.0), (yz / yy if yy else 0.0)

    def squares(a: float, b: float) -> float:
        return sum((a * x + b * y - z) ** 2 for x, y, z in rows)

    return min([(only_a, 0.0), (0.0, only_b)], key=lambda pair: squares(*pair))


def simulated(phase: Phase, seed: int = 1, events: int = EVENTS) -> float:
    """Until the last rank is there; the same seed gives the same draws."""
    how = simulate.aggregation(phase.network, phase.streams, phase.rounds, events)
    run = simulate.run(phase.network, phase.streams, phase.rounds, seed, how)
    return phase.before_s + run.makespan_s


def fit(
    samples: Sequence[Sample],
    build: Build,
    demand: Demand,
    system: System,
    start: dict[str, float],
    seconds: Callable[[Phase], float] | None = None,
) -> tuple[Demand, System, float]:
    """The demand and system with the fields named in `start` (of either) fitted, and what is left:
    the mean size of the logarithms of predicted to measured seconds.

    `start` holds a first guess of each, above 0. `seconds` is the length of a phase: `simulated`,
    or the quicker `brigade.model.predict.steady_seconds`.
    """
    names = list(start)

    def placed(logs: Sequence[float]) -> tuple[Demand, System]:
        values = {name: math.exp(log) for name, log in zip(names, logs)}
        return _with(demand, values), _with(system, values)

    def left(logs: Sequence[float]) -> float:
        return _left(samples, build, seconds or simulated, *placed(logs))

    # Where two stations are equally busy the function has an edge, on which a simplex can stop
    # short: so from several places, and from the best one again.
    rng, guess = random.Random(1), [math.log(start[name]) for name in names]
    begins = [guess] + [[one + rng.gauss(0, 0.7) for one in guess] for _ in range(STARTS - 1)]
    best = min((minimise(left, begin) for begin in begins), key=left)
    best = minimise(left, best, step=0.1)
    return (*placed(best), left(best))


def _left(
    samples: Sequence[Sample],
    build: Build,
    seconds: Callable[[Phase], float],
    demand: Demand,
    system: System,
) -> float:
    errors = [
        math.log(seconds(build(demand, system, one.ranks, one.nodes)) / one.seconds)
        for one in samples
    ]
    return math.fsum(abs(error) for error in errors) / len(errors)


def _with(owner: Any, values: dict[str, float]) -> Any:
    known = {one.name for one in dataclasses.fields(owner)}
    return dataclasses.replace(owner, **{k: v for k, v in values.items() if k in known})


def minimise(
    function: Callable[[Sequence[float]], float],
    start: list[float],
    step: float = 0.5,
    tolerance: float = 1e-4,
    most: int = 300,
) -> list[float]:
    """Where a function of a few values is least (Nelder and Mead, 1965)."""
    corners = [start] + [
        [value + step * (i == j) for j, value in enumerate(start)] for i in range(len(start))
    ]
    simplex = sorted((function(corner), corner) for corner in corners)
    for _ in range(most):
        worst, spread = simplex[-1], simplex[-1][0] - simplex[0][0]
        if spread <= tolerance * (abs(simplex[0][0]) + tolerance):
            break
        centre = [sum(c[1][j] for c in simplex[:-1]) / len(start) for j in range(len(start))]

        def towards(
            share: float, centre: list[float] = centre, worst: list[float] = worst[1]
        ) -> tuple[float, list[float]]:
            there = [c + share * (w - c) for c, w in zip(centre, worst)]
            return function(there), there

        found = towards(-1.0)
        if found[0] < simplex[0][0]:
            found = min(found, towards(-2.0))
        elif found[0] >= simplex[-2][0]:
            found = min(found, towards(0.5))
        if found[0] < worst[0]:
            simplex[-1] = found
        else:
            middle = [
                [(a + b) / 2 for a, b in zip(simplex[0][1], corner)] for _, corner in simplex[1:]
            ]
            simplex[1:] = [(function(corner), corner) for corner in middle]
        simplex.sort()
    return simplex[0][1]
