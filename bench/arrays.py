#!/usr/bin/env python3
"""Measure named arrays, a call each, through libbrigade_io, and the same bytes through Open MPI's
OMPIO and ROMIO: on the local disk, and on the lab's MooseFS.

    python bench/arrays.py                                      8 minutes
    python bench/arrays.py --fs disk --ranks 4 --patterns many,amr --safety unsynced

Within a job, Brigade and MPI-IO take turns, and jobs of OMPIO and ROMIO do. Writes
OUT/arrays-FS.json (raw samples) and prints medians, and ratios of neighbours. Needs Open MPI with
mpicc.
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
from support.options import numbers, with_io, words

SOURCE = Path(__file__).parent / "support/arrays.c"
#: as arrays.c explains them
PATTERNS = ["many", "large", "small", "boxes", "amr", "header", "inplace", "halos"]
#: how safe a file is when its writing ends
SAFETY = ["unsynced", "published"]
PEERS = ("ompio", "romio321")
FIRST = 1  # rounds of a job that are not counted: they find pages, connections and nodes


def main() -> int:
    return places.run_jobs("arrays", SOURCE, arguments(), measure, print_table, with_io())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    places.add_options(parser, "arrays")
    parser.add_argument("--ranks", type=numbers, default=[4, 8])
    parser.add_argument("--patterns", type=words(), default=PATTERNS)
    parser.add_argument("--safety", type=words(), default=SAFETY)
    parser.add_argument("--jobs", type=int, default=3, help="of each peer and pattern")
    parser.add_argument("--rounds", type=int, default=7, help="in each job")
    return parser.parse_args()


def measure(jobs: places.Jobs) -> Iterator[dict[str, Any]]:
    for ranks in jobs.options.ranks:
        for pattern in jobs.options.patterns:
            for safety in jobs.options.safety:
                syncs = int(safety == "published")
                words = [f"{jobs.folder}/arrays.dat", pattern, jobs.options.rounds, syncs]
                for said in jobs.turns(ranks, words, PEERS):
                    yield {"ranks": ranks, "pattern": pattern, "safety": safety, **said}
            print(f"-- {ranks} ranks, {pattern}", flush=True)


def print_table(samples: Sequence[dict[str, Any]]) -> None:
    """Medians in ms; how many times faster than the better peer: ratios of medians of the jobs that
    had both."""
    heads = [
        "ranks",
        "arrays",
        "",
        "",
        "Brigade: open",
        "move",
        "close",
        "total ms",
        "OMPIO ms",
        "ROMIO ms",
    ]
    print("|", " | ".join([*heads, "of the best"]), "|")
    print("|--:|---|---|---|--:|--:|--:|--:|--:|--:|--:|")
    keys = ("ranks", "pattern", "safety", "does")
    warm = [one for one in samples if one["round"] >= FIRST]
    for cell in dict.fromkeys(tuple(one[key] for key in keys) for one in warm):
        same = [one for one in warm if tuple(one[key] for key in keys) == cell]
        if cell[2] == "published" and cell[3] == "read":
            continue
        ours = [one for one in same if one["way"] == "brigade"]
        cells = [str(cell[0]), *cell[1:]]
        cells += [
            f"{1e3 * statistics.median(one[phase] for one in ours):.2f}"
            for phase in ("open", "move", "close", "total")
        ]
        times = []
        for peer in PEERS:
            mine, theirs = (
                statistics.median(
                    one["total"] for one in same if (one["variant"], one["way"]) == (peer, way)
                )
                for way in ("brigade", "mpi")
            )
            cells.append(f"{1e3 * theirs:.2f}")
            times.append(theirs / mine)
        print("|", " | ".join([*cells, f"{min(times):.2f}"]), "|")


if __name__ == "__main__":
    sys.exit(main())
