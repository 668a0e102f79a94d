"""The table of rules, and the order in which they are asked.

A group is asked only if the groups before it found nothing: a launcher that is not there explains
all, and a program that cannot be executed has no libraries to miss. Within a group all may speak.
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from brigade.failure import command, imports, interpreter, launchers, libraries, limits
from brigade.failure import said as words
from brigade.failure.diagnosis import Diagnosis
from brigade.failure.evidence import Evidence, Suspect

if TYPE_CHECKING:
    from brigade.trace.events import Trace

OfProcess = Callable[[Suspect, Evidence], Iterable[Diagnosis]]
OfJob = Callable[[Evidence], Iterable[Diagnosis]]

_SUSPECTS = 4


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
        evidence = dataclasses.replace(evidence, seen=failed(trace))
    return diagnose(evidence)


def failed(trace: Trace) -> list[Suspect]:
    """The processes that ended other than with 0, those first whose children did not."""
    bad = [p for p in trace.processes if p.status]
    parents = {process.parent for process in bad}
    inner = [p for p in bad if p.pid not in parents] + [p for p in bad if p.pid in parents]
    return [
        Suspect(
            argv=[process.exe or process.argv[0], *process.argv[1:]],
            cwd=process.cwd or "/",
            env=process.env,
            status=process.status,
            before_main=process.entry_ns is None and process.status == 127,
        )
        for process in inner
        if process.argv or process.exe
    ]
