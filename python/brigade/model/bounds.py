"""What no system can escape: bounds on throughput and on the length of a start-up.

Sources: Denning and Buzen, "The operational analysis of queueing network models" (1978), for the
asymptotic bounds; Zahorjan et al., "Balanced job bound analysis" (1982), in the form of Lazowska et
al., "Quantitative System Performance" (1984), chapter 5, for the balanced ones.
"""

from __future__ import annotations

from typing import NamedTuple

from brigade.model.network import Network


class Bounds(NamedTuple):
    low: float
    high: float


def asymptotic(network: Network, customers: int) -> Bounds:
    """Rounds a second of all customers together, in a steady state.

    Above: nobody waits, or the slowest station never rests; for any distribution. Below: each waits
    at every station for all others; for services that are not more variable than exponential.
    """
    alone = network.round_s
    if alone == 0:
        return Bounds(float("inf"), float("inf"))
    spacing = [one.least_s for one in network.queues]
    high = min([customers / alone, *(1 / seconds for seconds in spacing)])
    return Bounds(customers / (alone + (customers - 1) * sum(spacing)), high)


def balanced(network: Network, customers: int) -> Bounds:
    """Tighter ones: the network lies between two whose stations are all alike.

    For product-form networks (exponential first come, first served) with single servers; where a
    station has several, the asymptotic bounds are given.
    """
    queues = network.queues
    wide = asymptotic(network, customers)
    if not queues or any(one.servers > 1 for one in queues):
        return wide
    total = sum(one.demand_s for one in queues)
    most, mean = max(one.demand_s for one in queues), total / len(queues)
    think, others = network.delay_s, customers - 1
    low = customers / (total + think + others * most / (1 + think / (customers * total)))
    high = customers / (total + think + others * mean / (1 + think / total))
    return Bounds(max(low, wide.low), min(high, wide.high))


def makespan(network: Network, customers: int, rounds: float) -> Bounds:
    """Seconds until all customers, who start together, have gone `rounds` rounds, in the mean.

    A start-up is a finite job and no steady state. Below: a customer alone, or the whole work of
    the slowest station; for any distribution. Above: everyone waits for all others at every
    station of every round.
    """
    alone = network.round_s
    spacing = [one.least_s for one in network.queues]
    low = max([rounds * alone, *(rounds * customers * seconds for seconds in spacing)])
    return Bounds(low, rounds * (alone + (customers - 1) * sum(spacing)))
