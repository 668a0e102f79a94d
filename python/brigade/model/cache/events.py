"""Time of a simulation: processes are generators that yield seconds to pass, or a signal."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Generator
from typing import Callable, Union


class Signal:
    """Something that processes wait for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[Process] = []

    def wait(self, process: Process) -> None:
        self._waiting.append(process)

    def fire(self) -> None:
        """All that wait go on."""
        waiting, self._waiting = self._waiting, []
        for process in waiting:
            self._clock.at(self._clock.now, process)


Process = Generator[Union[float, Signal], None, None]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Process | Callable[[], None]]] = []
        self._numbers = itertools.count()  # events of the same time happen in their order

    def at(self, time: float, what: Process | Callable[[], None]) -> None:
        """Let a process go on, or call something, at a time that is not past."""
        heapq.heappush(self._events, (max(time, self.now), next(self._numbers), what))

    def run(self, ended: Callable[[], bool]) -> None:
        """Until `ended`, or until nothing can happen any more."""
        while self._events and not ended():
            self.now, _, what = heapq.heappop(self._events)
            if isinstance(what, Generator):
                self._resume(what)
            else:
                what()

    def _resume(self, process: Process) -> None:
        try:
            wanted = next(process)
        except StopIteration:
            return
        if isinstance(wanted, Signal):
            wanted.wait(process)
        else:
            self.at(self.now + wanted, process)
