#!/usr/bin/env python3
"""Measure one-sided collective I/O, and MPI-IO beneath `brigade mpiio`, against Open MPI's OMPIO
and ROMIO, with and without a view, on the local disk and on the lab's MooseFS with 4 nodes.

    python bench/onesided.py --quick                   2 minutes: the disk, 4 ranks, few rounds
    python bench/onesided.py --fs disk --dir /scratch  10 minutes: a disk elsewhere
    python bench/onesided.py --fs moosefs              10 minutes
    python bench/onesided.py --synced --fs disk        2 minutes: written and synced

Large and small transfers, and what was published, by `brigade bench ior`; strided records and 4-D
blocks that a call takes at once by `brigade bench checkpoint`. Nothing is synced, as in IOR; with
--synced all is, and the latter measures large records, too. All take turns. Writes
OUT/onesided-FS.json or OUT/onesided-FS-synced.json (raw samples) and prints what of the targets is
reached. Needs Open MPI with mpicc; measures OpenSHMEM on the disk where there is oshcc.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support import onesided_table, places
from support.options import numbers
from support.places import Run
from support.samples import as_rows, save

from brigade.bench.checkpoint import program as checkpoint_program
from brigade.bench.ior import program as ior_program

BACK_ENDS = ("OMPIO", "ROMIO", "PRELOADED", "ONESIDED")
REORDERED = ["-Q", "16", "-Z", "-X", "16"]  # who reads what, as published
#: pattern: bytes of a transfer, and IOR's words
CALLS = {
    "contiguous": (16 << 20, ["-b", "16m", "-t", "16m", "-C"]),
    "strided, a call each": (64 << 10, ["-b", "64k", "-t", "64k", "-s", "64", "-C"]),
    "published, small": (1 << 20, ["-b", "1m", "-t", "1m", "-s", "4", *REORDERED]),
    "published": (1 << 20, ["-b", "1m", "-t", "1m", "-s", "32", *REORDERED]),
}
SYNCED = "64k,1M,16M"  # records
#: the same in the lab, where every byte goes through FUSE and the network of one machine
CALLS_IN_LAB = {
    "contiguous": (4 << 20, ["-b", "4m", "-t", "4m", "-C"]),
    "strided, a call each": (64 << 10, ["-b", "64k", "-t", "64k", "-s", "8", "-C"]),
    "published": (1 << 20, ["-b", "1m", "-t", "1m", "-s", "8", *REORDERED]),
}


def main() -> int:
    options = arguments()
    places.prepare(options)
    prepare(options)
    for fs in options.fs:
        begin = time.monotonic()
        with places.place(fs, options) as run:
            samples = measure(run, fs, options)
        keep(samples, fs, options)
        print(f"{fs}: {time.monotonic() - begin:.0f} s", flush=True)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    places.add_options(parser, "onesided")
    parser.add_argument("--quick", action="store_true", help="the disk, 4 ranks, few rounds")
    parser.add_argument("--ranks", type=numbers, help="[default: 4,16,32; of the lab 4]")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--synced", action="store_true", help="what is written must reach the disk")
    parser.add_argument("--no-shmem", action="store_true", help="without OpenSHMEM")
    options = parser.parse_args()
    if options.quick:
        options.fs, options.ranks, options.rounds = ["disk"], [4], 6
    return options


def prepare(options: argparse.Namespace) -> None:
    """Compiles what nodes only use."""
    checkpoint_program.prepare(options.cache / "bench", options.mpicc)
    ior_program.prepare(options.cache / "bench", options.mpicc)


def api(fs: str, options: argparse.Namespace) -> str:
    """All back ends, each without and with a view."""
    names = [name + view for view in ("", ":view") for name in BACK_ENDS]
    if fs == "disk" and shutil.which("oshcc") and not options.no_shmem:
        names += ["ONESIDED:seam=shmem", "ONESIDED:view:seam=shmem"]
    return ",".join(names)


def widths(fs: str, options: argparse.Namespace) -> list[int]:
    return options.ranks or ([4, 16, 32] if fs == "disk" else [4])


def calls(fs: str) -> dict[str, tuple[int, list[str]]]:
    return CALLS if fs == "disk" else CALLS_IN_LAB


def measure(run: Run, fs: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    ranks = ",".join(map(str, widths(fs, options)))
    variants = ",".join(name.lower() for name in BACK_ENDS)
    compared = ["--variants", variants, "--rounds", str(options.rounds), "-n", ranks]
    if options.synced:
        report = run(["checkpoint", "--no-read", "--record", SYNCED, *compared])
        return [as_view(one) for one in report["samples"]]
    samples = []
    for pattern, (record, how) in calls(fs).items():
        ior = ["ior", "--compare", "-a", api(fs, options), "-c", "-w", "-r", "-n", ranks]
        report = run([*ior, "-i", str(options.rounds), *how])
        samples += [{"pattern": pattern, "record": record, **one} for one in report["samples"]]
    blocks = ["checkpoint", "--no-sync", "--pattern", "strided,4d", "--record", "64k"]
    report = run([*blocks, *compared])
    return samples + [as_view(one) for one in report["samples"]]


def as_view(sample: dict[str, Any]) -> dict[str, Any]:
    """A sample of `brigade bench checkpoint`, whose calls of MPI-IO go through a view, with the
    names of `brigade bench ior`."""
    return {**sample, "variant": f"{sample['variant'].upper()}:view"}


def keep(samples: list[dict[str, Any]], fs: str, options: argparse.Namespace) -> None:
    """The raw samples, and what of the targets is reached."""
    settings = {"fs": fs, "rounds": options.rounds, "ranks": widths(fs, options)}
    if not options.synced:
        settings["patterns"] = {pattern: " ".join(how) for pattern, (_, how) in calls(fs).items()}
    settings["synced"] = options.synced
    path = options.out / f"onesided-{fs}{'-synced' if options.synced else ''}.json"
    save(path, "onesided", settings, as_rows(samples, "bytes"))
    found = onesided_table.cells(samples)
    print(f"\n{places.title(fs)}, {options.rounds} rounds\n")
    onesided_table.print_table(found)
    onesided_table.print_verdicts(found, places.title(fs))
    print(f"raw samples: {path}")


if __name__ == "__main__":
    sys.exit(main())
