"""The device below the cache: requests in turn, at two rates. Latencies overlap with other work."""

from __future__ import annotations

from collections import deque
from typing import Callable

from brigade.model.cache.events import Clock
from brigade.model.cache.settings import Device


class Server:
    """One line of requests. Those of readers go before those of write-back, between two chunks.

    `ahead` seconds of work can be done at once after as long an idle time (a bucket of tokens).
    """

    def __init__(self, clock: Clock, ahead: float) -> None:
        self._clock, self._ahead = clock, ahead
        self._free = -ahead
        self._later: deque[tuple[float, Callable[[], None]]] = deque()

    def urgent(self, seconds: float, earliest: float | None = None) -> float:
        """When a request is done that somebody waits for, and was issued at `earliest`."""
        issued = self._clock.now if earliest is None else earliest
        begin = max(self._free, issued - self._ahead)
        self._free = begin + seconds
        return max(self._free, self._clock.now)

    def queue(self, seconds: float, done: Callable[[], None]) -> None:
        """A request of write-back."""
        self._later.append((seconds, done))
        if len(self._later) == 1:
            self._clock.at(max(self._free, self._clock.now), self._begin)

    def _begin(self) -> None:
        if self._free > self._clock.now:  # a reader was faster
            self._clock.at(self._free, self._begin)
            return
        seconds, _ = self._later[0]
        self._free = max(self._free, self._clock.now - self._ahead) + seconds
        self._clock.at(self._free, self._end)

    def _end(self) -> None:
        _, done = self._later.popleft()
        if self._later:
            self._clock.at(max(self._free, self._clock.now), self._begin)
        done()


class Servers:
    def __init__(self, device: Device, clock: Clock) -> None:
        self.device = device
        write, read = device.write_burst / device.write, device.read_burst / device.read
        self.writes = Server(clock, max(write, read) if device.shared else write)
        self.reads = self.writes if device.shared else Server(clock, read)
