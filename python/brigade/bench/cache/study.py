"""The whole of `brigade bench cache`: calibrate, choose sizes, limit the memory, do, conclude."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from brigade.bench.cache import kernel, measure, memory, plan
from brigade.bench.cache.conclude import conclude
from brigade.bench.cache.rates import rates
from brigade.errors import UsageError
from brigade.model.cache import workload
from brigade.model.cache.workload import Step
from brigade.report.host import host


@dataclass(frozen=True)
class Wanted:
    sizes: tuple[int, ...] = (4096, 65536, 1 << 20, 8 << 20)  # of writes
    patterns: tuple[str, ...] = tuple(plan.PATTERNS)
    seconds: float = 60.0
    sleep: float = 0.1
    memory: int | None = None  # None: chosen from the rates
    steps: tuple[Step, ...] = ()  # of a workload that is done instead


def run(
    made: Path, folder: Path, wanted: Wanted, progress: measure.Progress = None
) -> dict[str, Any]:
    """The report, with all samples. Files are made below `folder`, and removed."""
    whole = memory.in_force()
    # FUSE passes it on to a daemon, which may well have a cache
    fuse = kernel.settings(folder, whole)["filesystem"].startswith("fuse")
    direct = not fuse and measure.takes_direct(folder)
    first = plan.calibration(direct, min(1.0, wanted.seconds / 40))
    calibrated = measure.run(made, first, folder, whole, progress)
    found = rates(calibrated)
    patterns = [one for one in wanted.patterns if one != "direct" or direct]
    chosen = plan.sizes(
        plan.Rates(found["write"], found["read"]),
        wanted.seconds,
        len(wanted.sizes) if "back" in patterns else 0,
        wanted.memory,
    )
    with memory.limited(chosen.memory) as room:
        if room.bytes < chosen.memory:  # a limit from above is tighter
            chosen = replace(chosen, memory=room.bytes, series=room.bytes * 3 // 2)
        steps = list(wanted.steps) or plan.study(
            chosen, wanted.sizes, patterns, wanted.sleep, wanted.seconds / 3 / (3 * 4)
        )
        check_space(folder, files_bytes(steps))
        report = {
            "schema": 1,
            "benchmark": "cache",
            "host": host(),
            "kernel": kernel.settings(folder, room),
            "room": asdict(room),
            "limited": room.bytes <= chosen.memory,
            "direct": direct,
            "rates": found,
            "sizes": asdict(chosen),
            "steps": workload.text(steps).splitlines(),
            "calibration": calibrated,
            "results": measure.run(made, steps, folder, room, progress),
        }
    return {**report, "conclusions": conclude(report)}


def check(wanted: Wanted) -> None:
    """Raise UsageError for what cannot be meant."""
    unknown = [name for name in wanted.patterns if name not in plan.PATTERNS]
    if unknown:
        raise UsageError(f"no pattern '{unknown[0]}'", hint=f"there are {', '.join(plan.PATTERNS)}")
    if wanted.memory is not None and wanted.memory < 16 << 20:
        raise UsageError("--memory: less than 16M is too little for a page cache")
    wrong = [size for size in wanted.sizes if size < 1 or size > 1 << 28]
    if wrong:
        raise UsageError(f"--sizes: writes have 1 byte to 256 MiB, not {wrong[0]}")
    if "direct" in wanted.patterns and any(size % 4096 for size in wanted.sizes):
        raise UsageError(
            "O_DIRECT needs multiples of 4096 bytes", hint="--patterns back,sleep,fsync"
        )


def check_space(folder: Path, needed: int) -> None:
    """Raise UsageError if a file system has less than `needed` bytes."""
    there = os.statvfs(folder)
    if there.f_bavail * there.f_frsize < needed:
        raise UsageError(
            f"{folder}: the study needs {needed >> 20} MiB, there are "
            f"{there.f_bavail * there.f_frsize >> 20}",
            hint="another --dir, or less --memory",
        )


def files_bytes(steps: Sequence[Step]) -> int:
    """Most bytes that the files of these steps have at once."""
    sizes: dict[str, int] = {}
    most = 0
    for step in steps:
        if step.operation == "write":
            sizes[step.file] = max(sizes.get(step.file, 0), step.at + step.bytes)
        elif step.operation == "remove":
            sizes.pop(step.file, None)
        most = max(most, sum(sizes.values()))
    return most
