#!/usr/bin/env python3
"""Start a real Python and MPI program in the lab with ranks forked from one warm process a node,
against each node's warm local disk and the ordinary view, in turn: seconds to the first line after
the imports and to the end of the job (staging and warming counted in), and memory a rank.

    python bench/fork.py --quick                  4 nodes, 8 ranks, twice: 2 minutes
    python bench/fork.py --ranks 4,32 --repeats 5 --out out/fork

Printed besides: the processor time of all ranks until their first lines, and how often they slept.
Memory is the ranks' and the templates' proportional set size (PSS), by rank. After its first line a
rank looks at its memory, and ends: it takes apart what it imported, shared or not. Before every
start the caches of the shared file system's clients are dropped, and every node's copy is read
once. Writes OUT/fork.json (raw samples) and prints medians.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import startup
from support.options import lab_parser, numbers, words
from support.samples import median, save

from brigade.lab import Lab

VARIANTS = ("local", "brigade", "fork")
HEADS = ("ranks", "start", "line, s", "/ local", "end, s", "/ local", "MiB", "/ local", "forked")
SECONDS_ASKED, BYTES_ASKED, ALONE_ASKED = 0.25, 0.4, 1.05  # of the warm local disk


def main() -> int:
    options = arguments()
    settings = {key: str(value) for key, value in vars(options).items() if key != "cache"}
    samples: list[dict[str, Any]] = []
    lab = Lab.up(name=options.lab, nodes=options.nodes, fs=options.fs)
    try:
        places = startup.prepare(lab, options)
        for repeat in range(options.repeats):
            for ranks in options.ranks:
                for variant in options.variants:
                    sample = startup.start(lab, places, variant, ranks, options, repeat)
                    samples.append(sample)
                    print(f"{startup.line(sample)}  {used(sample)}", flush=True)
                    save(options.out / "fork.json", "fork", settings, samples)
    finally:
        lab.down()
    print_table(samples, options)
    print(f"\nraw samples: {options.out / 'fork.json'}")
    return 0


def arguments() -> argparse.Namespace:
    parser = lab_parser(__doc__, "fork", "out/fork")
    parser.add_argument("--quick", action="store_true", help="8 ranks, twice")
    parser.add_argument("--ranks", type=numbers, default=[4, 32])
    parser.add_argument("--variants", type=words(), default=list(VARIANTS))
    parser.add_argument("--fs", default="moosefs", help="moosefs, or slow:0.5ms")
    options = parser.parse_args()
    if options.quick:
        options.ranks, options.repeats = [8], 2
    return options


def per_rank(sample: dict[str, Any]) -> float:
    """MiB."""
    return float(sample["bytes"]) / sample["ranks"] / 2**20


def used(sample: dict[str, Any]) -> str:
    seconds, sleeps = sample["rank_processor_seconds"], sample["rank_sleeps"]
    ranks = f"ranks: {seconds:.1f} s of processors, {sleeps:,} sleeps"
    return f"{per_rank(sample):6.1f} MiB a rank  {ranks}"


def print_table(samples: list[dict[str, Any]], options: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{options.nodes} nodes, medians of {options.repeats}; memory is a rank's")
    for name in HEADS:
        table.add_column(name, justify="right")
    for ranks in options.ranks:
        at = {v: {"ranks": ranks, "variant": v} for v in options.variants}
        seconds = {v: median(samples, "seconds", **at[v]) or 0.0 for v in at}
        ends = {v: median(samples, "total_seconds", **at[v]) or 0.0 for v in at}
        memory = {v: (median(samples, "bytes", **at[v]) or 0.0) / ranks / 2**20 for v in at}
        base = "local" if "local" in at else options.variants[0]
        for variant in options.variants:
            table.add_row(
                str(ranks),
                variant,
                f"{seconds[variant]:.2f}",
                f"{seconds[variant] / seconds[base]:.2f}",
                f"{ends[variant]:.2f}",
                f"{ends[variant] / ends[base]:.2f}",
                f"{memory[variant]:.1f}",
                f"{memory[variant] / memory[base]:.2f}",
                fewest_forked(samples, ranks) if variant == "fork" else "",
            )
    Console().print(table)
    print(
        f"asked of fork: {SECONDS_ASKED} of the seconds and {BYTES_ASKED} of the memory at 8 ranks "
        f"a node, {ALONE_ASKED} of the seconds at one"
    )


def fewest_forked(samples: list[dict[str, Any]], ranks: int) -> str:
    """Ranks that were forked, in the start in which they were fewest."""
    reports = [
        s["report"]["fork"] for s in samples if (s["ranks"], s["variant"]) == (ranks, "fork")
    ]
    return str(min(report["ranks"] if report else 0 for report in reports))


if __name__ == "__main__":
    sys.exit(main())
