"""Reads the folder that `brigade-trace` wrote: the format is in docs/format.md, "The trace".

A file that ends in the middle of a line (its tracer was killed, or still writes) gives all whole
lines; one without its head gives none, and has no clock. Times of several files, and hosts, are
put on the earliest file's clock.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from brigade.errors import BrigadeError
from brigade.trace.events import KIND_OF, Event, Mechanism, Trace, TracedProcess

MAGIC = "brigade-trace\t1"
SUFFIX = ".trace"
_MOUNTS = ".mountinfo"
_HINT = "make one with `brigade profile`, or `brigade-trace --out FOLDER PROGRAM`"

SEEN = {
    "seccomp": "system calls, by ptrace; a seccomp filter stops only those that touch files",
    "ptrace": "system calls, by ptrace; every call was stopped",
}

_CUT = (
    "what came after the end of a trace: its program still runs, its tracer was killed, or there "
    "was no room for more"
)
_NOT_BEGUN = "all that a program did: its trace has no beginning"


def load(folder: str | os.PathLike[str], *, ended: bool = False) -> Trace:
    """The trace in `folder`. If we `ended` the job, a trace lacks nothing that has its beginning:
    some launchers then kill programs and tracers at once. Raises BrigadeError if there is none, or
    one that cannot be read."""
    where = os.fspath(folder)
    try:
        names = sorted(os.listdir(where))
        files = [_File(os.path.join(where, name)) for name in names if name.endswith(SUFFIX)]
        mountinfo = {
            name[: -len(_MOUNTS)]: _text(os.path.join(where, name))
            for name in names
            if name.endswith(_MOUNTS)
        }
    except OSError as error:
        raise BrigadeError(f"{error.filename or where}: {error.strerror}", hint=_HINT) from error
    if not files:
        raise BrigadeError(f"{where}: no trace in it", hint=_HINT)
    begun = [one for one in files if one.begun]
    start_ns = min((one.start_ns for one in begun), default=0)
    processes = [p for one in begun for p in one.shifted(one.start_ns - start_ns)]
    processes.sort(key=lambda process: process.start_ns)
    return Trace(start_ns, _mechanism(files, ended), processes, mountinfo)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as text:
        return text.read()


def _mechanism(files: list[_File], ended: bool) -> Mechanism:
    names = {one.how for one in files if one.begun}
    weakest = next((n for n in ("none", "ptrace", "seccomp") if n in names), "none")
    lost: dict[str, int] = {}
    for one in files:
        for sentence in one.lost:
            lost[sentence] = lost.get(sentence, 0) + 1
        if not one.complete and not (ended and one.is_open):
            cut = _CUT if one.begun else _NOT_BEGUN
            lost[cut] = lost.get(cut, 0) + 1
    return Mechanism(
        weakest,
        [SEEN[name] for name in sorted(names) if name in SEEN],
        [text if n == 1 else f"{text} ({n} times)" for text, n in lost.items()],
        sum(one.stops for one in files),
        sum(one.stopped_ns for one in files),
        all(one.is_whole or (ended and one.is_open) for one in files),
    )


@dataclass
class _File:
    """One file: the program that a launcher started, and all that came from it."""

    path: str
    start_ns: int = 0
    host: str = ""
    how: str = "none"
    begun: bool = False  # it has its head
    complete: bool = False
    cut: bool = False  # in the middle of a line: there was no room for more
    stops: int = 0
    stopped_ns: int = 0
    lost: list[str] = field(default_factory=list)
    images: dict[str, TracedProcess] = field(default_factory=dict)
    _paths: dict[str, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether the program was seen from its start to its end; one that it left behind may
        still run."""
        first = self.images.get("1")
        ended = first and any(
            one.pid == first.pid and one.status is not None for one in self.images.values()
        )
        return self.how != "none" and (self.complete or bool(ended))

    @property
    def is_open(self) -> bool:
        """Whether it ends where its tracer ended, or has come to until now."""
        return self.begun and self.how != "none" and not self.cut

    def __post_init__(self) -> None:
        with open(self.path, encoding="utf-8", errors="surrogateescape", newline="\n") as text:
            for number, line in enumerate(text, 1):
                self.cut = not line.endswith("\n")
                if self.cut:
                    break
                if number == 1 and line[:-1] != MAGIC:
                    raise self._broken("another format than this version reads")
                if number > 1:
                    self._line(number, line[:-1].split("\t"))

    def _broken(self, what: str) -> BrigadeError:
        return BrigadeError(f"{self.path}: {what}", hint="trace the program again")

    def _line(self, number: int, words: list[str]) -> None:
        try:
            if words[0] == "E":
                self._event(words)
            elif words[0] in _READERS:
                _READERS[words[0]](self, words)
        except (ValueError, IndexError, KeyError) as error:
            raise self._broken(f"line {number} is damaged ({error})") from error

    def _event(self, words: list[str]) -> None:
        _, image, tid, call, at, took, error, result, by_fd, flags, path, *more = words
        if call not in KIND_OF:
            raise ValueError(call)
        self.images[image].events.append(
            Event(
                *(int(at), int(took), int(tid), call, int(error), int(result)),
                *(self._string(path), by_fd == "1", int(flags)),
                self._string(more[0]) if more else "",
            )
        )

    def _string(self, word: str) -> str:
        """The same object for the same path: most are asked for more than once."""
        return self._paths.setdefault(word, _unescape(word))

    def _head(self, words: list[str]) -> None:
        self.host, self.start_ns, self.how = _unescape(words[1]), int(words[2]), words[3]
        self.begun = True

    def _begin(self, words: list[str]) -> None:
        _, image, pid, parent, rank, at, parent_image = words[:7]
        self.images[image] = process = TracedProcess(
            *(self.host, int(pid), int(parent), None if rank == "-" else int(rank), int(at))
        )
        before = self.images.get(parent_image)
        if before is not None:
            process.exe, process.cwd = before.exe, before.cwd
            process.argv, process.env = list(before.argv), dict(before.env)

    def _program(self, words: list[str]) -> None:
        process = self.images[words[1]]
        process.exe, process.cwd = self._string(words[2]), self._string(words[3])
        process.argv, process.env = [], {}

    def _argument(self, words: list[str]) -> None:
        self.images[words[1]].argv += map(_unescape, words[2:])

    def _variable(self, words: list[str]) -> None:
        for word in words[2:]:
            name, _, value = _unescape(word).partition("=")
            self.images[words[1]].env[name] = value

    def _entry(self, words: list[str]) -> None:
        self.images[words[1]].entry_ns = int(words[2])

    def _end(self, words: list[str]) -> None:
        process = self.images[words[1]]
        process.end_ns = int(words[2])
        process.status = None if words[3] == "-" else int(words[3])

    def _lost(self, words: list[str]) -> None:
        self.lost.append(_unescape(words[1]))

    def _stops(self, words: list[str]) -> None:
        self.stops, self.stopped_ns = int(words[1]), int(words[2])

    def _last(self, _words: list[str]) -> None:
        self.complete = True

    def shifted(self, by_ns: int) -> list[TracedProcess]:
        """All processes, on a clock that started `by_ns` before."""
        found = list(self.images.values())
        for process in found:
            process.events.sort(key=lambda event: event.time_ns)  # written as they ended
        for process in found if by_ns else ():
            process.start_ns += by_ns
            if process.entry_ns is not None:
                process.entry_ns += by_ns
            if process.end_ns is not None:
                process.end_ns += by_ns
            process.events = [e._replace(time_ns=e.time_ns + by_ns) for e in process.events]
        return found


_READERS: dict[str, Callable[[_File, list[str]], None]] = {
    "H": _File._head,
    "P": _File._begin,
    "X": _File._program,
    "A": _File._argument,
    "V": _File._variable,
    "I": _File._entry,
    "Q": _File._end,
    "L": _File._lost,
    "S": _File._stops,
    "Z": _File._last,
}
_ESCAPED = re.compile(r"\\(.)")
_MEANS = {"t": "\t", "n": "\n", "\\": "\\"}


def _unescape(word: str) -> str:
    if "\\" not in word:
        return word
    return _ESCAPED.sub(lambda found: _MEANS.get(found[1], found[1]), word)
