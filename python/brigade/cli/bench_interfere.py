"""`brigade bench interfere`: barriers and allreduces before, during and after a write."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click

from brigade.bench import interfere as bench
from brigade.bench import overlap
from brigade.cli.bench_checkpoint import (
    folder_option,
    launcher_words,
    mpicc_option,
    numbers_of,
    scratch,
    sizes_of,
)
from brigade.cli.completing import FILE, WORDS
from brigade.cli.counting import counted
from brigade.cli.number import Number
from brigade.cli.size import Size
from brigade.cli.stoppable import stoppable
from brigade.errors import UsageError


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  brigade bench interfere                                2 ranks, 32 MiB each, here
  brigade bench interfere -n 16,256 --size 16M,256M --dir /scratch/me -- srun -n {n}
  brigade bench interfere --variants async,yielding --step 20000 --figure tails.png
  brigade bench interfere --variants capped --rate 50M --json

\b
Variants:
"""
    + "\n".join(f"  {name:<10}{meaning}" for name, meaning in bench.VARIANTS.items()),
)
@click.option(
    "-n", "widths", default="2", show_default=True, callback=numbers_of, metavar="RANKS,...",
    help="Ranks; several are measured in turn.",
)  # fmt: skip
@click.option(
    "--size", "sizes", default="32M", show_default=True, callback=sizes_of, metavar="SIZE,...",
    help="What each rank writes; several are measured in turn.",
)  # fmt: skip
@click.option(
    "--variants", metavar="NAME,...", help="What is compared.  [default: all that are possible]"
)
@click.option(
    "--slowdown", type=Number(1), default=1.1, show_default=True,
    help="What `yielding` allows calls to take, by what they take alone.",
)  # fmt: skip
@click.option(
    "--rate", type=Size(positive=True),
    help="Bytes a second and rank of `capped`.  [default: 80% of what async reaches]",
)  # fmt: skip
@click.option(
    "--step", "step_us", type=click.IntRange(0), default=1000, show_default=True,
    metavar="MICROSECONDS", help="Work of a rank before each barrier.",
)  # fmt: skip
@click.option(
    "--idle", is_flag=True,
    help="The work of a step sleeps: it is done on accelerators, and processors are free.",
)  # fmt: skip
@click.option(
    "--barriers", type=click.IntRange(10, 20000), default=500, show_default=True,
    help="Steps before each write, at least during it, and after it.",
)  # fmt: skip
@click.option(
    "--doubles", type=click.IntRange(1, 4096), default=1, show_default=True,
    help="What is summed in each allreduce.",
)  # fmt: skip
@click.option(
    "--rounds", type=click.IntRange(1), default=3, show_default=True,
    help="How often each variant has its turn.",
)  # fmt: skip
@folder_option()
@mpicc_option
@click.option("--seed", type=int, default=1, help="Another order of turns.")
@click.option("--figure", type=FILE, help="Draw it, too (needs Matplotlib).")
@click.option("--json", "as_json", is_flag=True, help="For machines, with all samples.")
@click.argument("launcher", nargs=-1, type=WORDS)
def interfere(
    launcher: tuple[str, ...],
    widths: list[int],
    sizes: list[int],
    variants: str | None,
    rate: int | None,
    folder: str,
    mpicc: str,
    figure: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """How long barriers and allreduces take before, during and after each rank writes.

    Percentiles of both calls, for each number of ranks and size, and each way to write, in turn.
    Each rank works a little, meets the others at a barrier, sums with them, and so on; a call's
    time is that of the slowest rank. `brigade bench overlap` shows the course of one such write.
    LAUNCHER starts a program with RANKS ranks ({n} stands for their number).
    """
    from brigade.bench.checkpoint import program
    from brigade.paths import cache_dir
    from brigade.report.host import host

    names = variants.split(",") if variants else list(bench.VARIANTS)
    unknown = [name for name in names if name not in bench.VARIANTS]
    if unknown:
        raise UsageError(
            f"no variant '{unknown[0]}'", hint=f"there are {', '.join(bench.VARIANTS)}"
        )
    words = overlap.words(shlex.split(mpicc))
    made = program.compiled(cache_dir() / "bench", "overlap", words, overlap.SOURCES)
    cells = [(ranks, size) for ranks in widths for size in sizes]
    samples: list[dict[str, Any]] = []
    with stoppable(), scratch(folder) as place, counted("measuring") as progress:
        absent = bench.absent(place, sizes)
        for name, why in absent.items():
            if variants and name in names:
                raise UsageError(f"{name} cannot be measured: {why}")
        names = [name for name in names if name not in absent]
        for number, (ranks, size) in enumerate(cells):
            settings = overlap.Settings(
                place, launcher_words(launcher, ranks, mpicc), ranks, size, rate=rate or 0,
                after=options["barriers"], **options,
            )  # fmt: skip
            if progress:
                progress(number, len(cells))
            samples += bench.measure(made, names, settings)
    report = {
        "host": host(),
        "settings": {**options, "ranks": widths, "sizes": sizes, "rate": rate, "folder": folder,
                     "launcher": list(launcher)},
        "absent": absent,
        "cells": bench.summarize(samples),
        "samples": samples,
    }  # fmt: skip
    from brigade.bench import interfere_report

    if figure:
        interfere_report.draw(samples, Path(figure))
    if as_json:
        click.echo(json.dumps(report))
    else:
        interfere_report.print_report(report)
