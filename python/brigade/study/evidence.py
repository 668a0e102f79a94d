"""What a variant really looks up: one start of it with one rank, its system calls traced."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from brigade.errors import BrigadeError
from brigade.paths import native
from brigade.study.plan import Variant
from brigade.study.run import Timing, command_of, run, surroundings
from brigade.trace import native as traces
from brigade.trace.events import Event, Trace
from brigade.trial.mounts import KERNEL_FOLDERS, MountTable, is_under, parse

COUNTED = ("open", "stat", "list", "link", "exec")
_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
_LIBRARY = re.compile(r"lib[^/]*\.so(?:\.[\d.]+)?$")


@dataclass(frozen=True)
class Strays:
    """Look-ups that went where none should go."""

    calls: int
    found: int  # of them, those that found something
    examples: list[str]


def traced(variant: Variant, folder: Path, timing: Timing) -> Trace:
    """Start it once with one rank; the trace is written to `folder`, which is made.

    Raises BrigadeError if it fails, or is Brigade's and was started without an image.
    """
    folder.mkdir(parents=True)
    prefix = [str(native("brigade-trace")), "--out", str(folder), "--"]
    report = folder / "report.json" if variant.brigade else None
    with surroundings(variant):
        command = command_of(variant, 1, prefix, str(report) if report else None)
    run(command, variant, timing)
    if report:
        unstaged = json.loads(report.read_text(encoding="utf-8")).get("unstaged")
        if unstaged:
            raise BrigadeError(f"it ran without an image: {unstaged}")
    return traces.load(folder)


def asked(trace: Trace) -> list[Event]:
    """What asked a file system about a path."""
    return [
        event
        for _, event in trace.events()
        if event.kind in COUNTED and not event.by_fd and event.path.startswith("/")
    ]


def calls(trace: Trace) -> dict[str, int]:
    """Calls by path on what is not memory: {"calls", "failed", and each kind}."""
    tables = {host: MountTable(parse(text)) for host, text in trace.mountinfo.items()}
    table = next(iter(tables.values()), MountTable([]))
    counts: Counter[str] = Counter(calls=0, failed=0)
    for event in asked(trace):
        if _in_memory(event.path, table):
            continue
        counts["calls"] += 1
        counts["failed"] += event.error != 0
        counts[event.kind] += 1
    return dict(counts)


def _in_memory(path: str, table: MountTable) -> bool:
    if any(is_under(path, folder) for folder in KERNEL_FOLDERS if folder != "/dev"):
        return True
    mount = table.of(path.rstrip("/") or "/")
    return mount is not None and mount.fstype in _MEMORY


def strays(trace: Trace, folders: list[str]) -> Strays:
    """What was looked up at the old places, although a copy was started."""
    events = [e for e in asked(trace) if any(is_under(e.path, folder) for folder in folders)]
    paths = Counter(event.path for event in events if not event.error)
    paths.update({event.path: 0 for event in events})
    examples = [path for path, _ in paths.most_common(3)]
    return Strays(len(events), sum(not event.error for event in events), examples)


def libraries(trace: Trace) -> dict[str, str]:
    """Name -> path of every shared library that was opened, as the search found it."""
    found: dict[str, str] = {}
    for event in asked(trace):
        name = os.path.basename(event.path)
        if event.kind == "open" and not event.error and _LIBRARY.fullmatch(name):
            found.setdefault(name, event.path)
    return found
