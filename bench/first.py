#!/usr/bin/env python3
"""Measure the first files of a job, beneath `brigade mpiio` and with Open MPI's OMPIO and ROMIO: on
the local disk, and on the lab's MooseFS.

    python bench/first.py                        4 minutes
    python bench/first.py --fs disk --ranks 4
    python bench/first.py --threads              of programs of MPI_THREAD_MULTIPLE, as mpi4py's are

Each job writes two files of a 4-D lattice and reads them; jobs of the three take turns. Writes
OUT/first-FS.json, or first-threads-FS.json (raw samples) and prints medians. Needs Open MPI with
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
from support.options import numbers
from support.places import VARIANTS

SOURCE = Path(__file__).parent / "support/first.c"
#: points a side, bytes a point: 6 MiB; of 4 ranks runs of 1.5 KiB, of 16 of 768 bytes
EDGE, ELEMENT = 16, 96
FILES = 2


def main() -> int:
    options = arguments()
    name = "first-threads" if options.threads else "first"
    return places.run_jobs(name, SOURCE, options, measure, print_table)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    places.add_options(parser, "first")
    parser.add_argument("--ranks", type=numbers, default=[4, 8, 16])
    parser.add_argument("--jobs", type=int, default=9, help="of each variant")
    parser.add_argument("--threads", action="store_true", help="as MPI_THREAD_MULTIPLE")
    return parser.parse_args()


def measure(jobs: places.Jobs) -> Iterator[dict[str, Any]]:
    words = [f"{jobs.folder}/first", EDGE, ELEMENT, FILES]
    words += ["threads"] if jobs.options.threads else []
    for ranks in jobs.options.ranks:
        for said in jobs.turns(ranks, words):
            yield {"ranks": ranks, **said}
        print(f"-- {ranks} ranks", flush=True)


def print_table(samples: Sequence[dict[str, Any]]) -> None:
    """Medians in ms until opened and until closed; how many times faster than the better peer."""
    heads = ["ranks", "file", "", "opened: OMPIO", "ROMIO", "Brigade"]
    heads += ["closed: OMPIO", "ROMIO", "Brigade", "times the best"]
    print("|", " | ".join(heads), "|")
    print("|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|")
    for ranks, file, way in dict.fromkeys((s["ranks"], s["file"], s["way"]) for s in samples):
        same = [s for s in samples if (s["ranks"], s["file"], s["way"]) == (ranks, file, way)]
        ms = {
            (step, which): 1e3 * statistics.median(s[step] for s in same if s["variant"] == which)
            for step in ("opened", "closed")
            for which in VARIANTS
        }
        cells = [str(ranks), str(file + 1), way, *(f"{value:.2f}" for value in ms.values())]
        best = min(ms["closed", which] for which in VARIANTS[:2])
        print("|", " | ".join([*cells, f"{best / ms['closed', VARIANTS[2]]:.1f}"]), "|")


if __name__ == "__main__":
    sys.exit(main())
