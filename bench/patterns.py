#!/usr/bin/env python3
"""Measure what the kernels of well-known I/O benchmarks ask of collective MPI-IO, beneath `brigade
mpiio` and with Open MPI's OMPIO and ROMIO: on the local disk, and on the lab's MooseFS.

    python bench/patterns.py                        8 minutes
    python bench/patterns.py --fs disk --ranks 4 --patterns flash,btio

Jobs of the three take turns. Writes OUT/patterns-FS.json (raw samples) and prints medians. Needs
Open MPI with mpicc.
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
from support.options import numbers, words
from support.places import VARIANTS

SOURCE = Path(__file__).parent / "support/patterns.c"
#: as patterns.c explains them
PATTERNS = ["tiles", "overlap", "hpio", "btio", "flash", "s3d", "e3sm", "hacc", "coll_perf"]
PATTERNS += ["noncontig", "interleave", "append", "halves"]


def main() -> int:
    return places.run_jobs("patterns", SOURCE, arguments(), measure, print_table)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    places.add_options(parser, "patterns")
    parser.add_argument("--ranks", type=numbers, default=[4, 8])
    parser.add_argument("--patterns", type=words(), default=PATTERNS)
    parser.add_argument("--jobs", type=int, default=3, help="of each variant and pattern")
    parser.add_argument("--rounds", type=int, default=5, help="in each job")
    return parser.parse_args()


def measure(jobs: places.Jobs) -> Iterator[dict[str, Any]]:
    for ranks in jobs.options.ranks:
        for pattern in jobs.options.patterns:
            words = [f"{jobs.folder}/patterns.dat", pattern, jobs.options.rounds]
            for said in jobs.turns(ranks, words):
                yield {"ranks": ranks, "pattern": pattern, **said}
            print(f"-- {ranks} ranks, {pattern}", flush=True)


def print_table(samples: Sequence[dict[str, Any]]) -> None:
    """Medians in ms from open to close; how many times faster than the better peer."""
    heads = ["ranks", "pattern", "calls", "moved", "", "OMPIO ms", "ROMIO ms", "Brigade ms"]
    print("|", " | ".join([*heads, "of the best"]), "|")
    print("|--:|---|--:|--:|---|--:|--:|--:|--:|")
    for ranks, pattern in dict.fromkeys((one["ranks"], one["pattern"]) for one in samples):
        same = [one for one in samples if (one["ranks"], one["pattern"]) == (ranks, pattern)]
        for way in ("write", "read"):
            ms = {
                which: 1e3 * statistics.median(s[way] for s in same if s["variant"] == which)
                for which in VARIANTS
            }
            best = min(ms[which] for which in VARIANTS[:2])
            cells = [
                str(ranks),
                pattern,
                str(same[0]["calls"]),
                f"{same[0]['bytes'] / 2**20:.1f} MiB",
                way,
            ]
            cells += [f"{ms[which]:.2f}" for which in VARIANTS]
            print("|", " | ".join([*cells, f"{best / ms[VARIANTS[2]]:.1f}"]), "|")


if __name__ == "__main__":
    sys.exit(main())
