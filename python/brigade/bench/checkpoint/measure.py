"""Runs the checkpoint program in rounds, and keeps every sample.

In a round each cell has its turn, in an order of its own, and within a cell each variant, in an
order of its own: what disturbs one disturbs its neighbours, and ratios are between neighbours.
Open MPI chooses its MPI-IO component when a job starts, so a round has one job for `ompio`, one for
`romio` and one for `preloaded`, and every other variant runs in each.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

from brigade.bench.checkpoint.plan import Cell, Variant, line
from brigade.bench.checkpoint.program import Program
from brigade.bench.component import job as component_job
from brigade.bench.run import gather
from brigade.errors import BrigadeError

Progress = Optional[Callable[[int, int], None]]  # (samples, samples in all)


@dataclass(frozen=True)
class Settings:
    folder: Path  # on the file system that is measured
    launcher: tuple[str, ...]
    rounds: int = 5
    sync: bool = True
    read: bool = True
    seed: int = 1
    publish: bool = False  # peers, too, write beside the name and rename at the end


def measure(
    program: Program,
    cells: Sequence[Cell],
    variants: Sequence[Variant],
    settings: Settings,
    progress: Progress = None,
) -> dict[str, Any]:
    """All rounds: {"samples": [...], "mpi", "nodes", "ranks"}; BrigadeError if a byte is wrong."""
    chance = random.Random(settings.seed)
    components = list(dict.fromkeys(v.component for v in variants if v.component)) or [""]
    total = settings.rounds * sum(
        len(cells) * len(_of(variants, component)) for component in components
    )
    samples: list[dict[str, Any]] = []
    about: dict[str, Any] = {}
    for number in range(settings.rounds):
        for component in chance.sample(components, len(components)):
            turns = _turns(cells, _of(variants, component), chance)
            heard = lambda: progress and progress(len(samples), total)  # noqa: E731
            about = _job(program, turns, component, number, settings, samples, heard)
    return {**about, "samples": samples}


def _of(variants: Sequence[Variant], component: str) -> list[Variant]:
    return [v for v in variants if v.component in ("", component)]


Turn = tuple[Cell, int, Variant]


def _turns(cells: Sequence[Cell], variants: Sequence[Variant], chance: random.Random) -> list[Turn]:
    return [
        (cells[i], i, way)
        for i in chance.sample(range(len(cells)), len(cells))
        for way in chance.sample(variants, len(variants))
    ]


def _job(
    program: Program,
    turns: list[Turn],
    component: str,
    number: int,
    settings: Settings,
    samples: list[dict[str, Any]],
    heard: Callable[[], Any],
) -> dict[str, Any]:
    """One job; appends its samples. Returns what it says about itself."""
    about: dict[str, Any] = {}
    schedule = settings.folder / f".schedule-{os.getpid()}"
    file = str(settings.folder / f"checkpoint-{os.getpid()}")
    flags = {"sync": int(settings.sync), "publish": int(settings.publish)}
    flags |= {"read": int(settings.read), "check": int(number == 0)}
    text = [line(n, c, v, seed=i + 1, **flags) for n, (c, i, v) in enumerate(turns)]

    def take(said: dict[str, Any]) -> None:
        if "mpi" in said:
            about.update(said)
        elif "failed" in said:
            raise BrigadeError(_failure(said, turns))
        else:
            samples.append(_sample(said, turns, component, number))
            heard()

    words = [str(program.path), str(schedule), file]
    command, environment = component_job(settings.launcher, words, component)
    try:
        schedule.write_text("\n".join(text) + "\n", encoding="utf-8")
        status = gather(command, take, environment)
    finally:
        schedule.unlink(missing_ok=True)
    if status:
        raise BrigadeError(f"{command[0]} ended with status {status}")
    if not about:
        raise BrigadeError(
            f"{command[0]} ended well, but no rank has said anything",
            hint="its standard output must come back: `srun --output=FILE` keeps it away",
        )
    if about["ranks"] != turns[0][0].ranks:
        raise BrigadeError(f"{about['ranks']} ranks were started, not {turns[0][0].ranks}")
    return about


def _sample(said: dict[str, Any], turns: list[Turn], component: str, number: int) -> dict[str, Any]:
    cell, _, way = turns[said["id"]]
    sample = {
        "pattern": cell.pattern,
        "record": cell.record,
        "ranks": cell.ranks,
        "bytes": cell.bytes,
        "header": cell.header,
        "variant": way.name,
        "component": component,
        "round": number,
        "write": said["write"],
        "read": said.get("read"),
    }
    return {**sample, "note": said["note"]} if said.get("note") else sample


def _failure(said: dict[str, Any], turns: list[Turn]) -> str:
    if not 0 <= said["id"] < len(turns):
        return f"the benchmark's program: {said['failed']}"
    cell, _, way = turns[said["id"]]
    return f"{way.name}, {cell.name}, {cell.ranks} ranks, rank {said['rank']}: {said['failed']}"
