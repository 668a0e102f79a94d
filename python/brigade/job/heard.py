"""Whether the programs of a traced job still look something up, from what their traces have more.

A *look-up* is what the reports count as one (`brigade.profile.sums`): an open, stat, link or exec
by path, a change of the folder, the listing of one. What a program reads, writes or says is none,
so one that prints as it works has ended its start-up all the same.
"""

from __future__ import annotations

import os
import re

from brigade.profile.sums import LOOKUP_KINDS
from brigade.trace.events import KINDS
from brigade.trace.native import SUFFIX


def _line(calls: tuple[str, ...], by_fd: str) -> str:
    """An E line: image, tid, call, time, took, errno, result, by descriptor."""
    return rf"E\t\d+\t\d+\t(?:{'|'.join(calls)})(?:\t-?\d+){{4}}\t{by_fd}\t"


_BY_PATH = tuple(call for kind in LOOKUP_KINDS for call in KINDS[kind])
_LOOKUP = re.compile(
    rf"^(?:{_line(_BY_PATH, '0')}|{_line(KINDS['list'], '[01]')})".encode(), re.MULTILINE
)


def traces(folder: str) -> dict[str, int]:
    """The trace files in `folder` and how large they are now."""
    with os.scandir(folder) as entries:
        return {e.path: e.stat().st_size for e in entries if e.name.endswith(SUFFIX)}


class Heard:
    """The look-ups of a job whose trace goes to `folder`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._read: dict[str, int] = {}  # file -> how far, at the end of a line

    def more(self) -> bool:
        """Whether any was made since this was asked last."""
        found = False
        for path, size in traces(self._folder).items():
            begin = self._read.get(path, 0)
            if size <= begin:
                continue
            with open(path, "rb") as file:
                text = os.pread(file.fileno(), size - begin, begin)
            whole = text.rfind(b"\n") + 1
            self._read[path] = begin + whole
            found = found or bool(_LOOKUP.search(text, 0, whole))
        return found
