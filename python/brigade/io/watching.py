"""A line of progress on a terminal, for calls that take longer than a second."""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Any

from brigade.io import _lib
from brigade.job.progress import Progress
from brigade.printable import is_terminal

PATIENCE_S = 1.0  #: a call that ends before is not worth a line
REDRAW_S = 0.1

PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)


class Watch:
    """Shows how far the calls of one file are; `close` wipes the line."""

    def __init__(self, handle: ctypes.c_void_p, label: str) -> None:
        self._line = Progress(quiet=False)
        self._label = label
        self._began = self._drawn = 0.0
        self._done = 0
        self._callback = PROGRESS(self._on)  # must live as long as the file
        _lib.function("file_on_progress")(
            handle, ctypes.cast(self._callback, ctypes.c_void_p), None
        )

    def _on(self, _context: Any, done: int, total: int) -> None:
        now = time.monotonic()
        if done == 0 or done < self._done:
            self._began = now
        self._done = done
        if now - self._began >= PATIENCE_S and now - self._drawn >= REDRAW_S:
            self._line.show(self._label, done, total)
            self._drawn = now
        if done == total:
            self._line.close()

    def close(self) -> None:
        self._line.close()


def wanted(progress: bool | None, rank: int) -> bool:
    """Unless said otherwise: rank 0 shows it, on a terminal. Never raises: the other ranks would
    wait."""
    return rank == 0 and progress is not False and is_terminal(sys.stderr)
