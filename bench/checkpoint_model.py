#!/usr/bin/env python3
"""Hold `brigade model checkpoint` against a real program that is killed again and again.

    python bench/checkpoint_model.py                        one machine: 2 ranks, a minute
    python bench/checkpoint_model.py --fs moosefs           the lab: 2 nodes, one rank each
    python bench/checkpoint_model.py --repeats 20           a narrower band

bench/support/failing.c computes, checkpoints through libbrigade_io (all ranks wait, or the commit
goes on behind), and goes on where its checkpoint stopped. It is measured without failures first:
steps alone and beside a write, writes, copies, starts. From these values the model predicts. Then
jobs are killed at exponentially distributed times and started again until they are done. Writes
OUT/checkpoint-model-FS.json: every event of every job. Needs Open MPI with mpicc.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from support.options import end_in_order, with_io, words
from support.samples import save

from brigade.lab import Lab
from brigade.model.checkpoint import pattern
from brigade.model.checkpoint.simulate import band

SOURCE = Path(__file__).parent / "support/failing.c"
Remove = Callable[[str], None]
Start = Callable[[list[str]], "subprocess.Popen[str]"]


def main() -> int:
    options = arguments()
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        os.environ.setdefault(name, "1")
    os.environ["OMPI_MCA_odls_base_sigkill_timeout"] = "0"
    program = compiled(options)
    for fs in options.fs:
        with place(fs, options) as (folder, start, remove):
            file = folder / "failing.ckpt"
            measure(fs, Program(program, file, start, remove, options), options)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fs", type=words(), default=["disk"], help="disk, moosefs, or both")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"), help="on the local disk")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--mib", type=int, default=64, help="of a checkpoint, each rank")
    parser.add_argument("--step", type=float, default=0.01, help="seconds of a step, about")
    parser.add_argument(
        "--busy", action="store_true", help="steps compute; else they sleep, whoever else computes"
    )
    parser.add_argument("--work", type=float, default=6.0, help="seconds of computing of a job")
    parser.add_argument("--interval", type=float, default=0.75, help="seconds of computing")
    parser.add_argument("--mtbf", type=float, default=3.0, help="seconds between kills, mean")
    parser.add_argument("--repeats", type=int, default=3, help="jobs of each way")
    parser.add_argument("--ways", type=words(), default=["sync", "partial"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mpicc", default="mpicc.openmpi")
    parser.add_argument("--lab", default="failing", help="name of the lab to bring up")
    parser.add_argument("--out", type=Path, default=Path("out/checkpoint-model"))
    options = parser.parse_args()
    if options.repeats < 2:
        parser.error("--repeats: a band takes two jobs of each way at least")
    return options


def compiled(options: argparse.Namespace) -> Path:
    program = Path("/var/tmp/brigade-bench/failing")
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [options.mpicc, "-O2", str(SOURCE), "-o", str(program), *with_io()]
    subprocess.run(command, check=True)
    return program


@contextmanager
def place(fs: str, options: argparse.Namespace) -> Iterator[tuple[Path, Start, Remove]]:
    """A folder on the file system, and ways to start a launcher and to remove files there."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    if fs == "disk":
        folder = options.dir / f"brigade-failing-{os.getpid()}"
        folder.mkdir()
        launcher = ["mpirun.openmpi", "--oversubscribe", "-n", str(options.ranks)]
        try:
            yield (
                folder,
                lambda argv: subprocess.Popen([*launcher, *argv], cwd="/", **pipes),
                lambda names: subprocess.run(["sh", "-c", f"rm -f {names}"], check=True),
            )
        finally:
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()
        return
    lab = Lab.up(name=options.lab, nodes=options.ranks, fs=fs)
    try:
        launcher = ["mpirun", "-n", str(options.ranks), "--map-by", "node"]
        yield (
            Path(lab.shared),
            lambda argv: lab.popen(lab.nodes[0], [*launcher, *argv], cwd="/", **pipes),
            lambda names: lab.run(["sh", "-c", f"rm -f {names}"], cwd="/", check=True),
        )
    finally:
        lab.down()


@dataclass
class Attempt:
    """One start of the program, to its end or to its kill."""

    wall_s: float = 0.0
    killed: bool = False
    started: float = 0.0  # seconds from its launch to its first step; 0: it never came so far
    dying: float = 0.0  # from its kill until nothing of it is left
    events: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Program:
    path: Path
    file: Path
    start: Start
    remove: Remove
    options: argparse.Namespace
    loops: int = 100_000

    def attempt(self, way: str, steps: int, every: int, kill_after: float | None) -> Attempt:
        """Start it once; kill all its ranks after so many seconds, if it has not ended."""
        values = (self.file, way, steps, every, self.loops, self.options.mib << 20)
        begin = time.monotonic()
        job = self.start([str(self.path), *map(str, values)])
        found, pids = Attempt(), []

        def listen() -> None:
            assert job.stdout
            for line in job.stdout:
                if not line.startswith("{"):
                    continue  # what mpirun says about a kill
                said = json.loads(line)
                if said["event"] == "pid":
                    pids.append(said["pid"])
                else:
                    if said["event"] == "begin":
                        found.started = time.monotonic() - begin
                    found.events.append(said)

        ear = threading.Thread(target=listen)
        ear.start()
        try:
            job.wait(kill_after)
        except subprocess.TimeoutExpired:
            found.killed, dies = True, time.monotonic()
            for pid in pids:
                kill(pid)
            if len(pids) < self.options.ranks:  # still starting
                job.terminate()
            job.wait()
            found.dying = time.monotonic() - dies
        ear.join()
        found.wall_s = time.monotonic() - begin
        if not found.killed and job.returncode:
            raise SystemExit(f"failing ended with {job.returncode}")
        return found

    def forget(self) -> None:
        self.remove(f"{self.file}* {self.file.parent}/.{self.file.name}*")


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def seconds(attempts: list[Attempt], event: str) -> list[float]:
    return [said["seconds"] for one in attempts for said in one.events if said["event"] == event]


def pace(attempts: list[Attempt], event: str) -> float:
    """Seconds of a step, of one kind."""
    said = [one for attempt in attempts for one in attempt.events if one["event"] == event]
    count = sum(one["value"] for one in said)
    return sum(one["seconds"] for one in said) / count if count else 0.0


def ending(one: Attempt) -> float:
    """Seconds from the end of its work to that of its job."""
    at = {said["event"]: said["at"] for said in one.events}
    return one.wall_s - one.started - (at["end"] - at["begin"])


def measure(fs: str, program: Program, options: argparse.Namespace) -> None:
    steps, every = round(options.work / options.step), round(options.interval / options.step)
    steps = max(2, round(steps / every)) * every  # whole intervals, as the model has them
    if options.busy:
        trial = program.attempt("none", 100, 100, None)
        program.loops = round(program.loops * options.step / pace([trial], "steps"))
    else:
        program.loops = -round(options.step * 1e6)
    result: dict[str, Any] = {}
    rng = random.Random(options.seed)
    for way in options.ways:
        quiet, starts, jobs = [], [], []
        for _ in range(options.repeats):  # in turn: what drifts, drifts in both
            program.forget()
            quiet.append(program.attempt(way, steps, every, None))
            starts.append(program.attempt(way, steps + every, every, options.step * every))
            jobs.append(killed(program, way, steps, every, rng, options))
        timing = values(way, quiet, starts, every, options)
        predicted = statistics.fmean(one.started + ending(one) for one in quiet)
        predicted += pattern.total_s(timing, steps * timing.work_s / every)
        walls = [sum(one.wall_s for one in attempts) for attempts in jobs]
        result[way] = report(fs, way, timing, predicted, walls, jobs)
        result[way]["without_failures"] = [vars(one) for one in quiet]
    settings = {key: str(value) for key, value in vars(options).items()} | {"fs": fs}
    settings |= {"steps": steps, "every": every, "loops": program.loops}
    samples = {way: one.pop("jobs") for way, one in result.items()}
    path = options.out / f"checkpoint-model-{fs}.json"
    save(path, "checkpoint_model", settings, samples, ways=result)
    print(f"raw samples: {path}")


def values(
    way: str, quiet: list[Attempt], starts: list[Attempt], every: int, options: argparse.Namespace
) -> pattern.Timing:
    """What the model needs to know, from runs without failures."""
    step = pace(quiet, "steps")
    behind = way == "partial"
    writes = sorted(seconds(quiet, "arrived" if behind else "checkpoint"))
    restarts = [one.started for one in [*quiet, *starts] if one.started]
    slowed = pace(quiet, "slowed")
    return pattern.Timing(
        work_s=every * step,
        copy_s=statistics.fmean(seconds(quiet, "checkpoint")) if behind else 0.0,
        write_s=np.array(writes),
        weights=np.ones(len(writes)) / len(writes),
        behind=behind,
        mtbf_s=options.mtbf,
        restart_s=statistics.fmean(restarts) + statistics.fmean(one.dying for one in starts),
        slowdown=max(1.0, slowed / step) if slowed else 1.0,
    )


def killed(
    program: Program, way: str, steps: int, every: int, rng: random.Random,
    options: argparse.Namespace,
) -> list[Attempt]:  # fmt: skip
    """A job from its beginning to its end: all its attempts."""
    program.forget()
    attempts = []
    while not attempts or attempts[-1].killed:
        attempts.append(program.attempt(way, steps, every, rng.expovariate(1 / options.mtbf)))
    return attempts


def report(
    fs: str, way: str, timing: pattern.Timing, predicted: float, walls: list[float],
    jobs: list[list[Attempt]],
) -> dict[str, Any]:  # fmt: skip
    found = band(walls, 2.0)
    parts = {
        "work_s": timing.work_s, "copy_s": timing.copy_s, "write_s": timing.write_s.tolist(),
        "restart_s": timing.restart_s, "slowdown": timing.slowdown, "mtbf_s": timing.mtbf_s,
    }  # fmt: skip
    print(
        f"{fs}, {way}: a step of work {timing.work_s:.2f} s, copy {timing.copy_s:.3f} s, write "
        f"{timing.write_s.mean():.3f} s, slowed {timing.slowdown:.2f} times, restart "
        f"{timing.restart_s:.2f} s\n  predicted {predicted:.1f} s, measured {found.mean:.1f} s "
        f"[{found.low:.1f}, {found.high:.1f}] of {len(walls)} jobs with "
        f"{sum(len(one) - 1 for one in jobs)} kills: "
        f"{'within the band' if found.holds(predicted) else 'OUTSIDE the band'}, "
        f"{predicted / found.mean - 1:+.1%}",
        flush=True,
    )
    return {
        "timing": parts, "predicted_s": predicted, "measured_s": walls,
        "band_s": [found.low, found.high],
        "jobs": [[vars(one) for one in attempts] for attempts in jobs],
    }  # fmt: skip


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
