"""What a job that is ended leaves on this machine: a shell ends at a signal, and what it has
started goes on.

    with orphans() as found:
        job = subprocess.Popen(...)
        ...
        found.end(leave_s)       all that comes from what was started meanwhile, but for tracers:
                                 SIGTERM, later SIGKILL

Processes whose parent has ended become this one's meanwhile (prctl(2), PR_SET_CHILD_SUBREAPER).
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_CHILD_SUBREAPER = 36
_TRACER = "brigade-trace"  # ends by itself with what it traces, and has its last lines to write
_TICK_S = 0.05


@contextmanager
def orphans() -> Iterator[Orphans]:
    before = set(_children(os.getpid()))
    _adopt(True)
    try:
        yield Orphans(before)
    finally:
        _adopt(False)


class Orphans:
    def __init__(self, before: set[int]) -> None:
        self._others = before

    def end(self, leave_s: float) -> None:
        asked: set[int] = set()
        until = time.monotonic() + leave_s
        while found := self._alive():
            is_late = time.monotonic() > until
            for pid in found if is_late else found - asked:
                _send(pid, signal.SIGKILL if is_late else signal.SIGTERM)
            asked |= found
            time.sleep(_TICK_S)

    def _alive(self) -> set[int]:
        """Those of our children that came since, and what comes from them; not tracers, nor whom
        they have in hand while they end."""
        found: set[int] = set()
        front = [pid for pid in _children(os.getpid()) if pid not in self._others]
        while front:
            pid = front.pop()
            front += _children(pid)
            state, name = _stat(pid)
            if state == "Z":
                _reap(pid)
            elif state and name != _TRACER:
                found.add(pid)
        return found


def _adopt(are_ours: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(are_ours), 0, 0, 0)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    except OSError:
        pass
    return found


def _stat(pid: int) -> tuple[str, str]:
    """Its state and name; empty if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
    except OSError:
        return "", ""
    return rest.split()[0], name


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass  # its parent is another one


def _send(pid: int, signum: signal.Signals) -> None:
    try:
        os.kill(pid, signum)
    except (ProcessLookupError, PermissionError):
        pass
