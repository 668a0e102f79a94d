"""A closed network of stations: what the three solvers solve.

`customers` go round and round through all stations. At a *delay* (servers 0) nobody waits; at the
others `servers` serve first come, first served. Demands are seconds of one server a round.
"""

from __future__ import annotations

from dataclasses import dataclass

DELAY = 0


@dataclass(frozen=True)
class Station:
    name: str
    demand_s: float
    servers: int = 1  # DELAY: as many as come
    cv: float = 1.0  # standard deviation / mean of one service

    @property
    def least_s(self) -> float:
        """Seconds between two customers when it is never idle."""
        return self.demand_s / self.servers if self.servers else 0.0


@dataclass(frozen=True)
class Network:
    """Stations in the order in which a round passes them."""

    stations: tuple[Station, ...]

    @property
    def delay_s(self) -> float:
        return sum(one.demand_s for one in self.stations if not one.servers)

    @property
    def queues(self) -> tuple[Station, ...]:
        """The stations at which customers can wait."""
        return tuple(one for one in self.stations if one.servers and one.demand_s > 0)

    @property
    def round_s(self) -> float:
        """A round of a customer who is alone."""
        return sum(one.demand_s for one in self.stations)

    @property
    def bottleneck(self) -> Station | None:
        """The station that bounds throughput; None if nobody ever waits."""
        return max(self.queues, key=lambda one: one.least_s, default=None)

    @property
    def knee(self) -> float:
        """Customers from which on they must wait for each other: round over its least part."""
        slowest = self.bottleneck
        return self.round_s / slowest.least_s if slowest else float("inf")
