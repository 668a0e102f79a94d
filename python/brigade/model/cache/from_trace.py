"""What a traced program did to files, as a workload for the simulator. Pure.

A trace has no offsets: a file is taken to be read and written from its begin on after each open,
call after call. Calls of one kind on one file with less than PAUSE_S between them are one step, in
calls of their mean size; a longer pause, in which the program computes, is a step `sleep`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from brigade.errors import UsageError
from brigade.model.cache.workload import MOVES, Step
from brigade.trace.events import Event, Trace

PAUSE_S = 0.001
_NOT_FILES = ("/proc/", "/sys/", "/dev/")
_SYNCS = ("fsync", "fdatasync")


@dataclass
class _Run:
    """Calls that become one step."""

    step: Step
    calls: int

    def closed(self) -> Step:
        return replace(self.step, size=max(1, self.step.bytes // self.calls))


class _Files:
    """Names that a workload may have, and what is known of the files behind them."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.written: set[str] = set()
        self.needed: dict[str, int] = {}  # bytes that must be there before: they are only read

    def name(self, path: str) -> str:
        return self.names.setdefault(path, f"f{len(self.names)}")


def steps(trace: Trace) -> list[Step]:
    """Files that are there first, then what each process does. Raises UsageError if nothing."""
    files, found = _Files(), list[Step]()
    for number, process in enumerate(trace.processes):
        done = _of(process.events, f"p{number}", files)
        if any(step.operation != "sleep" for step in done):
            found += done
    if not found:
        raise UsageError("the trace has no reads and writes of files")
    first = found[0].client
    there = [Step("file", name, bytes_, client=first) for name, bytes_ in files.needed.items()]
    return there + found


def _of(events: Sequence[Event], client: str, files: _Files) -> list[Step]:
    """The steps of one process; before the first it sleeps until that begins."""
    found: list[Step] = []
    position: dict[str, int] = {}
    run: _Run | None = None
    ended = 0.0
    for event in sorted(events, key=lambda one: one.time_ns):
        if event.error or not event.path.startswith("/") or event.path.startswith(_NOT_FILES):
            continue
        if event.kind == "open":
            position[event.path] = 0
            continue
        step = _step(event, client, files, position)
        if step is None:
            continue
        pause = event.time_ns / 1e9 - ended
        ended = (event.time_ns + event.took_ns) / 1e9
        if run and pause < PAUSE_S and _goes_on(run.step, step):
            run.step = replace(run.step, bytes=run.step.bytes + step.bytes)
            run.calls += 1
            continue
        found += [run.closed()] if run else []
        if pause >= PAUSE_S:
            found.append(Step("sleep", sleep=pause, client=client))
        run = _Run(step, 1) if step.operation in MOVES else None
        found += [] if run else [step]
    return found + ([run.closed()] if run else [])


def _step(event: Event, client: str, files: _Files, position: dict[str, int]) -> Step | None:
    path = event.path
    if event.kind in ("read", "write") and event.bytes > 0:
        name, at = files.name(path), position.get(path, 0)
        position[path] = at + event.bytes
        if event.kind == "write":
            files.written.add(name)
        elif name not in files.written:
            files.needed[name] = max(files.needed.get(name, 0), at + event.bytes)
        label = f"{event.kind} {os.path.basename(path)}"
        return Step(event.kind, name, event.bytes, at=at, client=client, label=label)
    if event.call in _SYNCS and files.names.get(path) in files.written:
        label = f"fsync {os.path.basename(path)}"
        return Step("fsync", files.name(path), client=client, label=label)
    return None


def _goes_on(run: Step, step: Step) -> bool:
    same = (run.operation, run.file) == (step.operation, step.file)
    return same and run.at + run.bytes == step.at
