"""One at a time makes or grows an image: tasks of a job array start together, and want the same.

    IMAGE.making    "HOST PID" of who makes it; made with O_EXCL, which network file systems honour,
                    and touched every few seconds

What must stay true: nobody waits for one that has died (its file is not touched any more, or its
host is this one and has no such process), nor for a second one, nor longer than told. Where there
can be no such file all make it, as if they had not met: an image appears by one rename. Whoever has
waited in vain for one that lives leaves the image to it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_TOUCHED_S = 5.0
_DEAD_S = 60.0  # without a touch; a server may tell of one later
_LONG_AGO_S = 3600.0  # no two clocks differ by that
_LOOK_S = 0.2


class Turn:
    """`mine`: others leave the image alone meanwhile. Another may have made it just before.
    `in_vain`: another still has it, after all the time that there was to wait."""

    mine = False
    in_vain = False


def file_of(image: str) -> str:
    return image + ".making"


@contextmanager
def turn(
    image: str, wait_s: float = 0.0, waiting: Callable[[float], None] = lambda seconds: None
) -> Iterator[Turn]:
    """The turn at `image`, after waiting up to `wait_s` for who has it; `waiting(seconds)` is
    called now and then."""
    path, mine = file_of(image), Turn()
    with suppress(OSError):
        os.makedirs(os.path.dirname(image), exist_ok=True)
    mine.mine = _take(path)
    if not mine.mine:
        mine.in_vain = not _wait(path, wait_s, waiting)
        mine.mine = _take(path)
    if not mine.mine:
        yield mine
        return
    over = threading.Event()
    toucher = threading.Thread(target=_touch, args=(path, over), daemon=True)
    toucher.start()
    try:
        yield mine
    finally:
        over.set()
        toucher.join()
        if _holder(path) == _own():
            with suppress(OSError):
                os.unlink(path)


def _own() -> str:
    return f"{os.uname().nodename} {os.getpid()}"


def _take(path: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError:
        return False
    with suppress(OSError), os.fdopen(fd, "w") as file:
        file.write(_own())
    return True


def _touch(path: str, over: threading.Event) -> None:
    while not over.wait(_TOUCHED_S):
        with suppress(OSError):
            os.utime(path)


def _holder(path: str) -> str | None:
    with suppress(OSError, UnicodeDecodeError), open(path, encoding="utf-8") as file:
        return file.read()
    return None


def _wait(path: str, wait_s: float, waiting: Callable[[float], None]) -> bool:
    """Until who has the turn gives it up, or is dead: then its file is gone. False if it still has
    it after `wait_s`."""
    start = touched_at = time.monotonic()
    first, touched = "", -1.0
    while True:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:  # asks the server anew
                holder, seen = file.read(), os.fstat(file.fileno()).st_mtime
        except OSError:
            return True  # or there can be no such file
        first = first or holder  # which it writes a moment after making the file
        if holder != first:
            return True
        now = time.monotonic()
        if seen != touched:
            touched, touched_at = seen, now
        if _is_dead(first) or now - touched_at > _DEAD_S or time.time() - seen > _LONG_AGO_S:
            with suppress(OSError):
                os.unlink(path)
            return True
        if now - start >= wait_s:
            return False
        waiting(now - start)
        time.sleep(_LOOK_S)


def _is_dead(holder: str) -> bool:
    host, _, pid = holder.partition(" ")
    return host == os.uname().nodename and pid.isdigit() and not os.path.exists(f"/proc/{pid}")
