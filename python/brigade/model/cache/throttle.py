"""How a writer is slowed down: the kernel's balance_dirty_pages, as formulas. Pure.

From mm/page-writeback.c: below free_run nobody waits; above, a writer's rate is the device's base
rate times `position`, which is 1 at the setpoint and 0 at the hard limit, and the base rate follows
the rate that write-back was seen to have. Shares that several devices have of one limit are left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brigade.model.cache.settings import Limits

MAX_PAUSE_S = 0.2
INTERVAL_S = 0.2  # between two estimates (BANDWIDTH_INTERVAL)
_PERIOD_S = 3.0  # over which write-back's rate is taken


def position(dirty: float, limits: Limits) -> float:
    """What a writer's rate is of the base rate (wb_position_ratio)."""
    if dirty >= limits.hard:
        return 0.0
    x = (limits.setpoint - dirty) / max(limits.hard - limits.setpoint, 1.0)
    return min(2.0, max(0.0, 1.0 + x**3))


def tightest(dirty: float, limits: Sequence[Limits]) -> Limits | None:
    """The limits that slow a writer down most, or None if it need not wait."""
    above = [one for one in limits if dirty > one.free_run]
    return min(above, key=lambda one: position(dirty, one), default=None)


@dataclass
class BaseRate:
    """A device's estimates: of write-back's rate, and the base rate that follows from it. Both
    begin where the kernel comes to when it has written to the device for a while."""

    written: float  # bytes a second
    base: float
    _balanced: float = 0.0
    _since: float = 0.0
    _done: float = 0.0  # bytes, at that time
    _dirtied: float = 0.0

    def update(
        self, now: float, done: float, dirtied: float, dirty: float, limits: Limits | None
    ) -> None:
        """To be called often. `done`, `dirtied`: bytes in all so far; `limits`: those that slow
        writers down, None: nobody is."""
        elapsed = now - self._since
        if elapsed < INTERVAL_S:
            return
        share = min(1.0, elapsed / _PERIOD_S)
        self.written += share * ((done - self._done) / elapsed - self.written)
        if limits is not None:
            self._follow((dirtied - self._dirtied) / elapsed, dirty, limits)
        self._since, self._done, self._dirtied = now, done, dirtied

    def begin(self, now: float, done: float, dirtied: float) -> None:
        """Write-back begins and nothing was under way: what was longer than it takes to notice the
        end of the last says nothing."""
        if now - self._since <= INTERVAL_S:
            return
        self._since, self._done, self._dirtied = now, done, dirtied

    def _follow(self, dirty_rate: float, dirty: float, limits: Limits) -> None:
        """wb_update_dirty_ratelimit: towards what keeps dirty bytes where they are, in steps."""
        task = self.base * position(dirty, limits)
        balanced = min(self.written, task * self.written / max(dirty_rate, 1.0))
        if dirty < limits.setpoint:
            to = min(self._balanced, balanced, task)
            step = max(0.0, to - self.base)
            sign = 1
        else:
            to = max(self._balanced, balanced, task)
            step = max(0.0, self.base - to)
            sign = -1
        shift = self.base / (2 * step + 1)
        step = step / 2 ** min(shift, 64.0) / 8 if shift < 64 else 0.0
        self.base = max(self.base + sign * step, 4096.0)
        self._balanced = balanced


def pause(bytes_: float, rate: float) -> float:
    """Seconds that a writer of so many bytes is held at this rate, at once."""
    if rate <= 0:
        return MAX_PAUSE_S
    return min(MAX_PAUSE_S, bytes_ / rate)
