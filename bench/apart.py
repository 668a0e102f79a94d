#!/usr/bin/env python3
"""Measure collective MPI-IO whose runs lie far apart, beneath `brigade mpiio` and with Open MPI's
OMPIO and ROMIO: on the local disk, with the file in memory and not, and on the lab's MooseFS.

    python bench/apart.py                        3 minutes
    python bench/apart.py --fs disk --ranks 4

Each job writes and reads the file several times; jobs of the three take turns. Writes
OUT/apart-FS.json (raw samples) and prints medians. Needs Open MPI with mpicc.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support import places
from support.options import numbers
from support.places import VARIANTS

from brigade.bench.checkpoint.plan import size_name

SOURCE = Path(__file__).parent / "support/apart.c"
#: bytes of a run, and from one run of any rank to the next
PATTERNS = [(20, 4 << 10), (20, 16 << 10), (20, 64 << 10), (20, 256 << 10)]
PATTERNS += [(4 << 10, 8 << 10), (4 << 10, 64 << 10), (16 << 10, 16 << 10), (64 << 10, 64 << 10)]
PATTERNS_IN_LAB = [(20, 16 << 10), (20, 64 << 10), (20, 256 << 10), (64 << 10, 256 << 10)]
EXTENT = {"disk": 32 << 20, "moosefs": 16 << 20}


def main() -> int:
    return places.run_jobs("apart", SOURCE, arguments(), measure, print_table)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    places.add_options(parser, "apart")
    parser.add_argument("--ranks", type=numbers, default=[4, 16], help="of the lab only the first")
    parser.add_argument("--jobs", type=int, default=3, help="of each variant and pattern")
    parser.add_argument("--rounds", type=int, default=5, help="in each job")
    return parser.parse_args()


def measure(jobs: places.Jobs) -> Iterator[dict[str, Any]]:
    options, on_disk = jobs.options, jobs.fs == "disk"
    widths = options.ranks if on_disk else options.ranks[:1]
    states = ("warm", "cold") if on_disk else ("cold",)
    patterns = PATTERNS if on_disk else PATTERNS_IN_LAB
    for ranks in widths:
        for state in states:
            for run, pitch in patterns:
                count = max(1, EXTENT[jobs.fs] // pitch // ranks)
                words = [f"{jobs.folder}/apart.dat", run, pitch, count, options.rounds, state]
                cell = {"ranks": ranks, "state": state, "run": run, "pitch": pitch}
                for said in jobs.turns(ranks, words):
                    yield {**cell, **said}
                print(f"-- {ranks} ranks, {state}, {run} bytes every {pitch}", flush=True)


def print_table(samples: Sequence[dict[str, Any]]) -> None:
    """Medians in ms; how many times faster than the better peer."""
    print("| ranks | file | run | one every |  | OMPIO ms | ROMIO ms | Brigade ms | of the best |")
    print("|--:|---|--:|--:|---|--:|--:|--:|--:|")
    keys = ("ranks", "state", "run", "pitch")
    for cell in dict.fromkeys(tuple(one[key] for key in keys) for one in samples):
        same = [one for one in samples if tuple(one[key] for key in keys) == cell]
        ranks, state, run, pitch = cell
        for way in ("write", "read"):
            ms = {
                which: 1e3 * statistics.median(s[way] for s in same if s["variant"] == which)
                for which in VARIANTS
            }
            best = min(ms[which] for which in VARIANTS[:2])
            cells = [str(ranks), state, size_name(run), size_name(pitch), way]
            cells += [f"{ms[which]:.2f}" for which in VARIANTS]
            print("|", " | ".join([*cells, f"{best / ms[VARIANTS[2]]:.1f}"]), "|")


if __name__ == "__main__":
    sys.exit(main())
