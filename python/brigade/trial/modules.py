"""What modules did while they were imported, of each rank: the records of a trial for `--fork`.

docs/design/0023-fork.md says what is recorded. A rank is here the program of a rank, if that is a
Python, or each of several that a launcher started (programs.py): other children are programs of
their own.

What must stay true: events of a rank stand in the order in which they happened first; a process
that was not watched is said not to be, because nothing can be concluded from its silence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from brigade.trial.programs import called, is_interpreter, programs
from brigade.trial.record import LOOKUPS, Process, Trial


class Execution(NamedTuple):
    """A module's code was run. `by`: the module being executed that asked; "": the program.
    `failed`: it raised."""

    module: str
    origin: str
    by: str
    failed: bool = False


class Event(NamedTuple):
    """What happened in the execution of `module`; "": outside any, by the program itself."""

    module: str
    what: str
    detail: str
    executed: int  # how many executions had begun by then


class Look(NamedTuple):
    """The program itself looked for a file, between its imports."""

    path: str
    opened: bool
    there: bool
    executed: int  # how many executions had begun by then


@dataclass
class RankModules:
    """What one rank's Python imported and what that did."""

    rank: int
    host: str
    watched: bool = False
    executions: list[Execution] = field(default_factory=list)  # in the order of their beginning
    asked: set[tuple[str, str]] = field(default_factory=set)  # (who, for which), executed or not
    events: list[Event] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)  # name -> digest of the value
    loaded: list[tuple[str, str]] = field(default_factory=list)  # (in whose execution, object)
    # (who brings a library, who loaded it first) -> the library; brigade.fork.libraries
    follows: dict[tuple[str, str], str] = field(default_factory=dict)
    main: str = ""  # the file that `-m MODULE` means
    arguments: str = ""  # what tells those of the program from others
    cwd: str = ""
    ends: dict[str, int] = field(default_factory=dict)  # how many had begun when each ended
    looks: list[Look] = field(default_factory=list)


def rank_modules(trial: Trial) -> list[RankModules]:
    """Each rank of the trial whose program is a Python; numbered anew where a launcher started
    several as one rank."""
    chosen = [
        (rank, process)
        for rank, processes in sorted(programs(trial).items())
        for process in processes
        if is_interpreter(process)
    ]
    if len({rank for rank, _ in chosen}) < len(chosen):
        chosen = [(number, process) for number, (_, process) in enumerate(chosen)]
    found = [of_process(rank, process) for rank, process in chosen]
    for one in found:
        one.events = [e for e in one.events if (e.what, e.detail) != _MAY_BE_UNDONE]
    return found


def place(detail: str) -> tuple[str, list[tuple[str, int]]]:
    """Where somebody imports something, of an event `asks`: the file, and from its own statement
    inwards the functions in it and the lines in them. Line 0: before a program begins."""
    lines, _, file = detail.partition(":")
    first, *more = lines.split(" ")
    inside = [(name, int(line)) for name, line in zip(more[::2], more[1::2])]
    return file, [("<module>", int(first)), *inside]


def count_programs(trial: Trial) -> int:
    """All programs of all ranks, with or without Python."""
    return sum(map(len, programs(trial).values()))


def first_programs(trial: Trial) -> dict[int, Process]:
    """The program of each rank, or the first that its launcher started."""
    return {rank: processes[0] for rank, processes in programs(trial).items()}


#: A call that binds a thread to processors: of a Python its own look tells what has become of it.
_MAY_BE_UNDONE = ("bind", "call")
SEVERAL = "several "
#: Who does what it takes to show a warning of a module that is being imported: a template keeps
#: the warning for its ranks (imports/site/_brigade_warned.py).
WARNING_SHOWN = "warnings.warn()"
#: Who asks about the terminal when an argument is added to a parser, and forgets what was said
#: (imports/site/_brigade_calls.py).
ARGUMENT_ADDED = "argparse.add_argument()"
_NOBODY = (WARNING_SHOWN, ARGUMENT_ADDED)


def behind(trial: Trial) -> str:
    """What the program is known by (`called`) if wrappers or a launcher stand in front of it, after
    `SEVERAL` if that starts more than one; "" if it is what was started, or the ranks of the trial
    do not agree."""
    first: dict[int, Process] = {}
    for process in trial.processes:
        first.setdefault(process.rank or 0, process)
    found = programs(trial)
    words = {called(process) for processes in found.values() for process in processes}
    if len(words) != 1 or any(found[rank][0] is first[rank] for rank in found):
        return ""
    several = SEVERAL if any(len(processes) > 1 for processes in found.values()) else ""
    return several + words.pop()


def of_process(rank: int, process: Process) -> RankModules:
    """What the records of one process say."""
    what = RankModules(rank, process.host, cwd=process.cwd)
    executing: dict[int, str] = {}  # by the order of their beginnings
    places: dict[int, int] = {}  # likewise: where they stand
    for record in sorted(process.records, key=lambda r: r.time_ns):
        if record.kind == "imported":
            if record.status > 0:
                executing[record.status] = record.path
                places[record.status] = len(what.executions)
                what.executions.append(Execution(record.path, record.extra, record.by))
            what.asked.add((record.by, record.path))
        elif record.kind == "executed":
            executing.pop(record.status, None)
            what.ends[record.path] = len(what.executions)
            place = places.get(record.status)
            if record.extra == "failed" and place is not None:
                what.executions[place] = what.executions[place]._replace(failed=True)
        elif record.kind == "load":
            what.loaded.append((executing[max(executing)] if executing else "", record.path))
        elif record.kind == "event" and record.path == "script":
            what.main = record.extra
        elif record.kind == "event" and record.path == "arguments":
            what.arguments = record.extra
        elif record.kind == "event" and record.by not in _NOBODY:
            event = Event(record.by, record.path, record.extra, len(what.executions))
            what.events.append(event)
        elif record.kind in LOOKUPS and what.arguments and not executing:
            there, number = record.status == 0, len(what.executions)
            what.looks.append(Look(record.path, record.kind == "open", there, number))
        elif record.kind == "digest":
            what.variables[record.path] = record.extra
        elif record.kind == "watch":
            what.watched = True
    return what


def differing(ranks: Iterable[RankModules]) -> set[str]:
    """The variables that ranks of one node had different values of; of all, if no two of them were
    on one node."""
    by_host: dict[str, list[RankModules]] = {}
    for rank in ranks:
        by_host.setdefault(rank.host, []).append(rank)
    groups = [group for group in by_host.values() if len(group) > 1]
    if not groups:
        groups = [[rank for group in by_host.values() for rank in group]]
    found = set()
    for group in groups:
        for name in set().union(*(rank.variables for rank in group)):
            if len({rank.variables.get(name) for rank in group}) > 1:
                found.add(name)
    return found
