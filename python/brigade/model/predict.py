"""Seconds and requests of a start-up at some width, direct and under Brigade, with a band.

`seconds` is the simulation of what the demand and the system say; `low` and `high` hold 9 of 10
simulations in which every value that is not exact is drawn anew within its spread. Bounds and the
exact solution of the steady state stand beside it.
"""

from __future__ import annotations

import dataclasses
import math
import random
import statistics
from dataclasses import dataclass, field
from typing import Any

from brigade.errors import UsageError
from brigade.model import bounds, demand, mva, simulate, startup, system
from brigade.model.demand import Demand
from brigade.model.startup import Phase
from brigade.model.system import System

DRAWS = 24
DRAW_EVENTS = 8_000
BUSY = 0.7  # from here on a station is called the bottleneck

HELP = {
    startup.METADATA: "fewer requests (Brigade, shorter search paths), or more metadata servers",
    startup.DATA: "reading once for all nodes (Brigade), or more data servers",
    startup.PROCESSORS: "fewer imports, or faster processors: the file system is not the limit",
    startup.LATENCY: "fewer requests in a row (Brigade, shorter search paths)",
    startup.LINK: "fewer bytes a node, or a faster link to the file system",
    f"{startup.STAGING}: {startup.READING}": "more readers (--readers), or a smaller image",
    f"{startup.STAGING}: {startup.HANDING}": "staging once for many steps: `brigade stage`",
    f"{startup.STAGING}: {startup.UNPACKING}": "a smaller image: `brigade run --memory`",
    "launcher": "a launcher that starts ranks in a tree; the file system is not the limit",
    "staging step": "staging once for many steps: `brigade stage`",
    "finding and checking the image": "`brigade stage`, which does it once for many steps",
}


@dataclass(frozen=True)
class Outcome:
    """One way of starting, at one width."""

    requests: float
    seconds: float
    low: float
    high: float
    bounds: tuple[float, float]
    steady_s: float  # by the exact solution, as if it were a steady state all the time
    bottleneck: str
    utilisation: float | None  # of the bottleneck; None where nobody waits
    helps: str
    parts: dict[str, float]  # seconds of a rank that waits for nobody, and what is before
    streams: int
    rounds: int


@dataclass(frozen=True)
class Prediction:
    ranks: int
    nodes: int
    direct: Outcome
    brigade: Outcome
    staging: dict[str, float] = field(default_factory=dict)


def predict(
    wanted: Demand, machine: System, ranks: int, nodes: int, seed: int = 1, draws: int = DRAWS
) -> Prediction:
    """Both ways of starting `ranks` on `nodes`. Raises UsageError for an impossible width."""
    if ranks < 1 or nodes < 1 or ranks < nodes:
        raise UsageError(
            f"{ranks} ranks on {nodes} nodes cannot be",
            hint="every node has at least one rank: --ranks must not be less than --nodes",
        )
    ways = {}
    for number, build in enumerate((startup.direct, startup.brigade)):
        phase = build(wanted, machine, ranks, nodes)
        factors, values = Factors(seed, draws), []
        for draw in range(draws):
            changed = factors.demand(wanted, draw), factors.system(machine, draw)
            drawn = build(*changed, ranks, nodes)
            values.append(_seconds(drawn, seed + 100 * draw + number, DRAW_EVENTS)[0])
        ways[build.__name__] = _outcome(phase, values, seed)
    stages = startup.staging(wanted, machine, nodes)
    return Prediction(ranks, nodes, ways["direct"], ways["brigade"], stages)


def nodes_of(ranks: int, widest: int, nodes: int) -> int:
    """Nodes of a narrower job with as many ranks a node as `widest` ranks on `nodes`."""
    return -(-ranks * nodes // widest)


def steady_seconds(phase: Phase) -> float:
    """Length of a phase whose every round is one of the steady state."""
    if not phase.network.queues:
        return phase.before_s + phase.rounds * phase.network.round_s
    rates = mva.throughputs(phase.network, phase.streams)
    return phase.before_s + phase.rounds * phase.streams / rates[-1]


def _seconds(phase: Phase, seed: int, events: int) -> tuple[float, simulate.Run]:
    how = simulate.aggregation(phase.network, phase.streams, phase.rounds, events)
    run = simulate.run(phase.network, phase.streams, phase.rounds, seed, how)
    return phase.before_s + run.makespan_s, run


def _outcome(phase: Phase, values: list[float], seed: int) -> Outcome:
    found = [_seconds(phase, seed + number, simulate.EVENTS) for number in range(3)]
    seconds = sum(one for one, _ in found) / len(found)
    band = simulate.band_of(values) if values else simulate.Band(seconds, seconds, seconds)
    alone = bounds.makespan(phase.network, phase.streams, phase.rounds)
    parts = {one.name: one.demand_s * phase.rounds for one in phase.network.stations}
    parts.update({name: value for name, value in phase.before.items() if value > 0})
    busy = {
        name: share * (1 - phase.before_s / seconds) for name, share in found[0][1].busy.items()
    }
    name, utilisation = _bottleneck(busy, parts)
    return Outcome(
        requests=phase.requests,
        seconds=seconds,
        low=min(band.low, seconds),
        high=max(band.high, seconds),
        bounds=(phase.before_s + alone.low, phase.before_s + alone.high),
        steady_s=steady_seconds(phase),
        bottleneck=name,
        utilisation=utilisation,
        helps=HELP[name],
        parts=parts,
        streams=phase.streams,
        rounds=phase.rounds,
    )


def _bottleneck(busy: dict[str, float], parts: dict[str, float]) -> tuple[str, float | None]:
    """The station that is busy most of the time; else what takes a rank longest."""
    top = max(busy, key=lambda name: busy[name], default=None)
    if top is not None and busy[top] >= BUSY:
        return top, busy[top]
    name = max(parts, key=lambda name: parts[name], default=startup.PROCESSORS)
    return name, busy.get(name)


class Factors:
    """Log-normal factors for the values that are not exact.

    A Latin hypercube: each value meets each part of its distribution once, so that few draws show
    its width. The same for every width of a job, so that curves do not jump.
    """

    def __init__(self, seed: int, draws: int) -> None:
        normal = statistics.NormalDist()
        self._seed = seed
        self._quantiles = [normal.inv_cdf((i + 0.5) / draws) for i in range(draws)]
        self._columns: dict[str, list[float]] = {}

    def system(self, machine: System, draw: int) -> System:
        changed = self._changed(machine, system.DRAWN, draw)
        whole = {name: max(1, round(changed[name])) for name in system.WHOLE if name in changed}
        drawn = dataclasses.replace(machine, **{**changed, **whole})
        factor = self._factor("service_s", machine.spread_of("service_s"), draw)
        kinds = {kind: seconds * factor for kind, seconds in machine.service_by_kind.items()}
        return dataclasses.replace(drawn, service_by_kind=kinds)

    def demand(self, wanted: Demand, draw: int) -> Demand:
        drawn = dataclasses.replace(wanted, **self._changed(wanted, demand.DRAWN, draw))
        factor = self._factor("requests", wanted.spread_of("requests"), draw)
        return dataclasses.replace(
            drawn,
            first={kind: count * factor for kind, count in wanted.first.items()},
            further={kind: count * factor for kind, count in wanted.further.items()},
        )

    def _changed(self, owner: System | Demand, names: tuple[str, ...], draw: int) -> Any:
        found = {}
        for name in names:
            value, spread = getattr(owner, name), owner.spread_of(name)
            if spread and value is not None:
                found[name] = value * self._factor(name, spread, draw)
        return found

    def _factor(self, name: str, spread: float, draw: int) -> float:
        if not spread:
            return 1.0
        if name not in self._columns:
            column = list(self._quantiles)
            random.Random(f"{self._seed}/{name}").shuffle(column)
            self._columns[name] = column
        return math.exp(spread * self._columns[name][draw])
