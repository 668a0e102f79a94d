"""Where shared files are measured: a local disk, or the lab's nodes with their file system."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any, Callable

from brigade.bench import component
from brigade.lab import Lab
from support.options import words
from support.samples import as_table, save

NODES = 4
MANY = 1000  # samples are kept as a table
Run = Callable[[list[str]], dict[str, Any]]
Start = Callable[[list[str]], str]


def title(fs: str) -> str:
    return "local disk" if fs == "disk" else f"{NODES} nodes, {fs}"


def add_options(parser: argparse.ArgumentParser, name: str) -> None:
    """What every benchmark of shared files can be told; `name` of its lab and of its folder."""
    parser.add_argument("--fs", type=words(), default=["disk", "moosefs"])
    parser.add_argument("--dir", default="/var/tmp", help="where the local disk is measured")
    parser.add_argument("--lab", default=name, help="name of the lab to bring up")
    parser.add_argument("--mpicc", default="mpicc.openmpi")
    parser.add_argument("--out", type=Path, default=Path("out") / name)
    parser.add_argument("--cache", type=Path, default=Path("/var/tmp/brigade-bench"))


def prepare(options: argparse.Namespace) -> None:
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    os.environ["BRIGADE_CACHE"] = str(options.cache)


@contextmanager
def place(fs: str, options: argparse.Namespace) -> Iterator[Run]:
    """A way to run `brigade bench WORDS` on a file system; its report."""
    common = ["--mpicc", options.mpicc, "--json", "--dir"]
    if fs == "disk":
        launcher = ["--", "mpirun.openmpi", "--oversubscribe", "-n", "{n}"]
        yield lambda more: _report_of(subprocess.run, more, [*common, options.dir, *launcher])
        return
    lab = Lab.up(name=options.lab, nodes=NODES, fs=fs)
    try:
        launcher = ["--", "mpirun", "-n", "{n}"]
        yield lambda more: _report_of(lab.run, more, [*common, str(lab.shared), *launcher])
    finally:
        lab.down()


def _report_of(start: Callable[..., Any], more: list[str], common: list[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "brigade", "bench", *more, *common]
    print("--", " ".join(command[3:]), flush=True)
    done = start(command, cwd="/", stdout=PIPE, stderr=PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"ended with {done.returncode}:\n{done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@contextmanager
def job_place(fs: str, options: argparse.Namespace) -> Iterator[tuple[str, list[str], Start]]:
    """A folder on a file system, a launcher, and how a command is started there; its output."""
    if fs == "disk":
        launcher = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]
        yield options.dir, launcher, lambda command: _output_of(subprocess.run, command)
        return
    lab = Lab.up(name=options.lab, nodes=NODES, fs=fs)
    try:
        yield str(lab.shared), ["mpirun"], lambda command: _output_of(lab.run, command)
    finally:
        lab.down()


#: each job of MPI-IO is run with the peers of Open MPI, and beneath `brigade mpiio`
VARIANTS = ("ompio", "romio321", component.PRELOADED)


@dataclass(frozen=True)
class Jobs:
    """A compiled program of MPI, and how jobs of it are run on one file system."""

    fs: str
    options: argparse.Namespace  # `jobs`: of each variant
    folder: str  # of the file system
    launcher: Sequence[str]
    start: Start
    program: Path

    def turns(
        self, ranks: int, words: Sequence[object], variants: Sequence[str] = VARIANTS
    ) -> Iterator[dict[str, Any]]:
        """Jobs of each variant, in turns, of the program with these words: what it says, a line of
        JSON each, with `variant` and `job`."""
        n = len(variants)
        program = [str(self.program), *map(str, words)]
        for job in range(self.options.jobs):
            for which in (variants[(job + i) % n] for i in range(n)):
                command, more = component.job([*self.launcher, "-n", str(ranks)], program, which)
                said = self.start(["env", *(f"{k}={v}" for k, v in more.items()), *command])
                for line in said.splitlines():
                    yield {"variant": which, "job": job, **json.loads(line)}


def run_jobs(
    name: str,
    source: Path,
    options: argparse.Namespace,
    measure: Callable[[Jobs], Iterator[dict[str, Any]]],
    print_table: Callable[[list[dict[str, Any]]], None],
    flags: Sequence[str] = (),
) -> int:
    """Compiles a program of MPI, has it measured on each file system, and saves and prints that."""
    prepare(options)
    options.cache.mkdir(parents=True, exist_ok=True)
    program = options.cache / name
    subprocess.run([options.mpicc, "-O2", "-o", program, source, *flags], check=True)
    for fs in options.fs:
        with job_place(fs, options) as (folder, launcher, start):
            samples = list(measure(Jobs(fs, options, folder, launcher, start, program)))
        settings = {"fs": fs, "ranks": options.ranks, "jobs": options.jobs}
        path = options.out / f"{name}-{fs}.json"
        save(path, source.stem, settings, as_table(samples) if len(samples) > MANY else samples)
        print(f"\n{title(fs)}\n")
        print_table(samples)
        print(f"raw samples: {path}")
    return 0


def _output_of(start: Callable[..., Any], command: list[str]) -> str:
    done = start(command, cwd="/", stdout=PIPE, stderr=PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    said: str = done.stdout
    return said
