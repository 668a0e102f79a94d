"""Closed forms, against which the solvers are tested, and which the documentation quotes."""

from __future__ import annotations

import math
from collections.abc import Sequence


def repairman(customers: int, think_s: float, service_s: float, servers: int = 1) -> float:
    """Throughput of M/M/c//N: customers think, and wait for one of c equal servers.

    The birth and death chain of the number at the servers; weights in logarithms, so that any
    number of customers is fine (e.g. Kleinrock, "Queueing Systems" volume 1, section 3.8).
    """
    if think_s == 0:
        return min(customers, servers) / service_s
    logs = [0.0]
    for present in range(1, customers + 1):
        rate = (customers - present + 1) * service_s / (think_s * min(present, servers))
        logs.append(logs[-1] + math.log(rate))
    top = max(logs)
    weights = [math.exp(one - top) for one in logs]
    served = math.fsum(min(n, servers) * weight for n, weight in enumerate(weights))
    return served / math.fsum(weights) / service_s


def single_server(customers: int, think_s: float, demands: Sequence[float]) -> float:
    """Throughput of single servers and a delay by exact mean value analysis.

    Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing networks" (1980): a
    customer who arrives finds what one customer fewer leave. Stable at any number of customers.
    """
    queues = [0.0] * len(demands)
    throughput = 0.0
    for present in range(1, customers + 1):
        stays = [demand * (1 + queue) for demand, queue in zip(demands, queues)]
        throughput = present / (think_s + sum(stays))
        queues = [throughput * stay for stay in stays]
    return throughput


def constant_makespan(customers: int, rounds: int, think_s: float, service_s: float) -> float:
    """Seconds until all are done, where every think and every service of one server takes the same.

    All arrive together after thinking. Either the server never rests from then on, or the first
    batch spreads the customers out and nobody waits again.
    """
    return max(
        think_s + rounds * customers * service_s,
        rounds * (think_s + service_s) + (customers - 1) * service_s,
    )
