"""Trial records: what each process of a trial run looked up, as typed values.

A trial leaves a folder of `<host>.<pid>.<start_ns>.rec` files. What a Python interpreter's import
system did is among a process's records, or, if the preloaded library was not there to take it,
in a `<host>.<pid>.<start_ns>.py.rec` beside them. A
record is seven NUL-terminated strings (docs/design/0002-start-up-contracts.md). Files are
read in pieces and parsed as a stream. NULs between records mean nothing: recorders take
room in a file before they fill it. A process may die at any moment, so a record may be
torn: such places are skipped and counted, never guessed at.

What was recorded and happened again is counted in the first record's `times`; equal records
may follow each other, and their times add up.

What no process can tell stands in `trial.json`: `ended_ns`, when the trial was over (since 1970);
`written`, paths that were changed meanwhile, by whom is not known.

What must stay true: paths are text as `os.fsdecode` gives it, so that every byte string
the kernel accepts survives; a record that is returned has all seven fields.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from brigade.errors import TrialError
from brigade.load_json import load_json

FACTS = "trial.json"
FIELDS = 7
ARGUMENT_SEPARATOR = "\x1f"
LOOKUPS = frozenset({"stat", "lstat", "access", "open", "list", "readlink"})
PROBE = "probe"  # ld.so opened a candidate of its search, or tried to
KINDS = LOOKUPS | frozenset(
    "process argv env exec write search probe load import path-entry interpreter end"
    " imported executed event digest watch away".split()
)
_NAME = re.compile(r"(.+)\.(\d+)\.(\d+)(\.py)?\.rec")
_PIECE_BYTES = 1 << 20
_ROOM = re.compile(rb"\0{9,}")  # more than any record has in a row


class Record(NamedTuple):
    """One line of what a process did; see the contract for what each kind puts where."""

    kind: str
    status: int
    by: str
    path: str
    extra: str
    time_ns: int  # when it happened first
    pid: int
    times: int = 1


@dataclass
class Process:
    """What one `.rec` file says about one process image (a pid between two execs)."""

    host: str
    pid: int
    start_ns: int
    parent: int = 0
    exe: str = ""
    rank: int | None = None
    cwd: str = ""
    argv: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    exit_status: int | None = None
    end_ns: int | None = None  # likewise since its start
    damaged: int = 0

    @property
    def is_wrapper(self) -> bool:
        """True for Brigade's own wrapper, which becomes the program by exec."""
        return self.exe.rpartition("/")[2] == "brigade-rank"

    @property
    def ld_library_path(self) -> str:
        return self.env.get("LD_LIBRARY_PATH", "")


@dataclass
class Trial:
    """All processes of a trial, in the order in which they started; and what `trial.json` says."""

    folder: str
    processes: list[Process]
    written: list[str] = field(default_factory=list)
    ended_ns: int | None = None

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """When it began and ended, since 1970. What a process did last may be long before its end:
        what happens again is no new record."""
        ends = [
            p.start_ns + max(p.end_ns or 0, p.records[-1].time_ns if p.records else 0)
            for p in self.processes
        ]
        began = min((p.start_ns for p in self.processes), default=0)
        return (began, max(*ends, self.ended_ns or 0)) if ends else None

    @property
    def damaged(self) -> int:
        """How many places could not be read (a torn last record counts as one)."""
        return sum(process.damaged for process in self.processes)

    @property
    def misses_program(self) -> bool:
        """Whether the wrapper of a rank has found no program to become."""
        alone = [process.records for process in self.processes if not process.exe]
        searches = ([r.status for r in records if r.kind == "exec"] for records in alone)
        return any(tried and all(tried) for tried in searches)

    def records(self) -> Iterator[tuple[Process, Record]]:
        for process in self.processes:
            for record in process.records:
                yield process, record


def _fields(stream: BinaryIO) -> Iterator[bytes | None]:
    """The NUL-terminated strings of `stream`; a last one without its NUL comes as None."""
    rest = b""
    while True:
        piece = stream.read(_PIECE_BYTES)
        if not piece:
            break
        parts = _ROOM.sub(bytes(9), rest + piece).split(b"\0")
        rest = parts.pop()
        yield from parts
    if rest:
        yield None


def _record(fields: list[bytes]) -> Record | None:
    """The record that seven fields make, or None if they are not one."""
    kind = fields[0].decode("ascii", "replace")
    if kind not in KINDS:
        return None
    try:
        status, time_ns = int(fields[1] or 0), int(fields[5] or 0)
        pid, star, times = fields[6].partition(b"*")
        numbers = int(pid or 0), int(times) if star else 1
    except ValueError:
        return None
    by, path, extra = (os.fsdecode(text) for text in fields[2:5])
    return Record(kind, status, by, path, extra, time_ns, *numbers)


def parse(stream: BinaryIO) -> Iterator[Record | None]:
    """The records of one file in order; None stands for a place that could not be read."""
    window: list[bytes] = []
    lost = False
    for text in _fields(stream):
        if text is None:
            lost = True
            break
        if not text and not window:
            continue
        window.append(text)
        if len(window) < FIELDS:
            continue
        record = _record(window)
        if record is None:  # out of step after a torn record: look for the next one
            window.pop(0)
            lost = True
            continue
        if lost:
            yield None
            lost = False
        yield record
        window.clear()
    if lost or window:
        yield None


def _rank(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() and int(text) >= 0 else None


def collect(host: str, pid: int, start_ns: int, records: Iterable[Record | None]) -> list[Process]:
    """The processes that one file describes: a new one begins at each `process` record."""
    processes = [Process(host, pid, start_ns)]
    for record in records:
        now = processes[-1]
        if record is None:
            now.damaged += 1
        elif record.kind == "process":
            if now.exe:
                now = Process(host, record.status, start_ns + record.time_ns)
                processes.append(now)
            now.pid = record.status or record.pid or pid
            now.parent = int(record.by) if record.by.isdigit() else 0
            now.exe = record.path
            now.rank = _rank(record.extra)
        elif record.kind == "argv":
            now.cwd = record.path
            now.argv = record.extra.split(ARGUMENT_SEPARATOR) if record.extra else []
        elif record.kind == "env":
            now.env[record.path] = record.extra
        elif record.kind == "end":
            now.exit_status, now.end_ns = record.status, record.time_ns
        else:
            now.records.append(record)
    return processes


def name_parts(name: str) -> tuple[str, int, int, bool] | None:
    """(host, pid, start_ns, of the import system) of a record file, or None if it is not one."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    host, pid, start_ns, python = match.groups()
    return host, int(pid), int(start_ns), bool(python)


def note_end(folder: str | os.PathLike[str]) -> None:
    """The trial whose records are in `folder` is over now."""
    facts = json.dumps({**read_facts(folder), "ended_ns": time.time_ns()})
    (Path(folder) / FACTS).write_text(facts)


def read_facts(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What `trial.json` says; nothing if there is none."""
    try:
        facts = load_json((Path(folder) / FACTS).read_bytes())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def load(folder: str | os.PathLike[str]) -> Trial:
    """Read every record file of a folder. Raises TrialError if there is none."""
    base = Path(folder)
    try:
        names = sorted(entry.name for entry in base.iterdir())
    except OSError as error:
        raise TrialError(
            f"the trial's records in {base} cannot be read: {error.strerror}",
            hint="run the trial again; the folder must be on a file system that all ranks share",
        ) from error
    processes: list[Process] = []
    imports: list[Process] = []
    for name in names:
        parts = name_parts(name)
        if parts is None:
            continue
        host, pid, start_ns, python = parts
        with open(base / name, "rb") as stream:
            (imports if python else processes).extend(collect(host, pid, start_ns, parse(stream)))
    for one in imports:
        _add_imports(one, processes)
    processes = [p for p in _with_searches(processes) if not p.is_wrapper]
    if not processes:
        raise TrialError(
            f"the trial left no records in {base}",
            hint="the program may be static, or may have failed before it started: "
            "run it without Brigade to see",
        )
    processes.sort(key=lambda p: (p.start_ns, p.host, p.pid))
    facts = read_facts(base)
    return Trial(str(base), processes, facts.get("written", []), facts.get("ended_ns"))


def _with_searches(processes: list[Process]) -> list[Process]:
    """Without files that say no process: brigade-rank's, which has become a program with a file of
    its own. What was tried until that was found goes to it; without one it stands alone."""
    found = [process for process in processes if process.exe]
    for search in processes:
        same = [p for p in found if (p.host, p.pid) == (search.host, search.pid)]
        if search.exe or not search.records:
            continue
        if not same:
            found.append(search)
            continue
        program = min(same, key=lambda p: p.start_ns)
        program.records[:0] = [record._replace(time_ns=0) for record in search.records]
        program.damaged += search.damaged
    return found


def _add_imports(imports: Process, processes: list[Process]) -> None:
    """Give what an import system did to the process it ran in: of those with its pid the last
    one that had started by then. Without one it stands alone."""
    same = [p for p in processes if (p.host, p.pid) == (imports.host, imports.pid)]
    before = [p for p in same if p.start_ns <= imports.start_ns] or same
    if not before:
        processes.append(imports)
        return
    owner = max(before, key=lambda p: p.start_ns)
    later = imports.start_ns - owner.start_ns
    owner.records += [r._replace(time_ns=r.time_ns + later) for r in imports.records]
    owner.records.sort(key=lambda r: r.time_ns)
    owner.damaged += imports.damaged
