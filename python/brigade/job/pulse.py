"""Which processes of a step live, by their pulses. Pure: lines and time in, a verdict out.

With `--pulse`, every process of `brigade-stage` writes a line now and then, and a last one:

    pulse RANK SIZE HOST        it lives; SIZE processes were started, 0 if that is not known
    pulse RANK SIZE HOST end    it ends in order

Nobody has to answer them, so a node that is gone is noticed whatever MPI or the launcher do.
"""

from __future__ import annotations

import math
import os
import re

from brigade.errors import UsageError

_PULSE = re.compile(r"^(?:\d+: )?pulse (\d+) (\d+) (\S+)( end)?$")  # srun --label: "N: " in front
_PATIENCE_S = 8.0
_RANKS_A_SECOND = 1000  # that a launcher starts, when it is slow


def patience(ranks: int | None) -> float:
    """Seconds to wait for a word: BRIGADE_PATIENCE, else 8 and one for each 1,000 ranks. Raises
    UsageError if that is set to no number."""
    wanted = os.environ.get("BRIGADE_PATIENCE")
    if not wanted:
        return _PATIENCE_S + (ranks or 0) / _RANKS_A_SECOND
    try:
        seconds = float(wanted)
    except ValueError:
        seconds = math.nan
    if math.isnan(seconds):
        raise UsageError(f"BRIGADE_PATIENCE={wanted}: no number of seconds", hint="for instance 60")
    return max(1.0, seconds)


class Pulses:
    """The processes of one step. Silence is counted in `tick`s, so that a machine that stood still
    as a whole counts as one. What the processes say of their number counts if `counted`."""

    def __init__(self, patience_s: float, counted: bool = True) -> None:
        self.patience_s = patience_s
        self._counted = counted
        self.lost_s = patience_s / 2  # of a process that had a pulse
        self.late_s = patience_s * 3 / 4  # of one that starts after the others
        self._silent_s = 0.0  # since anything was heard
        self._missing_s = 0.0  # since a process was heard of for the first time
        self._live: dict[str, tuple[str, float]] = {}  # rank: host, seconds of silence
        self._ended: set[str] = set()
        self._size = 0

    @property
    def any_live(self) -> bool:
        """Whether a process has started and not ended."""
        return bool(self._live)

    @property
    def any_started(self) -> bool:
        return bool(self._live or self._ended)

    @property
    def any_heard(self) -> bool:
        """Whether one of them is not lost."""
        return any(silent <= self.lost_s for _, silent in self._live.values())

    def hear(self, line: str) -> bool:
        """Take a line of the step; whether it was a pulse."""
        self._silent_s = 0.0
        match = _PULSE.match(line.strip())
        if not match:
            return False
        rank, size, host, end = match.groups()
        if rank not in self._live and rank not in self._ended:
            self._missing_s = 0.0
        self._size = max(self._size, int(size) if self._counted else 0)
        if end:
            self._live.pop(rank, None)
            self._ended.add(rank)
        elif rank not in self._ended:
            self._live[rank] = (host, 0.0)
        return True

    def tick(self, seconds: float) -> str | None:
        """Time passes. Returns why the step should be ended, or None."""
        self._silent_s += seconds
        self._missing_s += seconds
        self._live = {rank: (host, s + seconds) for rank, (host, s) in self._live.items()}
        lost = sorted({host for host, s in self._live.values() if s > self.lost_s})
        started = len(self._live) + len(self._ended)
        if lost:
            more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
            return f"no word from {', '.join(lost[:3])}{more} for {self.lost_s:.0f} s"
        if started and started < self._size and self._missing_s > self.late_s:
            return f"only {started} of {self._size} nodes had started it after {self.late_s:.0f} s"
        if self._silent_s > self.patience_s:
            return f"it was silent for {self.patience_s:.0f} s"
        return None
