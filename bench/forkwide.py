#!/usr/bin/env python3
"""Start many ranks of one import on this machine, by themselves and forked from one warm process,
in turn: seconds until the last rank's first line after it, and memory a rank. Needs no MPI, no lab,
no root; files lie where they lie (nothing is staged), and the page cache is warm. Before each start
free memory is written to and given back (support/memory.py).

    python bench/forkwide.py --import torch --ranks 64,256 --repeats 3
    python bench/forkwide.py --import numpy,scipy.stats --ranks 8
    python bench/forkwide.py --python venv/bin/python --ranks 8 \
        --launcher 'venv/bin/torchrun --nproc-per-node={ranks}'
    python bench/forkwide.py --python venv/bin/python --ranks 8 \
        --launcher 'mpirun --oversubscribe -n {ranks} venv/bin/python'

Seconds are from the launch of the first process, or of `brigade run`, to the last rank's line: its
own start and warming are counted in. Memory is the ranks' and the template's proportional set size
(PSS) by rank, when all have imported. With --launcher its own start is counted in, and its memory
is not. The first run's trial is made before, and told apart; and two
more starts are, after which images do not grow any more. Writes OUT/forkwide.json (raw samples) and
prints medians. Needs a Python with what is imported (--python).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support.memory import pss_of, settle
from support.options import end_in_order, numbers, words
from support.samples import median, save

VARIANTS = ("plain", "brigade", "fork")
BRIGADE: dict[str, list[str]] = {"brigade": [], "fork": ["--fork"]}  # options of `brigade run`
HEADS = ("ranks", "start", "line, s", "/ plain", "end, s", "MiB", "/ plain", "forked")
SECONDS_ASKED = 0.25  # of the plain start
GROWTHS = 2  # starts after which an image has what the trial's program did not look up
TICK_S = 0.01  # between looks at what the ranks have said
#: what a rank does after its imports: it says so, and waits until its memory has been looked at
PROGRAM = """\
import time
FIRST_LINE = time.time()
import json, os, sys
said = {"pid": os.getpid(), "parent": os.getppid(), "first_line": FIRST_LINE}
with open(os.environ["BENCH_LINES"], "a") as lines:
    print(json.dumps({**said, "modules": len(sys.modules)}), file=lines)
with open(os.environ["BENCH_GATE"], "rb", buffering=0) as gate:
    gate.read(1)
"""


def main() -> int:
    options = arguments()
    end_in_order()
    settings = {key: str(value) for key, value in vars(options).items()}
    settings["python"] = Path(options.python).name
    samples: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="forkwide-") as folder:
        place = Place(Path(folder), options)
        trial = place.prepare()
        for repeat in range(options.repeats):
            for ranks in options.ranks:
                for variant in options.variants:
                    sample = {"repeat": repeat, **place.start(variant, ranks)}
                    samples.append(sample)
                    print(line(sample), flush=True)
                    save(options.out / "forkwide.json", "forkwide", settings, samples, trial=trial)
    print_table(samples, options)
    print(f"\nraw samples: {options.out / 'forkwide.json'}")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--import", dest="modules", default="torch", metavar="MODULES")
    parser.add_argument("--python", default=sys.executable, help="the Python that imports them")
    parser.add_argument("--launcher", default="", help="what starts {ranks} of them on a node")
    parser.add_argument("--ranks", type=numbers, default=[16, 64])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--variants", type=words(), default=["plain", "fork"])
    parser.add_argument("--limit", type=float, default=300.0, help="longest start, s")
    parser.add_argument("--out", type=Path, default=Path("out/forkwide"))
    return parser.parse_args()


class Place:
    """Where ranks say when they are there, and wait for each other."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.options = options
        self.lines, self.gate = folder / "lines", folder / "gate"
        self.report, self.program = folder / "report.json", folder / "program.py"
        os.mkfifo(self.gate)
        self.program.write_text(f"import {options.modules}\n{PROGRAM}")
        self.folder = folder
        self.rank_memory = 0  # bytes that a rank by itself has, and are no file's

    def prepare(self) -> dict[str, Any]:
        """Warm the page cache, and let `brigade run` make what it makes the first time: what it
        says of that, by variant.
        """
        self.rank_memory = self.start("plain", 1)["own_bytes"]
        made = {}
        for variant in [variant for variant in self.options.variants if variant in BRIGADE]:
            open_gate = self._environment(variant, gate="/dev/null")
            begin = time.time()
            subprocess.run(self._job(variant, 2), env=open_gate, check=True)
            report = json.loads(self.report.read_text())
            made[variant] = {"seconds": time.time() - begin, "image": report["image"]}
            print(f"-- first {variant}: {made[variant]['seconds']:.1f} s", flush=True)
            for _ in range(GROWTHS):
                self.start(variant, 2)
        return made

    def start(self, variant: str, ranks: int) -> dict[str, Any]:
        """One start of so many ranks; returns its sample."""
        settle(ranks * self.rank_memory)
        self.lines.write_bytes(b"")
        gate = os.open(self.gate, os.O_RDWR)  # for writing alone it would wait for a reader
        begin = time.time()
        jobs = 1 if variant in BRIGADE or self.options.launcher else ranks
        job, environment = self._job(variant, ranks), self._environment(variant)
        started = [subprocess.Popen(job, env=environment) for _ in range(jobs)]
        try:
            said = self._wait(ranks, begin, started)
            processes = processes_of(said)
            memory = sum(pss_of(pid) for pid in processes)
            own = sum(pss_of(pid, "Pss_Anon") for pid in processes)
            opened = time.time()
            os.write(gate, b"." * ranks)
            statuses = {process.wait() for process in started}
            end = time.time() - opened
        finally:
            for process in started:
                if process.poll() is None:
                    process.terminate()  # shells start what is in the background without SIGINT
            for process in started:
                process.wait()
            os.close(gate)
        if statuses != {0}:
            raise SystemExit(f"{variant}, {ranks} ranks: ended with {sorted(statuses)}")
        seconds = sorted(one["first_line"] - begin for one in said)
        return {
            "variant": variant,
            "ranks": ranks,
            "seconds": seconds[-1],
            "rank_seconds": [round(one, 4) for one in seconds],
            "end_seconds": end,
            "bytes": memory,
            "own_bytes": own,
            "modules": sorted({one["modules"] for one in said}),
            "fork": json.loads(self.report.read_text())["fork"] if variant == "fork" else None,
        }

    def _environment(self, variant: str, gate: str = "") -> dict[str, str]:
        """Each variant has images of its own: one's would not serve the other, and a trial in the
        midst of a start would be taken for ranks.
        """
        return {
            **os.environ,
            "BENCH_LINES": str(self.lines),
            "BENCH_GATE": gate or str(self.gate),
            "BRIGADE_CACHE": str(self.folder / f"cache-{variant}"),
        }

    def _job(self, variant: str, ranks: int) -> list[str]:
        program = [self.options.python, str(self.program)]
        if self.options.launcher:
            program[:1] = self.options.launcher.format(ranks=ranks).split()
        if variant not in BRIGADE:
            return program
        width = [] if self.options.launcher else ["-n", str(ranks)]
        brigade = [sys.executable, "-m", "brigade", "run", "--quiet", "--json", str(self.report)]
        return [*brigade, *BRIGADE[variant], *width, "--", *program]

    def _wait(
        self, ranks: int, begin: float, started: list[subprocess.Popen[bytes]]
    ) -> list[dict[str, Any]]:
        """What each rank has said, when all have."""
        while time.time() - begin < self.options.limit:
            text = self.lines.read_text()
            if text.count("\n") == ranks:
                return [json.loads(each) for each in text.splitlines()]
            ended = [process for process in started if process.poll() is not None]
            if ended:
                raise SystemExit(f"{ended[0].args!r} ended with {ended[0].returncode}")
            time.sleep(TICK_S)
        raise SystemExit(f"{ranks} ranks were not there after --limit {self.options.limit:.0f} s")


def processes_of(said: list[dict[str, Any]]) -> set[int]:
    """The ranks, and parents that run the same program: what ranks were forked from."""
    command = _command(said[0]["pid"])
    parents = {one["parent"] for one in said}
    return {one["pid"] for one in said} | {p for p in parents if _command(p) == command}


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def line(sample: dict[str, Any]) -> str:
    forked = f", {sample['fork']['ranks']} forked" if sample["fork"] else ""
    return (
        f"  {sample['variant']:8} {sample['ranks']:4} ranks  {sample['seconds']:7.2f} s to the "
        f"first line  {sample['bytes'] / sample['ranks'] / 2**20:7.1f} MiB a rank{forked}"
    )


def print_table(samples: list[dict[str, Any]], options: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"import {options.modules}: medians of {options.repeats}")
    for name in HEADS:
        table.add_column(name, justify="right")
    base = "plain" if "plain" in options.variants else options.variants[0]
    for ranks in options.ranks:
        found = {
            (variant, key): median(samples, key, ranks=ranks, variant=variant) or 0.0
            for variant in options.variants
            for key in ("seconds", "end_seconds", "bytes")
        }
        for variant in options.variants:
            forked = [s["fork"]["ranks"] for s in samples if s["fork"] and s["ranks"] == ranks]
            table.add_row(
                str(ranks),
                variant,
                f"{found[variant, 'seconds']:.2f}",
                f"{found[variant, 'seconds'] / found[base, 'seconds']:.2f}",
                f"{found[variant, 'end_seconds']:.2f}",
                f"{found[variant, 'bytes'] / ranks / 2**20:.1f}",
                f"{found[variant, 'bytes'] / found[base, 'bytes']:.2f}",
                str(min(forked, default=0)) if variant == "fork" else "",
            )
    Console().print(table)
    print(f"asked of fork: {SECONDS_ASKED} of the plain start's seconds")


if __name__ == "__main__":
    sys.exit(main())
