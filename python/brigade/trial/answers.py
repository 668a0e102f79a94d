"""What ld.so found, ready to be answered at once: (search context, requester, name) -> path.

The context stands for what else decides a search: the executable and `LD_LIBRARY_PATH` as
the process was started with it. If one question got two answers in a trial, the order of
loading or the ranks decided, and the image must not: the question is left to ld.so.
"""

from __future__ import annotations

from dataclasses import dataclass

from brigade.image.writer import search_context
from brigade.trial.record import Trial


@dataclass(frozen=True)
class Answer:
    """`path` is "" if ld.so found nothing."""

    context: int
    requester: str
    name: str
    path: str


@dataclass(frozen=True)
class Conflict:
    """One question with several answers."""

    requester: str
    name: str
    paths: tuple[str, ...]


def answers(trial: Trial) -> tuple[list[Answer], list[Conflict]]:
    """The answers of a trial in order of first use, and what was answered in two ways."""
    found: dict[tuple[int, str, str], dict[str, None]] = {}
    for process in trial.processes:
        context: int | None = None
        for record in process.records:
            if record.kind != "search":
                continue
            if context is None:
                context = search_context(process.exe, process.ld_library_path)
            path = record.extra if record.status == 0 else ""
            found.setdefault((context, record.by, record.path), {})[path] = None
    good, conflicts = [], []
    for (context, requester, name), paths in found.items():
        if len(paths) == 1:
            good.append(Answer(context, requester, name, next(iter(paths))))
        else:
            conflicts.append(Conflict(requester, name, tuple(paths)))
    return good, conflicts
