"""What modules did while they were imported, of each rank: the records of a trial for `--fork`.

docs/design/0023-fork.md says what is recorded. A rank is here the first Python process of that
rank: children that it starts are programs of their own.

What must stay true: events of a rank stand in the order in which they happened first; a process
that was not watched is said not to be, because nothing can be concluded from its silence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from brigade.trial.record import Process, Trial


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


def rank_modules(trial: Trial) -> list[RankModules]:
    """Each rank of the trial that has a Python process, or the only process without a rank."""
    chosen: dict[int, Process] = {}
    for process in trial.processes:  # in the order in which they started
        rank = 0 if process.rank is None else process.rank
        if rank not in chosen and any(r.kind == "interpreter" for r in process.records):
            chosen[rank] = process
    return [of_process(rank, chosen[rank]) for rank in sorted(chosen)]


def first_processes(trial: Trial) -> dict[int, Process]:
    """What the launcher started as each rank, or the first process without a rank."""
    first: dict[int, Process] = {}
    for process in trial.processes:  # in the order in which they started
        first.setdefault(process.rank or 0, process)
    return first


def rank_numbers(trial: Trial) -> set[int]:
    """All ranks of the trial, with or without Python."""
    return {process.rank or 0 for process in trial.processes}


def of_process(rank: int, process: Process) -> RankModules:
    """What the records of one process say."""
    what = RankModules(rank, process.host)
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
            place = places.get(record.status)
            if record.extra == "failed" and place is not None:
                what.executions[place] = what.executions[place]._replace(failed=True)
        elif record.kind == "load":
            what.loaded.append((executing[max(executing)] if executing else "", record.path))
        elif record.kind == "event":
            event = Event(record.by, record.path, record.extra, len(what.executions))
            what.events.append(event)
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
