"""`brigade bench cache`: what the page cache does to a program's writes and reads."""

from __future__ import annotations

import json
from typing import Any

import click

from brigade.bench.cache.plan import PATTERNS
from brigade.cli.bench_checkpoint import folder_option, scratch, sizes_of
from brigade.cli.completing import FILE
from brigade.cli.counting import counted
from brigade.cli.duration import Duration
from brigade.cli.number import Number
from brigade.cli.size import Size
from brigade.cli.stoppable import stoppable
from brigade.cli.there import There


@click.command(
    epilog="""\b
Examples:
  brigade bench cache                                   a minute, here
  brigade bench cache --dir /scratch/me --figure cache.png
  brigade bench cache --sizes 4k,1M --patterns back,fsync --memory 256M
  brigade bench cache --json > study.json    and then: brigade model cache --compare study.json

\b
Patterns:
"""
    + "\n".join(f"  {name:<8}{meaning}" for name, meaning in PATTERNS.items())
)
@click.option(
    "--sizes", default="4k,64k,1M,8M", show_default=True, callback=sizes_of, help="Of writes."
)
@click.option("--patterns", default=",".join(PATTERNS), show_default=True, help="What is done.")
@click.option(
    "--memory", type=Size(), help="Memory that it may use.  [default: 32M to 128M, by the rates]"
)
@click.option(
    "--seconds",
    type=Number(1),
    default=60.0,
    show_default=True,
    help="What it shall take, about.",
)
@click.option(
    "--sleep", type=Duration(), default="100ms", show_default=True, help="Between two bursts."
)
@folder_option()
@click.option("--workload", type=There(dir_okay=False), help="Do these steps instead.")
@click.option("--figure", type=FILE, help="Draw it, too (needs Matplotlib).")
@click.option("--json", "as_json", is_flag=True, help="For machines, with all samples.")
def cache(
    sizes: list[int],
    patterns: str,
    folder: str,
    workload: str | None,
    figure: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """What the page cache does: how fast writes seem to be, and what stays cached.

    The rate of each write over time, for several sizes, back to back, with sleeps, with fsync, with
    O_DIRECT; then which part of a file larger than memory is cached after it was written (by
    mincore, and by timed reads). Memory is limited by a cgroup where you may make one. Ends with
    conclusions from the samples. All files are removed.
    """
    from brigade.bench.cache import measure, report, study
    from brigade.model.cache import workload as workloads
    from brigade.paths import cache_dir

    if figure:
        from brigade.model import figure as figures

        figures.check(figure)
    steps = workloads.load(workload) if workload else []
    wanted = study.Wanted(tuple(sizes), tuple(patterns.split(",")), steps=tuple(steps), **options)
    study.check(wanted)
    made = measure.program(cache_dir() / "bench")
    with stoppable(), scratch(folder) as place, counted("measuring") as progress:
        found = study.run(made, place, wanted, progress)
    if figure:
        report.draw(found, figure)
    if as_json:
        click.echo(json.dumps(found))
    else:
        report.print_report(found)
