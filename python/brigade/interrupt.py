"""Signals that ask this process to end: noted, and raised only where that leaves nothing behind.

While `listening`, the first SIGINT, SIGTERM or SIGHUP is remembered. Inside `promptly` it is raised
at once, as Interrupted; elsewhere `check` raises it at the next place where nothing is half done.
Later signals change nothing: cleaning up is not cut short. A signal that the caller had ignored
(nohup, a shell's background job) stays ignored.

What is raised in a destructor, or where a weak reference dies, Python prints and forgets: HDF5's
module spends a third of its time there. What is raised while subprocess starts a child leaves that
to nobody; and where it has taken a lock for a moment, the lock stays taken, and who waits for that
child waits for ever. Such a signal is sent once more, a moment later.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Callable

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.001


class Interrupted(BaseException):
    """Someone wants this process to end. Not an error: only `finally` should meet it."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum
        self.name = signal.Signals(signum).name


def _nothing() -> None:
    pass


class _Heard:
    signum: int | None = None
    prompt = False
    again: Callable[[], None] = _nothing  # of what may be raised


def _note(signum: int, frame: FrameType | None) -> None:
    if _Heard.signum is None:
        _Heard.signum = signum
    if not _Heard.prompt:
        return
    _Heard.prompt = False
    if not _is_half_done(frame):
        raise Interrupted(_Heard.signum)
    _Heard.again()


def _is_half_done(frame: FrameType | None) -> bool:
    """Whether subprocess.Popen is starting a child, or polls or waits with its lock taken, and not
    in the call that blocks."""
    while frame is not None:
        name = frame.f_code.co_name if frame.f_globals.get("__name__") == "subprocess" else ""
        if name == "_try_wait":
            return False
        if name in ("__init__", "_execute_child"):
            return True
        if name in ("_internal_poll", "_wait"):
            lock = getattr(frame.f_locals.get("self"), "_waitpid_lock", None)
            return lock is not None and bool(lock.locked())
        frame = frame.f_back
    return False


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
    """A signal that comes meanwhile, or came before, is raised at once, or by the end."""
    check()
    forgotten = sys.unraisablehook
    lost, over = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def again() -> None:
        if not threads:
            threads.append(threading.Thread(target=_send_again, args=(lost, over), daemon=True))
            threads[0].start()
        lost.set()

    def note(about: Any) -> None:
        if isinstance(about.exc_value, Interrupted):
            again()
        else:
            forgotten(about)

    outer = _Heard.again, _Heard.prompt
    sys.unraisablehook = note
    _Heard.again, _Heard.prompt = again, True
    try:
        yield
    finally:
        _Heard.again, was_prompt = outer
        _Heard.prompt = was_prompt and _Heard.signum is None
        sys.unraisablehook = forgotten
        over.set()
        lost.set()
        for thread in threads:
            thread.join()
    check()


def _send_again(lost: threading.Event, over: threading.Event) -> None:
    """Send what was `lost`, when that place has been left, as often as it takes."""
    while lost.wait() and not over.wait(_AGAIN_S):
        lost.clear()
        _Heard.prompt = True
        assert _Heard.signum is not None
        os.kill(os.getpid(), _Heard.signum)


def noted() -> int | None:
    """The signal that came first, if any came."""
    return _Heard.signum


def check() -> None:
    """Raise Interrupted if a signal has come."""
    if _Heard.signum is not None:
        raise Interrupted(_Heard.signum)
