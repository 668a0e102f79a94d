#!/usr/bin/env python3
"""Measure checkpoints on the local disk and on the lab's MooseFS with 4 nodes: Brigade against its
peers at several widths, how steady each is beside another job, and what headers do to the rates.

    python bench/checkpoint.py --quick                   4 minutes: 4 ranks, few rounds
    python bench/checkpoint.py --fs moosefs              20 minutes
    python bench/checkpoint.py --fs disk --dir /scratch  a disk elsewhere
    python bench/checkpoint.py --fs disk --small-rounds 20   small files alone: 5 minutes

Peers are measured as safe as Brigade is (--sync --publish), as they come (--sync), and with nothing
synced by anybody (--no-sync); reading once.

Small files are over in a millisecond: beside files that keep the disk busy, a few rounds of them
tell of the disk. With --small-rounds they are measured by themselves, and nothing else is.

Everything is measured by `brigade bench checkpoint` and `brigade bench align`. Writes
OUT/checkpoint-FS.json (raw samples), figures, and prints what of the targets is reached.
Needs Open MPI with mpicc; measures HDF5 and ADIOS2 where they are (--python: whose ADIOS2).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support import checkpoint_table, places
from support.options import numbers, words
from support.places import Run
from support.samples import as_rows, save

from brigade.bench.checkpoint import figure, program

#: how safe a file is when its writing ends
SAFETY = {
    "published": ["--publish"],
    "synced": ["--no-read"],
    "unsynced": ["--no-sync", "--no-read"],
}
STEADY = {"contiguous": "16M", "strided": "64k"}
SMALL = ["--pattern", "contiguous,strided", "--record", "1k,64k,1M"]
PEERS = "brigade,ompio,romio,posix-shared,posix-fpp"


def main() -> int:
    options = arguments()
    places.prepare(options)
    program.prepare(options.cache / "bench", options.mpicc, options.python)  # nodes only use it
    for fs in options.fs:
        begin = time.monotonic()
        with places.place(fs, options) as run:
            if options.small_rounds:
                keep_small(measure_small(run, options), fs, options)
                continue
            report = measure(run, options)
        keep(report, fs, options)
        print(f"{fs}: {time.monotonic() - begin:.0f} s", flush=True)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    places.add_options(parser, "checkpoint")
    parser.add_argument("--quick", action="store_true", help="one width, few rounds")
    parser.add_argument("--ranks", type=numbers, default=[4, 16], help="with all record sizes")
    parser.add_argument("--wide", type=numbers, default=[32], help="without the largest records")
    parser.add_argument("--wide-record", default="1k,64k,1M", help="those records")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--safety", type=words(), default=list(SAFETY))
    parser.add_argument("--steady-rounds", type=int, default=30)
    parser.add_argument("--small-rounds", type=int, help="only small files, so often")
    parser.add_argument("--rival", type=int, default=64, help="MiB of the other job's bursts")
    parser.add_argument("--python", default=sys.executable, help="whose ADIOS2 is measured")
    options = parser.parse_args()
    if options.quick:
        options.ranks, options.wide, options.rounds, options.steady_rounds = [4], [], 3, 10
    return options


def measure(run: Run, options: argparse.Namespace) -> dict[str, Any]:
    """The first safety's report, with those of all in `by_safety`."""
    reports = {safety: compare(run, options, SAFETY[safety]) for safety in options.safety}
    for safety, one in reports.items():
        one["steady"] = beside_another(run, options, SAFETY[safety])
    report = {**reports[options.safety[0]], "by_safety": reports}
    align = ["align", "-n", str(options.ranks[-1]), "--block", "8M"]
    report["align"] = run(align)["rows"]
    return report


def beside_another(run: Run, options: argparse.Namespace, how: list[str]) -> dict[str, Any]:
    """A report of each pattern, of writes beside another job."""
    steady = [
        "checkpoint", "-n", str(options.ranks[-1]), "--rounds", str(options.steady_rounds),
        "--rival", str(options.rival), "--variants", PEERS, *dict.fromkeys([*how, "--no-read"]),
    ]  # fmt: skip
    return {
        pattern: run([*steady, "--pattern", pattern, "--record", record])
        for pattern, record in STEADY.items()
    }


def steady_samples(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for pattern in STEADY for one in report["steady"][pattern]["samples"]]


def measure_small(run: Run, options: argparse.Namespace) -> dict[str, Any]:
    """A report for each safety."""
    widths = ["-n", ",".join(map(str, options.ranks)), "--rounds", str(options.small_rounds)]
    how = ["checkpoint", *widths, *SMALL, "--variants", PEERS]
    return {safety: run([*how, *SAFETY[safety]]) for safety in options.safety}


def keep_small(reports: dict[str, Any], fs: str, options: argparse.Namespace) -> None:
    settings = {"fs": fs, "rounds": options.small_rounds, "what": SMALL, "variants": PEERS}
    samples = {safety: as_rows(report["samples"]) for safety, report in reports.items()}
    path = options.out / f"checkpoint-{fs}-small.json"
    save(path, "checkpoint", settings, samples)
    for safety, report in reports.items():
        print(f"\n{places.title(fs)}, small files, {safety}")
        checkpoint_table.print_table(report["cells"])
    print(f"raw samples: {path}")


def compare(run: Run, options: argparse.Namespace, how: list[str]) -> dict[str, Any]:
    """One report of all widths."""
    rounds = ["--rounds", str(options.rounds)]
    checkpoint = ["checkpoint", "--python", options.python, *rounds, *how]
    report = run([*checkpoint, "-n", ",".join(map(str, options.ranks))])
    if options.wide:
        wide = run(
            [*checkpoint, "-n", ",".join(map(str, options.wide)), "--record", options.wide_record]
        )
        report["cells"] += wide["cells"]
        report["samples"] += wide["samples"]
        report["settings"]["widths"] += wide["settings"]["widths"]
    return report


def keep(report: dict[str, Any], fs: str, options: argparse.Namespace) -> None:
    """The raw samples, the figures, and what of the targets is reached."""
    title = places.title(fs)
    for direction in ("write", "read"):
        path = options.out / f"checkpoint-{fs}-{direction}.png"
        figure.draw_cells(report["cells"], direction, path, f"checkpoints on {title}: {direction}")
    path = options.out / f"checkpoint-{fs}-steady.png"
    figure.draw_steadiness(steady_samples(report), path, f"beside another job, {title}")
    settings = {**report["settings"], "fs": fs, "absent": report["absent"], "steady": STEADY}
    settings["steady_rounds"] = options.steady_rounds
    more = {"steady_samples": as_rows(steady_samples(report)), "align": report["align"]}
    for safety in options.safety[1:]:
        one = report["by_safety"][safety]
        more[f"{safety}_samples"] = as_rows(one["samples"])
        more[f"{safety}_steady_samples"] = as_rows(steady_samples(one))
    path = options.out / f"checkpoint-{fs}.json"
    save(path, "checkpoint", settings, as_rows(report["samples"]), **more)
    for safety, one in report["by_safety"].items():
        print(f"\n{title}, {safety}")
        checkpoint_table.print_table(one["cells"])
        for pattern in STEADY:
            checkpoint_table.print_steady(one["steady"][pattern]["cells"])
        checkpoint_table.print_verdicts(one, f"{title}, {safety}")
    print(f"raw samples: {path}")


if __name__ == "__main__":
    sys.exit(main())
