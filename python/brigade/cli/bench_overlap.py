"""`brigade bench overlap`: a program's barriers while its checkpoint is written."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click

from brigade.bench import overlap as bench
from brigade.cli.bench_checkpoint import folder_option, launcher_words, mpicc_option, scratch
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
  brigade bench overlap                                  2 ranks, 64 MiB each, here
  brigade bench overlap -n 64 --size 256M --dir /scratch/me -- srun -n {n}
  brigade bench overlap --variants async,yielding --slowdown 1.5 --rounds 10 --figure barriers.png
  brigade bench overlap --rate 50M --variants yielding --json

\b
Variants:
"""
    + "\n".join(f"  {name:<10}{meaning}" for name, meaning in bench.VARIANTS.items()),
)
@click.option("-n", "ranks", type=click.IntRange(1), default=2, show_default=True, help="Ranks.")
@click.option("--size", type=Size(), default="64M", show_default=True, help="What a rank writes.")
@click.option(
    "--variants", default=",".join(bench.VARIANTS), show_default=True, help="What is compared."
)
@click.option(
    "--slowdown",
    type=Number(1),
    default=1.1,
    show_default=True,
    help="What `yielding` allows barriers to take, by what they take alone.",
)
@click.option("--rate", type=Size(), help="Most bytes a second and rank, in the background.")
@click.option(
    "--step",
    "step_us",
    type=click.IntRange(0),
    default=1000,
    show_default=True,
    metavar="MICROSECONDS",
    help="Work of a rank before each barrier.",
)
@click.option(
    "--barriers",
    type=click.IntRange(10, 50000),
    default=500,
    show_default=True,
    help="Barriers before each write, and at least after it.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="How often each variant has its turn.",
)
@folder_option()
@mpicc_option
@click.option("--seed", type=int, default=1, help="Another order of turns.")
@click.option("--figure", type=FILE, help="Draw it, too (needs Matplotlib).")
@click.option("--json", "as_json", is_flag=True, help="For machines, with all samples.")
@click.argument("launcher", nargs=-1, type=WORDS)
def overlap(
    launcher: tuple[str, ...],
    variants: str,
    size: int,
    rate: int | None,
    folder: str,
    mpicc: str,
    figure: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """A program's barriers while its checkpoint is written: how much longer do they take?

    Each rank works a little and meets the others at a barrier, writes, and goes on; each barrier's
    time is taken, before and until the file is there. In each round the variants have another
    order. LAUNCHER starts a program with RANKS ranks ({n} stands for their number).
    """
    from brigade.bench.checkpoint import program
    from brigade.paths import cache_dir
    from brigade.report.host import host

    names = variants.split(",")
    unknown = [name for name in names if name not in bench.VARIANTS]
    if unknown:
        raise UsageError(
            f"no variant '{unknown[0]}'", hint=f"there are {', '.join(bench.VARIANTS)}"
        )
    compiler = shlex.split(mpicc)
    words = bench.words(compiler)
    made = program.compiled(cache_dir() / "bench", "overlap", words, bench.SOURCES)
    started = launcher_words(launcher, options["ranks"], mpicc)
    with stoppable(), scratch(folder) as place, counted("measuring") as progress:
        settings = bench.Settings(place, started, bytes=size, rate=rate or 0, **options)
        samples = bench.measure(made, names, settings, progress)
    report = {
        "host": host(),
        "settings": {**options, "bytes": size, "rate": rate, "folder": folder,
                     "launcher": list(started)},
        "variants": bench.summarize(samples, settings),
        "samples": samples,
    }  # fmt: skip
    from brigade.bench import overlap_report

    if figure:
        overlap_report.draw(samples, Path(figure))
    if as_json:
        click.echo(json.dumps(report))
    else:
        overlap_report.print_report(report)
