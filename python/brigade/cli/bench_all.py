"""`brigade bench all`: every benchmark, and one page of what they say."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from brigade.bench.all.plan import ENTRIES
from brigade.cli.bench_checkpoint import folder_option, scratch
from brigade.cli.completing import FILE, WORDS
from brigade.cli.counting import counted
from brigade.cli.number import Number
from brigade.cli.stoppable import stoppable
from brigade.errors import BrigadeError, UsageError


@click.command(
    "all",
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  brigade bench all --quick                               a minute or two, here: laboratory.html
  brigade bench all --quick --dir /scratch/me -o ticket.html
  brigade bench all --only checkpoint,interfere -n 64 --dir /scratch/me -- srun -n {n}""",
)
@click.option("--quick", is_flag=True, help="A short form of each.")
@click.option(
    "-o", "--output", default="laboratory.html", show_default=True, type=FILE,
    help="The page; FILE with .json at its end has all samples.",
)  # fmt: skip
@click.option("-n", "ranks", type=click.IntRange(1), default=2, show_default=True, help="Ranks.")
@click.option("--only", metavar="NAME,...", help="Of " + ", ".join(one.name for one in ENTRIES))
@click.option(
    "--limit", type=Number(1), metavar="SECONDS",
    help="Most that one may take.  [default: 120 with --quick, else 3600]",
)  # fmt: skip
@folder_option()
@click.argument("launcher", nargs=-1, type=WORDS)
def all_(
    launcher: tuple[str, ...],
    quick: bool,
    output: str,
    ranks: int,
    only: str | None,
    limit: float | None,
    folder: str,
) -> None:
    """Run every benchmark on this machine, and write one page (HTML) with all they say.

    A page for a procurement or a ticket: tables and figures inside, nothing to fetch. A benchmark
    that fails is shown with what it said, and the others go on. All files of theirs are removed.
    LAUNCHER starts a program with RANKS ranks ({n} stands for their number).
    """
    from brigade.bench.all import run
    from brigade.page import laboratory
    from brigade.report.host import host

    names = only.split(",") if only else [one.name for one in ENTRIES]
    unknown = set(names) - {one.name for one in ENTRIES}
    if unknown:
        raise UsageError(
            f"no benchmark '{sorted(unknown)[0]}'",
            hint=f"there are {', '.join(one.name for one in ENTRIES)}",
        )
    page = Path(output).absolute()
    samples = page.with_suffix(".json")
    if page == samples or not page.parent.is_dir():
        raise UsageError(f"{output}: no page can be there", hint="name a file like lab.html")
    chosen = [one for one in ENTRIES if one.name in names]
    longest = limit or (120.0 if quick else 3600.0)
    with stoppable(), scratch(folder) as place, counted("benchmarks") as progress:
        outcomes = run.run(chosen, quick, ranks, place, launcher, longest, progress)
    settings = {
        "quick": quick, "ranks": ranks, "folder": str(Path(folder).resolve()),
        "machine": os.uname().nodename, "launcher": list(launcher),
    }  # fmt: skip
    about = host()
    found = {
        "benchmark": "all", "host": about, "settings": settings,
        "benchmarks": [one.as_json() for one in outcomes],
    }  # fmt: skip
    try:
        page.write_text(laboratory.render(outcomes, about, settings), encoding="utf-8")
        samples.write_text(json.dumps(found) + "\n", encoding="utf-8")
    except OSError as error:
        raise BrigadeError(
            f"{error.filename}: {error.strerror}", hint="name another file with -o"
        ) from error
    for one in outcomes:
        said = f"FAILED: {one.why}" if one.failure else "measured"
        click.echo(f"{one.entry.name:<12}{one.seconds:6.1f} s  {said}")
    click.echo(f"page: {page}\nraw samples: {samples}")
    sys.exit(0 if any(not one.failure for one in outcomes) else 1)
