"""Reads what `strace -f` wrote: one file, or a folder of the files that `-ff` makes.

    strace -f -tt -T -y -o start.strace python app.py

Every usual shape is understood (-t, -tt, -ttt, -r, -T, -y, -yy, -s, -e trace=...). What an output
does not say is left unknown and named in `Mechanism.lost`: without -y the paths of descriptors are
followed through open, dup and close; without times only the order is known. strace numbers
threads; which belong to one process is taken from its clone calls.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from brigade.errors import BrigadeError
from brigade.trace.events import KIND_OF, Event, Mechanism, Trace, TracedProcess
from brigade.trace.flags import access_mode, at_flags, open_flags
from brigade.trace.ranks import rank_of, searching
from brigade.trace.shapes import SHAPES, Shape
from brigade.trace.strace_lines import Line, arguments, descriptor, lines, string

UNKNOWN = "unknown"  # the host: strace does not say it
_CLONES = ("clone", "clone3", "fork", "vfork")
_SUFFIX = re.compile(r"\.(\d+)$")
_DAY_NS = 86_400_000_000_000


def load(path: str | os.PathLike[str]) -> Trace:
    """The trace in a file, or in the `-ff` files of a folder. Raises BrigadeError if there is
    none in it."""
    where = os.fspath(path)
    try:
        if os.path.isdir(where):
            files = sorted(e.path for e in os.scandir(where) if _SUFFIX.search(e.name))
        else:
            files = [where]
        streams = [_read(name) for name in files]
        day_ns = _midnight_ns(os.path.getmtime(where))
    except OSError as error:
        raise BrigadeError(f"{where}: {error.strerror}") from error
    build = _Build(streams, day_ns)
    trace = build.trace()
    if not any(process.events for process in trace.processes):
        raise BrigadeError(
            f"{where}: no system calls that strace would have written",
            hint="make it with `strace -f -tt -T -y -o FILE PROGRAM`",
        )
    return trace


def _read(name: str) -> list[Line]:
    suffix = _SUFFIX.search(name)
    with open(name, encoding="utf-8", errors="surrogateescape") as text:
        return list(lines(text, int(suffix[1]) if suffix else 0))


def _midnight_ns(at_s: float) -> int:
    """Midnight, local, of the day: -tt gives only the time of day."""
    day = time.localtime(at_s)
    return int(time.mktime((*day[:3], 0, 0, 0, 0, 0, -1))) * 1_000_000_000


@dataclass
class _Files:
    """Descriptors and working directory of a process: what they refer to."""

    fds: dict[int, tuple[str, bool]] = field(default_factory=dict)  # path, closed by exec
    cwd: str = ""

    def copy(self) -> _Files:
        return _Files(dict(self.fds), self.cwd)


class _Build:
    """Puts calls into processes."""

    def __init__(self, streams: list[list[Line]], day_ns: int) -> None:
        self._times, self.clock = _times(streams, day_ns)
        merged = [(at, line) for stream in self._times for at, line in stream]
        merged.sort(key=lambda one: one[0])
        self._merged = merged
        self._made: dict[int, tuple[int, bool]] = {}  # tid -> who cloned it, as a thread?
        for _, line in merged:
            child = line.value if line.call in _CLONES else None
            if child is not None and child > 0:
                self._made.setdefault(child, (line.tid, "CLONE_THREAD" in line.arguments))
        self._current: dict[int, TracedProcess] = {}  # pid -> its image now
        self._files: dict[int, _Files] = {}
        self._processes: list[TracedProcess] = []
        self._living: dict[int, set[int]] = {}
        self._decorated = self._unfinished = 0

    def trace(self) -> Trace:
        start_ns = self._merged[0][0] if self._merged else 0
        for at, line in self._merged:
            if line.call == "+++":
                self._end(line, at - start_ns)
            elif line.call:
                self._call(line, at - start_ns)
        for process in self._processes:
            _place(process)
        return Trace(start_ns, self._mechanism(), self._processes)

    def _leader(self, tid: int) -> int:
        """The process that a thread belongs to."""
        seen = set()
        while tid in self._made and self._made[tid][1] and tid not in seen:
            seen.add(tid)
            tid = self._made[tid][0]
        return tid

    def _process(self, tid: int, at: int) -> TracedProcess:
        pid = self._leader(tid)
        self._living.setdefault(pid, set()).add(tid)
        found = self._current.get(pid)
        if found is not None:
            return found
        made = self._made.get(pid)
        parent = self._leader(made[0]) if made else 0
        before = self._current.get(parent)
        found = TracedProcess(
            *(UNKNOWN, pid, parent, before.rank if before else None, at),
            exe=before.exe if before else "",
            argv=list(before.argv) if before else [],
            cwd=self._files[parent].cwd if parent in self._files else "",
            env=before.env if before else {},
        )
        self._files[pid] = self._files[parent].copy() if parent in self._files else _Files()
        self._current[pid] = found
        self._processes.append(found)
        return found

    def _call(self, line: Line, at: int) -> None:
        process = self._process(line.tid, at)
        files = self._files[process.pid]
        if not line.whole or (line.value is None and not line.error):
            self._unfinished += line.call in KIND_OF
            return
        words = arguments(line.arguments)
        if line.call in KIND_OF and line.error < 512:  # else the kernel starts it again
            event = self._event(line, at, words, files)
            if event is not None and event.kind == "exec" and not event.error:
                process = self._exec(process, event, words, files)
            if event is not None:
                process.events.append(event)
                process.cwd = process.cwd or files.cwd
                if event.kind == "folder" and not event.error and event.path.startswith("/"):
                    files.cwd = event.path
        if not line.error:
            _follow(line, words, files)

    def _event(self, line: Line, at: int, words: list[str], files: _Files) -> Event | None:
        call, shape = line.call, SHAPES[line.call]
        if call == "mmap" and (len(words) < 5 or "MAP_ANON" in words[3]):
            return None
        path, by_fd = self._path(words, shape.fd, shape.path, files)
        other = ""
        if shape.other >= 0 and call.startswith("readlink"):
            text = string(_word(words, shape.other))
            other = text if text and not line.error and not text.endswith("...") else ""
        elif shape.other >= 0 and call.startswith("symlink"):
            other = string(_word(words, shape.other)) or ""
        elif shape.other >= 0:
            other, _ = self._path(words, shape.other_fd, shape.other, files)
        result = -1 if line.error else line.value or 0
        flags = _flags(call, _word(words, shape.flags))
        return Event(
            *(at, line.took_ns, line.tid, call, line.error, result, path, by_fd, flags, other)
        )

    def _path(self, words: list[str], fd: int, path: int, files: _Files) -> tuple[str, bool]:
        """The absolute path that arguments `fd` and `path` mean, and whether only `fd` does."""
        given = string(_word(words, path)) if path >= 0 else None
        number, base = descriptor(_word(words, fd)) if fd >= 0 else (None, "")
        self._decorated += bool(base)
        if number is None and base:
            files.cwd = base
        if given is not None and given.startswith("/"):
            return given, False
        if given is None and fd < 0:
            return "", False
        if given == "" and number is None and not any("AT_EMPTY_PATH" in word for word in words):
            return "", False  # it names nothing
        if not base:
            base = files.cwd if number is None else files.fds.get(number, ("", False))[0]
        if not given:
            return base, True
        return (base.rstrip("/") + "/" + given if base.startswith("/") else given), False

    def _exec(
        self, old: TracedProcess, event: Event, words: list[str], files: _Files
    ) -> TracedProcess:
        """The image that a successful exec starts; the call is its first event."""
        shape: Shape = SHAPES[event.call]
        listed = _word(words, shape.path + 1)
        argv = [string(word) or word for word in arguments(listed[1:-1])]
        given = _word(words, shape.path + 2)
        env = dict(old.env)
        rank = old.rank
        if given.startswith("["):
            pairs = [(string(w) or "").partition("=") for w in arguments(given[1:-1])]
            everything = {name: value for name, _, value in pairs}
            env, found = searching(everything), rank_of(everything)
            rank = found if found is not None else rank
        files.fds = {fd: one for fd, one in files.fds.items() if not one[1]}
        new = TracedProcess(
            *(UNKNOWN, old.pid, old.parent, rank, event.time_ns, event.path, argv),
            cwd=files.cwd,
            env=env,
        )
        if not old.events and not old.exe:  # the program that strace started
            self._processes.remove(old)
        else:
            old.end_ns = event.time_ns
        self._processes.append(new)
        self._current[old.pid] = new
        return new

    def _end(self, line: Line, at: int) -> None:
        pid = self._leader(line.tid)
        process, living = self._current.get(pid), self._living.get(pid, set())
        living.discard(line.tid)
        if process is None or (living and line.tid != pid):
            return
        process.end_ns = at
        if found := re.match(r"exited with (\d+)", line.arguments):
            process.status = int(found[1])
        elif found := re.match(r"killed by (\w+)", line.arguments):
            process.status = -_signal(found[1])

    def _mechanism(self) -> Mechanism:
        says = Mechanism("strace", ["the calls that strace was told to show, from a file of its"])
        clones = any(line.call in _CLONES for _, line in self._merged)
        several = len({line.tid for _, line in self._merged}) > 1
        if self.clock == "order":
            says.lost.append("times: strace wrote none (-ttt -T), only the order of calls is known")
        if not any(line.took_ns for _, line in self._merged):
            says.lost.append("how long calls took: strace was run without -T")
        if not self._decorated:
            says.lost.append("files behind descriptors were inferred: strace was run without -y")
        if several and not clones:
            says.lost.append("which threads are one process: clone was not among the calls shown")
        says.lost.append("when programs had loaded their libraries: strace does not say")
        if self._unfinished:
            says.lost.append(f"the outcome of {self._unfinished} calls that did not end")
        return says


def _place(process: TracedProcess) -> None:
    """Relative paths from before the text named the working directory."""
    for n, event in enumerate(process.events):
        if event.kind == "folder" or not process.cwd.startswith("/"):
            return
        if event.path and not event.by_fd and not event.path.startswith("/"):
            placed = f"{process.cwd.rstrip('/')}/{event.path}"
            process.events[n] = event._replace(path=placed)


def _times(streams: list[list[Line]], day_ns: int) -> tuple[list[list[tuple[int, Line]]], str]:
    """Nanoseconds of each line, and what they are: "clock", "steps" (-r) or "order"."""
    kinds = {line.when[:1] for stream in streams for line in stream}
    clock = "order" if "" in kinds else "steps" if "+" in kinds else "clock"
    if clock == "clock":
        return [_clocked(stream, day_ns) for stream in streams], clock
    begins: dict[int, int] = {}  # of a -ff file without a clock: when its thread was cloned
    out, waiting = [], sorted(streams, key=lambda stream: stream[0].tid if stream else 0)
    for stream in waiting:
        at = begins.get(stream[0].tid, 0) if stream else 0
        timed = []
        for line in stream:
            at += 1 if clock == "order" else max(1, round(float(line.when[1:]) * 1e9))
            timed.append((at, line))
            if line.call in _CLONES and (line.value or 0) > 0:
                begins.setdefault(line.value or 0, at)
        out.append(timed)
    return out, clock


def _clocked(stream: Iterable[Line], day_ns: int) -> list[tuple[int, Line]]:
    timed, last = [], 0
    for line in stream:
        at = _clock_ns(line.when, day_ns)
        while last - at > _DAY_NS // 2 and ":" in line.when:  # past midnight
            at += _DAY_NS
        last = at
        timed.append((at, line))
    return timed


def _clock_ns(when: str, day_ns: int) -> int:
    whole, _, part = when.partition(".")
    part_ns = int(part.ljust(9, "0")[:9]) if part else 0
    if ":" not in whole:
        return int(whole) * 1_000_000_000 + part_ns
    hours, minutes, seconds = map(int, whole.split(":"))
    return day_ns + (hours * 3600 + minutes * 60 + seconds) * 1_000_000_000 + part_ns


def _word(words: list[str], n: int) -> str:
    return words[n] if 0 <= n < len(words) else ""


def _flags(call: str, word: str) -> int:
    if not word:
        return 0
    if call.startswith("open"):
        return open_flags(word)
    if call == "mmap":
        return int(word, 0) if word[:1].isdigit() else 0
    if call in ("newfstatat", "statx"):
        return at_flags(word)
    return access_mode(word)


def _signal(name: str) -> int:
    import signal

    return int(getattr(signal, name, 0))


def _follow(line: Line, words: list[str], files: _Files) -> None:
    """Keeps the table of descriptors as the calls change it."""
    call, value = line.call, line.value or 0
    if call in ("open", "openat", "openat2", "creat"):
        shape = SHAPES[call]
        given = string(_word(words, shape.path)) or ""
        _, refers = descriptor(line.result.split(" (")[0])
        number, base = descriptor(_word(words, shape.fd)) if shape.fd >= 0 else (None, "")
        if not base:
            base = files.cwd if number is None else files.fds.get(number, ("", False))[0]
        joined = given if given.startswith("/") or not base else f"{base.rstrip('/')}/{given}"
        files.fds[value] = (refers or joined, "O_CLOEXEC" in _word(words, shape.flags))
    elif call in ("dup", "dup2", "dup3") or (call == "fcntl" and "F_DUPFD" in _word(words, 1)):
        number, _ = descriptor(_word(words, 0))
        closes = "CLOEXEC" in "".join(words[1:])
        files.fds[value] = (files.fds.get(number or 0, ("", False))[0], closes)
    elif call == "close":
        number, _ = descriptor(_word(words, 0))
        files.fds.pop(number if number is not None else -1, None)
    elif call in ("pipe", "pipe2", "socketpair"):
        for word in arguments(_word(words, 3 if call == "socketpair" else 0)[1:-1]):
            number, refers = descriptor(word)
            if number is not None:
                files.fds[number] = (refers or call.rstrip("2") + ":", "CLOEXEC" in "".join(words))
    elif call in ("socket", "accept", "accept4", "eventfd2", "epoll_create1", "memfd_create"):
        files.fds[value] = (call + ":", "CLOEXEC" in "".join(words))
