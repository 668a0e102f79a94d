"""The streams that Brigade was started with, made fit for what is said beside a job.

    settle()        standard error loses what it cannot take, and no descriptor below 3 is free;
                    standard output shows a mark for what its encoding does not have
    lost(error)     what a call failed on; an output that takes nothing is given up

Whoever started us may have closed a stream, or sent it to a disk that is full or to a reader that
has gone. That is no reason for a job not to start, or to end otherwise than it did: what Brigade
says on standard error is said where it can be, and never fails.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any, cast


class _Lossy(io.FileIO):
    """A descriptor that takes everything, and throws away what cannot be written."""

    def write(self, data: Any) -> int:
        try:
            written = cast("int | None", super().write(data))
            while written is None:  # it does not block, and somebody else's reader is slow
                select.select([], [self], [])
                written = cast("int | None", super().write(data))
            return written
        except OSError:
            return len(data)


def settle() -> None:
    """Once, before anything is opened or said. A stream that was closed is /dev/null for us and for
    what we start: a file of ours, or of a step's, would otherwise be written into as if it were the
    stream."""
    if None in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        while (number := os.open(os.devnull, os.O_RDWR)) < 3:
            os.set_inheritable(number, True)
        os.close(number)
        if sys.stdout is None:
            sys.stdout = open(1, "w", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper) and "utf" not in sys.stdout.encoding.lower():
        sys.stdout.reconfigure(errors="replace")
    if sys.stderr is sys.__stderr__:  # not where a test has its own
        encoding = sys.stderr.encoding if sys.stderr is not None else "utf-8"
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(_Lossy(2, "w", closefd=False)),
            encoding,
            "backslashreplace",
            line_buffering=True,
        )


def lost(error: OSError) -> str:
    """What failed, in a line. After an output that cannot be written it is /dev/null: at our end
    Python would try once more, and say so itself."""
    what = error.filename
    try:
        sys.stdout.flush()
    except OSError:
        what = "standard output"
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
    said = error.strerror or str(error)
    return f"{what}: {said}" if what else said
