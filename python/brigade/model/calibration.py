"""From measured answer times to a metadata service: service time, servers, round trip. Pure.

A file system's metadata service is taken as `servers` servers behind one queue, each busy for
`service` seconds a request, at a `round trip` that includes everything else. Three measurements
tell the three apart:

- the answer time at rest:              R(1) = round trip + service
- the throughput that does not grow:    X    = servers / service          (utilisation law)
- bursts: up to `servers` requests at one moment are answered as at rest, later ones wait.

The first two leave one degree of freedom whatever the shape of the closed curve, because a slow
round trip and a second server raise it alike. So for each number of servers that they allow, every
burst is computed anew, first come first served, from the moments at which its requests were really
issued; the number that comes closest to the measured answers is taken. How closely others come is
told, so that nobody takes a guess for a finding.
"""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

Request = tuple[int, int]  # (begin, took), nanoseconds; begin on a clock that all clients share

GROWTH = 1.10  # a throughput that grows by less, with twice the clients, has reached its end
_QUEUES = 0.7  # of what so many clients would get if none waited: less is a queue
_WHOLE = 20  # requests of each client; a step that was cut shorter is too short for a throughput
_NEAR = 0.97  # of the largest throughput: steps that have reached it, too
_ALSO = 1.25  # times the smallest misfit: as likely
_MOST_SERVERS = 256


@dataclass(frozen=True)
class Point:
    """One step of rising load: `clients` of which each asks again as soon as it is answered."""

    clients: int
    requests: int
    throughput: float  # answers a second while all clients were at it
    mean_s: float
    median_s: float
    spread_s: float = 0.0  # half of what lies between the 16th and the 84th percentile


@dataclass(frozen=True)
class Fit:
    """What the measurements say. `reached` False: throughput still grew at the last step, so
    throughput and servers are lower bounds."""

    service_s: float
    servers: int
    round_trip_s: float
    throughput: float
    rest_s: float  # answer time at rest
    reached: bool
    also: list[int] = field(default_factory=list)  # other numbers of servers that fit as well
    misfit: float = 0.0  # mean difference of burst answers, as a part of the answer time at rest
    service_cv: float = 0.0  # how much services differ: standard deviation / mean
    spread: float = 0.0  # how far steps at the limit are apart: standard deviation / mean


def point(clients: list[list[Request]]) -> Point:
    """The throughput and answer times of one step from its clients' requests."""
    asked = [requests for requests in clients if requests]
    every = [took / 1e9 for requests in asked for _, took in requests]
    begin = max(requests[0][0] for requests in asked)
    end = min(sum(requests[-1]) for requests in asked)
    ends = sorted(at + took for requests in asked for at, took in requests)
    if end - begin < 0.3 * (ends[-1] - min(requests[0][0] for requests in asked)):
        begin, end = min(requests[0][0] for requests in asked), ends[-1]
    answered = sum(1 for at in ends if begin < at <= end)
    return Point(
        len(clients),
        len(every),
        answered / max(1e-9, (end - begin) / 1e9),
        statistics.fmean(every),
        statistics.median(every),
        _spread(every),
    )


def _spread(values: list[float]) -> float:
    ranked = sorted(values)
    return (ranked[int(0.84 * len(ranked))] - ranked[int(0.16 * len(ranked))]) / 2


def knee(points: list[Point]) -> bool:
    """Whether throughput has stopped growing with the clients."""
    if len(points) < 2:
        return False
    return points[-1].throughput < max(p.throughput for p in points[:-1]) * GROWTH


def fit(points: list[Point], bursts: list[list[Request]], held_down: bool = False) -> Fit:
    """The service that explains the points (by rising clients, the first with one) and bursts.
    `held_down`: the clients were not let ask for more than the last point; no server's limit."""
    rest_s = points[0].median_s
    whole = [p for p in points if p.requests >= _WHOLE * p.clients] or points
    best = max(p.throughput for p in whole)
    near = [p for p in whole if p.throughput >= _NEAR * best]
    weight = sum(p.requests for p in near)
    throughput = sum(p.throughput * p.requests for p in near) / weight
    unhindered = points[-1].clients * points[0].throughput
    queues = knee(points) or points[-1].throughput < _QUEUES * unhindered
    reached = queues and not held_down
    if not reached:
        servers = max(1, round(best * rest_s))
        return Fit(rest_s, servers, 0.0, best, rest_s, False)
    misfits = {
        servers: _misfit(bursts, servers, servers / throughput, rest_s)
        for servers in range(1, _most_servers(throughput, rest_s) + 1)
    }
    servers = min(misfits, key=lambda number: misfits[number])
    least = misfits[servers]
    also = [n for n, value in misfits.items() if n != servers and value <= _ALSO * least]
    service_s = servers / throughput
    apart = statistics.pstdev([p.throughput for p in near]) / throughput
    round_trip_s, cv = max(0.0, rest_s - service_s), min(1.5, points[0].spread_s / service_s)
    return Fit(service_s, servers, round_trip_s, throughput, rest_s, True, also, least, cv, apart)


def _most_servers(throughput: float, rest_s: float) -> int:
    """Little's law: at the limit no more than throughput * answer time are being served."""
    return max(1, min(_MOST_SERVERS, int(1.1 * throughput * rest_s)))


def _misfit(bursts: list[list[Request]], servers: int, service_s: float, rest_s: float) -> float:
    """Mean over the bursts' sizes of the difference, in units of the time at rest. Of a size's
    bursts the better quarter counts: what disturbs the others is not the server."""
    by_size: dict[int, list[float]] = {}
    for burst in bursts:
        wanted = sorted(took / 1e9 for _, took in burst)
        computed = sorted(answers((at / 1e9 for at, _ in burst), servers, service_s, rest_s))
        off = statistics.fmean(abs(a - b) for a, b in zip(wanted, computed))
        by_size.setdefault(len(burst), []).append(off / rest_s)
    if not by_size:
        return 0.0
    return statistics.fmean(sorted(values)[len(values) // 4] for values in by_size.values())


def answers(begins: Iterable[float], servers: int, service_s: float, rest_s: float) -> list[float]:
    """The answer times of requests issued at `begins`, first come first served."""
    free = [float("-inf")] * servers
    heapq.heapify(free)
    found = []
    for begin in sorted(begins):
        done = max(begin, heapq.heappop(free)) + service_s
        heapq.heappush(free, done)
        found.append(done - begin + max(0.0, rest_s - service_s))
    return found


def remembered(again: dict[float, list[float]], rest_s: float) -> tuple[float, float | None]:
    """Between which delays answers were forgotten: (longest that was remembered, shortest that was
    asked again or None), from the answer times after each delay."""
    known, forgotten = 0.0, None
    for delay, seconds in sorted(again.items()):
        if statistics.median(seconds) < 0.4 * rest_s:
            known = delay
        elif forgotten is None:
            forgotten = delay
    if forgotten is not None and known > forgotten:  # mixed: trust the shorter
        known = max((d for d in again if d < forgotten), default=0.0)
    return known, forgotten


def predicted(fitted: Fit, clients: int) -> tuple[float, float]:
    """(throughput, answer time) of so many clients, by the asymptotic bounds of a closed system."""
    throughput = min(clients / fitted.rest_s, fitted.throughput)
    return throughput, clients / throughput
