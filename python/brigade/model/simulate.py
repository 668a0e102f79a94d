"""A start-up simulated: customers who start together, each goes its rounds, the last one counts.

Exact for any service time: what arrives at a station is served first come, first served, events in
the order of time. Where customers x rounds are too many to step through, they are aggregated:

- *chunks*: `chunk` rounds are one, with all times multiplied. Only the unit of time has changed, so
  the steady state is the same; a delay's chunk is the sum of its parts (a gamma variable), a
  service keeps its shape, so that waiting stays true, but those of one customer add up to what so
  many services do;
- *groups*: `group` customers are one, and so are as many servers, each as quick as before: a small
  copy. A station with fewer servers keeps one, which serves so many times as long; what it no
  longer waits for others is taken off the delay. Below the knee a round stays as long as it was,
  above it the work stays the same; at the knee itself throughput is lower by up to some percent.

Both make a band wider than it is, never narrower. The laws are checked in every run.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from brigade.model import laws
from brigade.model.network import Network

EVENTS = 40_000  # of one run, above which is aggregated
CHUNKS = 40  # rounds of one run, if there are many customers


@dataclass(frozen=True)
class Run:
    """One simulated start-up."""

    makespan_s: float  # until the last is done
    mean_s: float  # until a customer is done, in the mean
    throughput: float  # rounds a second while all were there: the steady state, but for its begin
    busy: dict[str, float]  # station -> share of the makespan that a server works


@dataclass(frozen=True)
class Aggregation:
    group: int
    chunk: float

    @property
    def exact(self) -> bool:
        return self.group == 1 and self.chunk == 1


def aggregation(network: Network, customers: int, rounds: int, events: int = EVENTS) -> Aggregation:
    """How much must stand for one, so that a run takes at most about `events` events."""
    budget = max(1, events // max(1, len(network.queues)))
    if customers * rounds <= budget:
        return Aggregation(1, 1)
    units = min(customers, max(budget // min(CHUNKS, rounds), 2))
    group = math.ceil(customers / units)
    units = math.ceil(customers / group)
    return Aggregation(group, rounds / min(rounds, max(budget // units, 1)))


def run(
    network: Network,
    customers: int,
    rounds: int,
    seed: int,
    how: Aggregation | None = None,
) -> Run:
    """Simulate once. Raises LawError if the numbers cannot be."""
    how = how or aggregation(network, customers, rounds)
    units = customers / how.group  # one of them may stand for less than a group
    simulation = _Simulation(network, math.ceil(units), how, random.Random(seed))
    weight = units / math.ceil(units)
    return simulation.run(max(1, round(rounds / how.chunk)), weight)


class _Simulation:
    def __init__(self, network: Network, units: int, how: Aggregation, rng: random.Random) -> None:
        self._units, self._random, self._how = units, rng, how
        self._network = network
        queues = network.queues
        self._servers = [max(1, one.servers // how.group) for one in queues]
        self._longer = [how.group * few / one.servers for few, one in zip(self._servers, queues)]
        saved = sum((times - 1) * one.demand_s for times, one in zip(self._longer, queues))
        delay = max(0.0, network.delay_s - saved)
        spread = [one for one in network.stations if not one.servers and one.demand_s > 0]
        cv = math.sqrt(sum((one.cv * one.demand_s) ** 2 for one in spread))
        cv = cv / network.delay_s if network.delay_s else 0.0
        self._think = _draws(rng, delay * how.chunk, cv / math.sqrt(how.chunk))
        self._queues = queues
        self._delay_sum = self._steady = 0.0

    def run(self, rounds: int, weight: float) -> Run:
        """`weight`: so much of a group each unit stands for."""
        serves = [
            self._services(one.demand_s * times * weight, one.cv, rounds)
            for one, times in zip(self._queues, self._longer)
        ]
        free = [[0.0] * servers for servers in self._servers]
        work, idle, stays = ([0.0] * len(serves) for _ in range(3))
        last = len(serves) - 1
        left = [rounds] * self._units
        shares = self._first_shares(rounds)
        events = [(self._delay(share), unit, 0) for unit, share in enumerate(shares)]
        heapq.heapify(events)
        ends: list[float] = []
        while events:
            now, unit, station = events[0]
            if last < 0:  # nothing but delays
                end = now
            else:
                servers = free[station]
                begin = servers[0]
                if begin < now:
                    idle[station] += now - begin
                    begin = now
                service = serves[station](unit)
                end = begin + service
                heapq.heapreplace(servers, end)
                work[station] += service
                stays[station] += end - now
                if station < last:
                    heapq.heapreplace(events, (end, unit, station + 1))
                    continue
            left[unit] -= 1
            if left[unit]:
                heapq.heapreplace(events, (end + self._delay(1.0), unit, 0))
            else:
                heapq.heappop(events)
                if not ends and end > 0:
                    self._steady = (self._units * rounds - sum(left)) * self._how.chunk / end
                ends.append(end + self._delay(1 - shares[unit]))
        self._steady *= self._how.group * weight
        return self._result(ends, work, idle, free, sum(stays), rounds)

    def _services(self, mean: float, cv: float, rounds: int) -> Callable[[int], float]:
        """A source of a unit's services at one station: each of a chunk as uneven as one service,
        so that waiting stays true, and all of them together as even as so many services are."""
        chunk = self._how.chunk
        draw = _draws(self._random, mean * chunk, cv)
        if chunk == 1 or cv < 1e-3:
            return lambda unit: draw()
        whole = _draws(self._random, mean * chunk * rounds, cv / math.sqrt(chunk * rounds))
        units = []
        for _ in range(self._units):
            shares = [draw() for _ in range(rounds)]
            factor = whole() / (math.fsum(shares) or 1.0)  # of gammas, it does not depend on shares
            units.append([share * factor for share in shares])
        return lambda unit: units[unit].pop()

    def _first_shares(self, rounds: int) -> list[float]:
        """What each unit's first delay is of a whole one; the rest comes at its end. The requests
        of a chunk are spread over it, so that units must not all come at the end of the first."""
        if self._how.exact or rounds == 1:
            return [1.0] * self._units
        return [self._random.random() for _ in range(self._units)]

    def _delay(self, share: float) -> float:
        drawn = self._think() * share if share else 0.0
        self._delay_sum += drawn
        return drawn

    def _result(
        self,
        ends: list[float],
        work: list[float],
        idle: list[float],
        free: list[list[float]],
        stayed: float,
        rounds: int,
    ) -> Run:
        """Check the laws on what was counted, and sum up."""
        span, mean = max(ends), math.fsum(ends) / len(ends)
        if span == 0:
            return Run(0.0, 0.0, 0.0, {one.name: 0.0 for one in self._queues})
        # In the mean, present = arrivals a second x time in the system, all that was counted.
        done = self._units * rounds
        in_system = (stayed + self._delay_sum) / done
        laws.little("the simulated start-up", math.fsum(ends) / span, done / span, in_system)
        busy = {}
        for index, one in enumerate(self._queues):
            rest = idle[index] + sum(span - at for at in free[index] if at < span)
            servers = self._servers[index]
            worked = 1 - rest / (servers * span)
            each = work[index] / done
            laws.utilisation(one.name, worked, done / span, each, servers)
            busy[one.name] = worked
        return Run(span, mean, self._steady, busy)


def _draws(rng: random.Random, mean: float, cv: float) -> Callable[[], float]:
    """A source of times with this mean and coefficient of variation (a gamma variable)."""
    if mean <= 0 or cv < 1e-3:
        return lambda: mean
    if cv == 1.0:
        exponential, rate = rng.expovariate, 1 / mean
        return lambda: exponential(rate)
    gamma, shape = rng.gammavariate, 1 / cv**2
    return lambda: gamma(shape, mean / shape)


@dataclass(frozen=True)
class Band:
    """Mean of several runs, and where it, or another run, is found as often as was asked."""

    mean: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


# 95% quantiles of Student's t, by degrees of freedom
_T95 = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782)


def t95(freedom: int) -> float:
    """The 95% quantile of Student's t (between 1.645 and 1.78 from 13 degrees of freedom on)."""
    return _T95[freedom - 1] if freedom <= len(_T95) else 1.645 + 1.65 / freedom


def band_of(values: list[float]) -> Band:
    """Where the next value lies, 9 times of 10, if their logarithms are normal."""
    logs = [math.log(max(value, 1e-300)) for value in values]
    mean = math.fsum(logs) / len(logs)
    if len(logs) < 2:
        return Band(values[0], values[0], values[0])
    variance = math.fsum((one - mean) ** 2 for one in logs) / (len(logs) - 1)
    width = t95(len(logs) - 1) * math.sqrt(variance * (1 + 1 / len(logs)))
    centre = math.fsum(values) / len(values)
    return Band(centre, math.exp(mean - width), math.exp(mean + width))


def mean_band(values: list[float]) -> Band:
    """The mean, and where the true mean lies, 9 times of 10."""
    mean = math.fsum(values) / len(values)
    variance = math.fsum((one - mean) ** 2 for one in values) / (len(values) - 1)
    width = t95(len(values) - 1) * math.sqrt(variance / len(values))
    return Band(mean, mean - width, mean + width)
