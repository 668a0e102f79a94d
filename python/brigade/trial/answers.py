"""What ld.so found, ready to be answered at once: (search context, requester, name) -> path.

The context stands for what else decides a search: the executable and `LD_LIBRARY_PATH` as
the process was started with it. If one question got two answers in a trial, the order of
loading or the ranks decided, and the image must not: the question is left to ld.so.

So is one that the processor decides: a folder may hold builds of a library for several, in
folders of its own (`glibc-hwcaps`), and the job's nodes need not have the trial's.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Callable, Optional

from brigade.image.writer import search_context
from brigade.trial.record import PROBE, Process, Trial

HWCAPS = "glibc-hwcaps"
#: what ld.so before glibc 2.37 chose by the processor, without a folder around
LEGACY = frozenset({"haswell", "xeon_phi", "avx512_1", "atomics"})

Names = Callable[[str], Optional[Collection[str]]]  #: of a directory, None if it cannot be read


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


def answers(trial: Trial, names: Names | None = None) -> tuple[list[Answer], list[Conflict]]:
    """The answers of a trial in order of first use, and what was answered in two ways. `names`:
    what lists a directory."""
    found: dict[tuple[int, str, str], dict[str, None]] = {}
    left: set[tuple[int, str, str]] = set()  # to ld.so
    variants = _Variants(names or _list)
    for process in trial.processes:
        context: int | None = None
        tried = _tried(process)
        for record in process.records:
            if record.kind != "search":
                continue
            if context is None:
                context = search_context(process.exe, process.ld_library_path)
            question = (context, record.by, record.path)
            path = record.extra if record.status == 0 else ""
            found.setdefault(question, {})[path] = None
            if variants.decide(record.path, {path, *tried.get(question[1:], ())}):
                left.add(question)
    good, conflicts = [], []
    for (context, requester, name), paths in found.items():
        if (context, requester, name) in left:
            continue
        if len(paths) == 1:
            good.append(Answer(context, requester, name, next(iter(paths))))
        else:
            conflicts.append(Conflict(requester, name, tuple(paths)))
    return good, conflicts


def _tried(process: Process) -> dict[tuple[str, str], list[str]]:
    """The candidates of searches, by requester and name."""
    tried: dict[tuple[str, str], list[str]] = {}
    for record in process.records:
        if record.kind == PROBE:
            name = record.path.rpartition("/")[2]
            tried.setdefault((record.by, name), []).append(record.path)
    return tried


class _Variants:
    """Which names have a build of their own for some processor, in folders that were searched."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[str, frozenset[str]] = {}

    def decide(self, name: str, candidates: Collection[str]) -> bool:
        """Whether another processor might find `name` elsewhere than at one of the candidates."""
        return "/" not in name and any(name in self._below(_searched(c)) for c in candidates if c)

    def _below(self, folder: str) -> frozenset[str]:
        known = self._known.get(folder)
        if known is None:
            inside = self._folders(folder)
            known = frozenset(name for each in inside for name in self._names(each) or ())
            self._known[folder] = known
        return known

    def _folders(self, folder: str) -> Iterator[str]:
        names = self._names(folder) or ()
        if HWCAPS in names:
            for name in self._names(f"{folder}/{HWCAPS}") or ():
                yield f"{folder}/{HWCAPS}/{name}"
        for name in LEGACY.intersection(names):
            yield f"{folder}/{name}"
            yield from self._folders(f"{folder}/{name}")


def _searched(candidate: str) -> str:
    """The folder that ld.so searched when it tried a path."""
    folder = candidate.rpartition("/")[0]
    around, found, _ = folder.partition(f"/{HWCAPS}/")
    if found:
        return around
    while folder.rpartition("/")[2] in LEGACY:
        folder = folder.rpartition("/")[0]
    return folder


def _list(folder: str) -> Collection[str] | None:
    try:
        return os.listdir(folder)
    except OSError:
        return None
