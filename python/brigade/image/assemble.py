"""From a trial's records to everything an image says, before a byte of content is read.

Which trees are covered, which processes ran as which ranks, what each look-up becomes:
the order matters here, the rules live next door (`plan`, `software`, `walk`, and
`brigade.trial`).

What must stay true: reading the records and asking the file system is all that happens;
nothing is written anywhere.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Callable

from brigade.errors import TrialError
from brigade.image.plan import Entry, LeftOut, Plan, is_kernel
from brigade.image.snapshot import Snapshot
from brigade.image.software import Software
from brigade.image.tree import EntryTree
from brigade.image.walk import Walker
from brigade.imports.table import Seen, seen
from brigade.trial import mounts
from brigade.trial.answers import Answer, answers
from brigade.trial.record import LOOKUPS, PROBE, Process, Record, Trial
from brigade.trial.summary import Summary, summarise

MAX_DATA_FILE = 1 << 30
_PYTHON = frozenset({"import", "path-entry", "interpreter"})
_NO_FOLLOW = frozenset({"lstat", "readlink"})


@dataclass
class Assembled:
    """What goes into an image. `entries` are sorted by path."""

    coverage: mounts.Coverage
    entries: list[Entry]
    answers: list[Answer]
    left_out: list[LeftOut]
    summary: Summary | None
    python: Seen
    tree: EntryTree
    program: list[str]
    own_folders: list[str]
    requests: int
    bare: bool = False  # without contents, which are opened where they lie


def assemble(
    trial: Trial,
    *,
    cover: Iterable[str] = (),
    max_file: int | None = None,
    max_data_file: int | None = MAX_DATA_FILE,
    table: mounts.MountTable | None = None,
) -> Assembled:
    """Decide what an image of this trial says. `cover`: folders that the user named.

    Raises TrialError if there is nothing that an image could answer for.
    """
    snapshot = Snapshot()
    python = _python(trial)
    table = mounts.read(trial.folder) if table is None else table
    coverage = _coverage(trial, snapshot, table, [os.path.realpath(c) for c in cover], python)
    own = _own_folders(trial)
    software = Software(snapshot, coverage.covers, own, _loaded_from(trial, snapshot))
    plan = Plan(snapshot, coverage, software, trial.span_ns)
    for process, record in _in_order(trial):
        _take(plan, process, record)
    for path in trial.written:
        plan.wrote(path)
    for process in trial.processes:
        plan.look_up(process.exe, 0, content=True, executed=True)
    _add_companions(plan, python)
    entries = plan.finish(max_file, max_data_file)
    good, conflicts = answers(trial, snapshot.bare_names)
    return Assembled(
        coverage=coverage,
        entries=entries,
        answers=good,
        left_out=plan.left_out,
        summary=summarise(trial, _covered(plan), conflicts),
        python=python,
        tree=EntryTree((e for e in entries if coverage.covers(e.path)), plan.resolve, snapshot),
        program=_program(trial),
        own_folders=sorted(own),
        requests=snapshot.requests,
    )


def _in_order(trial: Trial) -> list[tuple[Process, Record]]:
    """All records as they happened in rank order: one rank's whole start-up, then what other
    ranks and children add. (Ranks run side by side; mixing them would scatter what lies
    together.)"""
    ranked = sorted(trial.processes, key=lambda p: (p.rank is None, p.rank or 0, p.start_ns))
    return [(process, record) for process in ranked for record in process.records]


def _python(trial: Trial) -> Seen:
    """What the import systems of all processes did."""
    return seen(
        (record.kind, str(record.status), record.by, record.path, record.extra)
        for _, record in trial.records()
        if record.kind in _PYTHON
    )


def _looked_up(trial: Trial) -> Iterable[str]:
    for _, record in trial.records():
        if record.kind in LOOKUPS or record.kind in ("exec", "load"):
            yield record.path
        elif record.kind == "search" and record.extra:
            yield record.extra
    for process in trial.processes:
        yield process.exe


def _coverage(
    trial: Trial,
    snapshot: Snapshot,
    table: mounts.MountTable,
    cover: list[str],
    python: Seen,
) -> mounts.Coverage:
    for folder in cover:
        if isinstance(snapshot.lstat(folder), int):
            raise TrialError(f"--cover {folder}: there is no such folder")
    walker = _plain_walker(snapshot)
    folders: dict[str, None] = {}
    for path in _looked_up(trial):
        if path.startswith("/") and not is_kernel(path):
            folders[path.rpartition("/")[0]] = None
    reached = (walker.resolve(folder or "/").path for folder in folders)
    prefixes = _prefixes(trial, python)
    found = mounts.coverage(reached, table, cover, prefixes)
    if not found.roots:
        away = next((record.path for _, record in trial.records() if record.kind == "away"), "")
        left = f" (what {away} starts in a container is left alone)" if away else ""
        raise TrialError(
            f"the trial used no shared file system, and no folder of the program's own{left}",
            hint="name the folders that the image shall answer for with --cover DIR",
        )
    return found


def _plain_walker(snapshot: Snapshot) -> Walker:
    return Walker(snapshot, lambda folder: False, lambda path: None)


def _prefixes(trial: Trial, python: Seen) -> list[str]:
    """The program's own folders: environments of its interpreters, its scripts' folders."""
    wanted = [interpreter.prefix for interpreter in python.interpreters.values()]
    wanted += [_script_folder(process) for process in trial.processes]
    wanted += [os.path.dirname(process.exe) for process in trial.processes]
    system = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc")
    return [
        os.path.realpath(folder)
        for folder in dict.fromkeys(wanted)
        if folder and not any(mounts.is_under(folder, s) for s in system)
    ]


def _script_folder(process: Process) -> str:
    """The folder of the first argument that names a file, or ""."""
    for word in process.argv[1:]:
        path = os.path.join(process.cwd, word)  # of a folder that is gone no name is known
        if not word.startswith("-") and os.path.isabs(path) and os.path.isfile(path):
            return os.path.dirname(path)
    return ""


def _own_folders(trial: Trial) -> set[str]:
    """Working directories and script folders: where users keep what they change."""
    folders = {process.cwd for process in trial.processes}
    folders |= {_script_folder(process) for process in trial.processes}
    folders.discard("")
    return folders | {os.path.realpath(folder) for folder in folders}


def _loaded_from(trial: Trial, snapshot: Snapshot) -> set[str]:
    """The directories, canonical, that ld.so loaded something from."""
    walker = _plain_walker(snapshot)
    loaded = {record.path for _, record in trial.records() if record.kind == "load"}
    return {
        walker.resolve(path).path.rpartition("/")[0]
        for path in loaded
        if path.startswith("/") and not is_kernel(path)
    }


def _take(plan: Plan, process: Process, record: Record) -> None:
    """Let the plan know one thing that the trial did."""
    kind, path, status = record.kind, record.path, record.status
    if kind == "list":
        plan.list_folder(path, status)
    elif kind == "open":
        flags = int(record.extra, 8) if _is_octal(record.extra) else 0
        reads = status == 0 and flags & os.O_ACCMODE == os.O_RDONLY and not flags & os.O_DIRECTORY
        plan.look_up(path, status, follow=not flags & os.O_NOFOLLOW, content=reads)
    elif kind in LOOKUPS:
        plan.look_up(path, status, follow=kind not in _NO_FOLLOW)
    elif kind == "exec":
        plan.look_up(path, status, content=status == 0, executed=True)
    elif kind == "load":
        plan.look_up(path, 0, content=True)
    elif kind == "search" and status == 0 and record.extra.startswith("/"):
        plan.look_up(record.extra, 0, content=True)
    elif kind == PROBE and status:
        plan.passed_over(path)
    elif kind == "write" and status == 0:
        plan.wrote(path)


def _is_octal(text: str) -> bool:
    return bool(text) and all(digit in "01234567" for digit in text)


def _add_companions(plan: Plan, python: Seen) -> None:
    """The source beside byte code that was used (tracebacks show it), and the byte code beside
    source that was used (the next run wants it)."""
    for path in plan.content_paths():
        if path.endswith(".pyc"):
            try:
                plan.add_beside(importlib.util.source_from_cache(path))
            except ValueError:
                continue
        elif path.endswith(".py"):
            for interpreter in python.interpreters.values():
                plan.add_beside(interpreter.cached(path))


def _covered(plan: Plan) -> Callable[[str], bool]:
    """Whether a path as recorded leads under a covered root."""
    known: dict[str, bool] = {}

    def covered(path: str) -> bool:
        folder = path.rpartition("/")[0]
        answer = known.get(folder)
        if answer is None:
            inside = bool(folder) and not is_kernel(path)
            answer = known[folder] = inside and plan.coverage.covers(plan.resolve(folder).path)
        return answer or plan.coverage.covers(path)

    return covered


def _program(trial: Trial) -> list[str]:
    """The command line that was tried: of the last program that the first rank became."""
    first = [p for p in trial.processes if p.rank in (0, None) and p.argv]
    return first[-1].argv if len(first) == 1 else (first[0].argv if first else [])
