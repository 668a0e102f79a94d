#!/usr/bin/env python3
"""Measure MPI-IO whose records are moved one by one, by independent calls, beneath `brigade mpiio`
and with Open MPI's OMPIO and ROMIO: on the local disk, and on the lab's MooseFS.

    python bench/single.py                        5 minutes
    python bench/single.py --fs disk --ranks 2

Jobs of the three take turns. Writes OUT/single-FS.json (raw samples) and prints medians of a call;
in the first of a job's rounds the file grows. Needs Open MPI with mpicc.
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

SOURCE = Path(__file__).parent / "support/single.c"
#: how the records are asked for (single.c), and their bytes
PATTERNS = [(how, 96) for how in ("at", "pointer", "doubles", "rows", "turns")]
PATTERNS += [(how, 4 << 10) for how in ("at", "turns")]
PATTERNS += [("at", 64 << 10), ("turns", 64 << 10), ("at", 1 << 20)]
PART = 8 << 20  # of each rank, at most
MOST = 8192  # calls


def main() -> int:
    return places.run_jobs("single", SOURCE, arguments(), measure, print_table)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    places.add_options(parser, "single")
    parser.add_argument("--ranks", type=numbers, default=[2, 4])
    parser.add_argument("--jobs", type=int, default=3, help="of each variant and pattern")
    parser.add_argument("--rounds", type=int, default=5, help="in each job")
    return parser.parse_args()


def measure(jobs: places.Jobs) -> Iterator[dict[str, Any]]:
    most = MOST if jobs.fs == "disk" else MOST // 16
    for ranks in jobs.options.ranks:
        for how, size in PATTERNS:
            count = min(most, PART // size)
            words = [f"{jobs.folder}/single.dat", how, size, count, jobs.options.rounds]
            cell = {"ranks": ranks, "how": how, "bytes": size, "count": count}
            for said in jobs.turns(ranks, words):
                yield {**cell, **said}
            print(f"-- {ranks} ranks, {how}, {count} times {size} bytes", flush=True)


def print_table(samples: Sequence[dict[str, Any]]) -> None:
    """Medians in us a call, and of the processor's time; how many times the better peer's speed."""
    heads = ["ranks", "records", "", "", "OMPIO us", "ROMIO us", "Brigade us", "of the best"]
    heads += ["CPU: OMPIO us", "ROMIO us", "Brigade us", "of the best"]
    print("|", " | ".join(heads), "|")
    print("|--:|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    keys = ("ranks", "bytes", "how", "count")
    for cell in dict.fromkeys(tuple(one[key] for key in keys) for one in samples):
        same = [one for one in samples if tuple(one[key] for key in keys) == cell]
        ranks, size, how, count = cell
        for way in ("write", "read"):
            cells = [str(ranks), size_name(size), how, way]
            for what in (way, f"{way}_cpu"):
                us = [
                    1e6 / count * statistics.median(s[what] for s in same if s["variant"] == which)
                    for which in VARIANTS
                ]
                cells += [f"{one:.2f}" for one in us]
                cells.append(f"{min(us[:2]) / us[2]:.2f}" if us[2] else "-")
            print("|", " | ".join(cells), "|")


if __name__ == "__main__":
    sys.exit(main())
