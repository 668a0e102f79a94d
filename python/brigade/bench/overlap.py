"""Checkpoints against a program's own barriers: how long do they take while something is written?

drivers/overlap.c is compiled with the MPI's own compiler, linked with libbrigade_pmpi before MPI,
and started once a round; in a round every variant has its turn, in an order of its own. A turn
takes the barriers before, writes, and goes on with barriers until the file is there.
"""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

from brigade import paths
from brigade.bench.checkpoint.program import DRIVERS, SHARED
from brigade.bench.checkpoint.summary import quantile
from brigade.bench.drivers.pynamic import MARK
from brigade.bench.run import gather
from brigade.errors import BrigadeError

SOURCES = [DRIVERS / "overlap.c", *SHARED]
VARIANTS = {
    "plain": "each rank writes a file of its own; the kernel writes it back when it likes",
    "sync": "Brigade; commit returns when the file is there",
    "async": "Brigade, in the background, as fast as it goes",
    "yielding": "Brigade, in the background, giving way to the barriers",
}
Progress = Optional[Callable[[int, int], None]]


@dataclass(frozen=True)
class Settings:
    folder: Path  # on the file system that is measured
    launcher: tuple[str, ...]
    ranks: int
    bytes: int  # a rank
    rounds: int = 5
    step_us: int = 1000
    barriers: int = 500  # before each write
    slowdown: float = 1.1
    rate: int = 0  # bytes a second and rank; 0: no cap
    seed: int = 1
    doubles: int = 0  # of an allreduce after each barrier; 0: there is none
    after: int = 0  # barriers once the file is there
    idle: bool = False  # a step sleeps, as if its work were done elsewhere


def words(mpicc: list[str]) -> list[str]:
    """The command that compiles the program, but for where it goes."""
    native = paths.native("libbrigade_io.so").parent
    made = [*mpicc, "-O2", "-w", f'-DMARK="{MARK}"', f"-I{native}/include"]
    made += [str(source) for source in SOURCES if source.suffix == ".c"]
    made += [f"-L{native}", f"-Wl,-rpath,{native}", "-Wl,--no-as-needed", "-lbrigade_pmpi"]
    return [*made, "-lbrigade_io", "-pthread"]


def measure(
    program: Path,
    variants: Sequence[str],
    settings: Settings,
    progress: Progress = None,
    way: Callable[[str, Settings], tuple[str, str]] | None = None,
) -> list[dict[str, Any]]:
    """The samples of all rounds; BrigadeError if a write failed. `way`: the mode of a variant in
    the program, and its hints."""
    chance = random.Random(settings.seed)
    samples: list[dict[str, Any]] = []
    for number in range(settings.rounds):
        turns = chance.sample(list(variants), len(variants))
        for sample in _job(program, turns, settings, way or mode_and_hints):
            samples.append({"round": number, **sample})
        if progress:
            progress(number + 1, settings.rounds)
    return samples


def _job(
    program: Path,
    turns: Sequence[str],
    settings: Settings,
    way: Callable[[str, Settings], tuple[str, str]],
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def take(said: dict[str, Any]) -> None:
        if "failed" in said:
            raise BrigadeError(f"rank {said['rank']}: {said['failed']}")
        if said.get("ranks", settings.ranks) != settings.ranks:
            raise BrigadeError(f"{said['ranks']} ranks were started, not {settings.ranks}")
        if "turn" in said:
            found.append({"variant": turns[said.pop("turn")], **said})

    schedule = settings.folder / "schedule"
    lines = [_line(number, way(name, settings), settings) for number, name in enumerate(turns)]
    schedule.write_text("\n".join(lines) + "\n", encoding="utf-8")
    file = settings.folder / f"overlap-{os.getpid()}"
    command = [*settings.launcher, str(program), str(schedule), str(file)]
    status = gather(command, take)
    if status:
        raise BrigadeError(f"{command[0]} ended with status {status}")
    if len(found) != len(turns):
        raise BrigadeError(
            f"{command[0]} ended well, but not every turn was heard of",
            hint="its standard output must come back: `srun --output=FILE` keeps it away",
        )
    return found


def mode_and_hints(name: str, settings: Settings) -> tuple[str, str]:
    """How the program writes as one of VARIANTS."""
    if name in ("async", "yielding"):
        return "async", behind(settings, settings.slowdown if name == "yielding" else 1000)
    return name, "sync=yes"


def behind(settings: Settings, slowdown: float) -> str:
    """Hints of a write in the background."""
    # The whole of what a rank writes fits into its buffer: as the page cache would take it.
    hints = f"async=yes:buffer={max(settings.bytes + (8 << 20), 64 << 10)}:slowdown={slowdown}"
    return f"{hints}:rate={settings.rate}" if settings.rate else hints


def _line(number: int, way: tuple[str, str], settings: Settings) -> str:
    step_us = -settings.step_us if settings.idle else settings.step_us
    steps = (step_us, settings.barriers, settings.doubles, settings.after)
    return " ".join(map(str, (number, *way, settings.bytes, *steps)))


def summarize(samples: Sequence[dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    """An object for each variant; milliseconds, medians over rounds."""
    return [
        _variant(name, [s for s in samples if s["variant"] == name], settings)
        for name in VARIANTS
        if any(s["variant"] == name for s in samples)
    ]


def _variant(name: str, samples: Sequence[dict[str, Any]], settings: Settings) -> dict[str, Any]:
    def middle(of: Callable[[dict[str, Any]], float]) -> float:
        return statistics.median(of(sample) for sample in samples)

    factors = sorted(factor(sample) for sample in samples)
    return {
        "variant": name,
        "n": len(samples),
        "returned_s": middle(lambda s: s["returned"]),
        "done_s": middle(lambda s: s["done"]),
        "mib_s": middle(lambda s: settings.ranks * settings.bytes / 2**20 / s["done"]),
        "before_ms": middle(lambda s: statistics.mean(s["before_us"]) / 1e3),
        "first_ms": middle(lambda s: s["within_us"][0] / 1e3),
        "within_ms": middle(lambda s: statistics.mean(affected(s)) / 1e3),
        "p99_ms": middle(lambda s: quantile(affected(s), 0.99) / 1e3),
        "longest_ms": middle(lambda s: max(affected(s)) / 1e3),
        "factor": statistics.median(factors),
        "factor_low": factors[0],
        "factor_high": factors[-1],
    }


def affected(sample: dict[str, Any]) -> list[float]:
    """The barriers between the write and its end; where it ended at once, as many as before."""
    until = sample["done"] * 1e6 if sample["done"] > sample["returned"] else float("inf")
    within = [us for us, at in zip(sample["within_us"], sample["at_us"]) if at <= until]
    return within or sample["within_us"]


def factor(sample: dict[str, Any]) -> float:
    """How many times as long barriers took, on average."""
    return float(statistics.mean(affected(sample)) / statistics.mean(sample["before_us"]))
