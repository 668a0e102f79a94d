"""The exact solution of a product-form network: throughput, queues and times in a steady state.

Mean value analysis needs, for stations of several servers, the probability that they are empty, as
1 minus a sum: from some hundred customers on nothing is left of it but rounding. So the same exact
values are found by convolution (Buzen, "Computational algorithms for closed queueing networks",
1973), in logarithms, with positive terms only. With f(j) = D^j / (min(1,c) ... min(j,c)),

    G'(n) = sum over j of f(j) G(n-j)   =   sum over j < c   +   T(n)
    T(n)  = f(c) G(n-c) + (D/c) T(n-1)

takes a new station with demand D and c servers into the network, in c steps a customer. Throughput
is G(n-1)/G(n). Single servers: `closed.single_server` (mean value analysis proper) is the test.

Product form: services of first come, first served stations are exponential, delays anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from brigade.model import laws
from brigade.model.network import Network, Station

NONE = float("-inf")
SATURATED = 1e-12  # share of the greatest throughput that is still missing


@dataclass(frozen=True)
class StationLoad:
    name: str
    utilisation: float
    customers: float
    seconds: float  # of one visit, waiting included


@dataclass(frozen=True)
class Solution:
    customers: int
    throughput: float  # rounds a second, all customers together
    round_s: float  # of one customer, waiting included
    loads: tuple[StationLoad, ...]  # of the stations where customers can wait


def solve(network: Network, customers: int) -> Solution:
    """The steady state with so many customers. Raises LawError if the numbers cannot be."""
    if network.round_s == 0:
        raise ValueError("a round must take some time")
    rates = throughputs(network, customers)
    enough = len(rates)  # with more customers, they only wait at the bottleneck
    found = [_load(network, index, enough, rates[-1]) for index in range(len(network.queues))]
    there = math.fsum(load.customers for load in found) + rates[-1] * network.delay_s
    laws.little("the whole network", there, rates[-1], enough / rates[-1])
    if enough < customers:
        found = [_fuller(load, network, customers - enough, rates[-1]) for load in found]
    return Solution(customers, rates[-1], customers / rates[-1], tuple(found))


def throughputs(network: Network, customers: int) -> list[float]:
    """Rounds a second with 1, 2, ... customers. Ends early where the bottleneck is saturated: the
    last value then holds for all that follow."""
    slowest = network.bottleneck
    most = 1 / slowest.least_s if slowest else float("inf")
    constants = _Constants(network.delay_s, network.queues)
    before, found = constants.next(), []
    for _ in range(customers):
        now = constants.next()
        found.append(math.exp(before - now))
        if found[-1] >= most * (1 - SATURATED):
            break
        before = now
    return found


def _load(network: Network, index: int, customers: int, throughput: float) -> StationLoad:
    """One station, from the probabilities of j customers at it: f(j) G-without(n-j) / G(n)."""
    own = network.queues[index]
    rest = _Constants(network.delay_s, [*network.queues[:index], *network.queues[index + 1 :]])
    without = [rest.next() for _ in range(customers + 1)]
    log_f, logs = 0.0, []
    for present in range(customers + 1):
        if present:
            log_f += math.log(own.demand_s / min(present, own.servers))
        logs.append(log_f + without[customers - present])
    top = max(logs)
    weights = [math.exp(one - top) for one in logs]
    whole = math.fsum(weights)
    mean = math.fsum(n * weight for n, weight in enumerate(weights)) / whole
    busy = math.fsum(min(n, own.servers) * weight for n, weight in enumerate(weights)) / whole
    laws.utilisation(own.name, busy / own.servers, throughput, own.demand_s, own.servers)
    return StationLoad(own.name, busy / own.servers, mean, mean / throughput)


def _fuller(load: StationLoad, network: Network, more: int, throughput: float) -> StationLoad:
    slowest = network.bottleneck
    if slowest is None or load.name != slowest.name:
        return load
    there = load.customers + more
    return StationLoad(load.name, load.utilisation, there, there / throughput)


class _Constants:
    """log G(0), log G(1), ... of a network, one after the other."""

    def __init__(self, delay_s: float, queues: tuple[Station, ...] | list[Station]) -> None:
        self._n = -1
        self._log_delay = math.log(delay_s) if delay_s > 0 else NONE
        self._stages = [_Stage(one) for one in queues]

    def next(self) -> float:
        self._n += 1
        value = 0.0
        if self._n:
            value = self._n * self._log_delay - math.lgamma(self._n + 1)
        for stage in self._stages:
            value = stage.next(value)
        return value


class _Stage:
    """Takes one station in: fed with log G(n), gives log G'(n)."""

    def __init__(self, station: Station) -> None:
        self._log_step = math.log(station.demand_s / station.servers)
        self._logs = [0.0]  # log f(j), j < c
        for j in range(1, station.servers):
            self._logs.append(self._logs[-1] + math.log(station.demand_s / j))
        self._log_last = self._logs[-1] + self._log_step  # log f(c)
        self._recent: list[float] = []  # log G(n), log G(n-1), ... log G(n-c)
        self._tail = NONE

    def next(self, value: float) -> float:
        servers = len(self._logs)
        self._tail += self._log_step
        if len(self._recent) == servers:
            self._tail = _add(self._tail, self._log_last + self._recent.pop())
        self._recent.insert(0, value)
        if servers == 1:
            return _add(value, self._tail)
        terms = [f + g for f, g in zip(self._logs, self._recent)]
        terms.append(self._tail)
        top = max(terms)
        if top == NONE:
            return NONE
        return top + math.log(math.fsum([math.exp(one - top) for one in terms]))


def _add(a: float, b: float) -> float:
    """log(exp(a) + exp(b))"""
    if a < b:
        a, b = b, a
    return a if b == NONE else a + math.log1p(math.exp(b - a))
