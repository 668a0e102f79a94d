"""Signals that ask this process to end: noted, and raised only where that leaves nothing behind.

While `listening`, the first SIGINT, SIGTERM or SIGHUP is remembered. Inside `promptly` it is raised
at once, as Interrupted; elsewhere `check` raises it at the next place where nothing is half done.
Later signals change nothing: cleaning up is not cut short. A signal that the caller had ignored
(nohup, a shell's background job) stays ignored.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """Someone wants this process to end. Not an error: only `finally` should meet it."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum
        self.name = signal.Signals(signum).name


class _Heard:
    signum: int | None = None
    prompt = False


def _note(signum: int, _frame: FrameType | None) -> None:
    if _Heard.signum is None:
        _Heard.signum = signum
    if _Heard.prompt:
        _Heard.prompt = False
        raise Interrupted(_Heard.signum)


@contextmanager
def listening() -> Iterator[None]:
    """Remember the signals that come meanwhile. For the main thread."""
    _Heard.signum, _Heard.prompt = None, False
    before = {s: signal.getsignal(s) for s in _SIGNALS}
    kept = {s: old for s, old in before.items() if old not in (signal.SIG_IGN, None)}
    for signum in kept:
        signal.signal(signum, _note)
    try:
        yield
    finally:
        for signum, old in kept.items():
            signal.signal(signum, old)


@contextmanager
def promptly() -> Iterator[None]:
    """A signal that comes meanwhile, or came before, is raised at once."""
    check()
    _Heard.prompt = True
    try:
        yield
    finally:
        _Heard.prompt = False


def noted() -> int | None:
    """The signal that came first, if any came."""
    return _Heard.signum


def check() -> None:
    """Raise Interrupted if a signal has come."""
    if _Heard.signum is not None:
        raise Interrupted(_Heard.signum)
