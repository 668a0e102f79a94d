"""The table of rules, and the order in which they are asked.

A group is asked only if the groups before it found nothing: a launcher that is not there explains
all, and a program that cannot be executed has no libraries to miss. Within a group all may speak.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from brigade.failure import command, imports, interpreter, launchers, libraries, limits
from brigade.failure import said as words
from brigade.failure.diagnosis import Diagnosis
from brigade.failure.evidence import Evidence, Suspect
from brigade.trace.ranks import SEARCH_NAMES

if TYPE_CHECKING:
    from brigade.trace.events import Trace, TracedProcess

OfProcess = Callable[[Suspect, Evidence], Iterable[Diagnosis]]
OfJob = Callable[[Evidence], Iterable[Diagnosis]]

_SUSPECTS = 6


def of_each(rule: OfProcess) -> OfJob:
    """A rule about one process, asked about each that may have failed, until it speaks."""

    def ask(evidence: Evidence) -> Iterator[Diagnosis]:
        for suspect in [*words.suspects(evidence), *evidence.suspects][:_SUSPECTS]:
            found = list(rule(suspect, evidence))
            yield from found
            if found:
                return

    return ask


RULES: list[tuple[str, OfJob]] = [
    ("the launcher refuses", launchers.examine),
    ("the program cannot be executed", of_each(command.examine)),
    ("the interpreter does not come up", of_each(interpreter.examine)),
    ("ld.so ends it", of_each(libraries.examine)),
    ("a limit is met", limits.examine),
    ("a script imports what is not there", of_each(imports.examine)),
    ("the launcher is another MPI's", launchers.examine_mpi),
    ("the processor lacks an instruction", limits.examine_processor),
]
# Signals by which a user or a batch system ends a job: nothing has failed.
_TOLD_TO_END = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)


def diagnose(evidence: Evidence) -> list[Diagnosis]:
    """What is certain about a job that failed; most often nothing."""
    if evidence.status == 0 or evidence.signal in _TOLD_TO_END:
        return []
    for _, rule in RULES:
        found: list[Diagnosis] = []
        # what is looked at may be anything; a rule that stumbles over it has nothing to say
        with contextlib.suppress(OSError, ValueError, RecursionError, MemoryError):
            for diagnosis in rule(evidence):
                found.append(diagnosis)
        if found:
            return _once(found)
    return []


def _once(found: list[Diagnosis]) -> list[Diagnosis]:
    return list({diagnosis.what: diagnosis for diagnosis in found}.values())


def after(evidence: Evidence, trace: Trace | None = None) -> list[Diagnosis]:
    """The same, with what a trace saw of processes that ended badly."""
    if evidence.status == 0:
        return []
    if trace is not None:
        evidence = dataclasses.replace(evidence, seen=failed(trace, evidence.env))
    return diagnose(evidence)


def failed(trace: Trace, env: Mapping[str, str]) -> list[Suspect]:
    """The processes that ended other than with 0: those first that ld.so ended, then children
    before their parents. `env`: what was not recorded of theirs is taken from there."""
    bad = [p for p in trace.processes if p.status and (p.argv or p.exe)]
    parents = {process.parent for process in bad}
    bad.sort(key=lambda p: (p.entry_ns is not None, p.pid in parents))
    return [_suspect(process, env) for process in bad]


def _suspect(process: TracedProcess, env: Mapping[str, str]) -> Suspect:
    """An environment is known by the name of its interpreter, not by the file behind its links."""
    others = {name: value for name, value in env.items() if name not in SEARCH_NAMES}
    by_name = Suspect(process.argv, process.cwd or "/", {**others, **process.env}, process.status)
    path = by_name.path
    if process.exe and (path is None or os.path.realpath(path) != process.exe):
        by_name.argv = [process.exe, *process.argv[1:]]
    by_name.before_main = process.entry_ns is None and process.status == 127
    return by_name
