"""`brigade bench checkpoint` and `brigade bench align`: shared files, through Brigade and peers."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, TypeVar

import click

from brigade.bench.checkpoint import plan
from brigade.cli.completing import FILE, WORDS
from brigade.cli.counting import counted
from brigade.cli.size import Size
from brigade.cli.stoppable import stoppable
from brigade.cli.there import There
from brigade.errors import UsageError

if TYPE_CHECKING:
    from brigade.bench.checkpoint.program import Program

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_PEERS = [name for name in plan.BACK_ENDS if name not in ("mpiio", "onesided", "preloaded")]


def _words(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    return value.split(",") if value is not None else None


def numbers_of(ctx: click.Context, param: click.Parameter, value: str) -> list[int]:
    """A callback for lists of numbers of ranks."""
    try:
        numbers = [int(word) for word in value.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise click.BadParameter(f"{value!r} is not a list of numbers such as 4,16")
    return numbers


def sizes_of(ctx: click.Context, param: click.Parameter, value: str | None) -> list[int] | None:
    """A callback for lists of sizes."""
    if value is None:
        return None
    return [Size().convert(word, param, ctx) for word in value.split(",")]


def folder_option(which: str = "A folder") -> Callable[[Decorated], Decorated]:
    """--dir, as `folder`; `which` begins its help."""
    return click.option(
        "--dir", "folder", default=".", metavar="DIR",
        type=There(file_okay=False),
        help=f"{which} on the file system to be measured.  [default: this one]",
    )  # fmt: skip


mpicc_option = click.option(
    "--mpicc", default=lambda: os.environ.get("MPICC", "mpicc"), metavar="COMMAND",
    help="Compiler of the MPI.  [default: MPICC, or mpicc]",
)  # fmt: skip


def _common(rounds: int, seconds: str) -> Callable[[Decorated], Decorated]:
    options = [
        click.option(
            "-n", "widths", default="4", show_default=True, callback=numbers_of,
            metavar="RANKS,...", help="Ranks; several are measured in turn.",
        ),
        click.option("--rounds", type=click.IntRange(1), default=rounds, show_default=True,
                     help=f"How often each variant has its turn{seconds}."),
        folder_option(),
        click.option("--sync/--no-sync", default=True, show_default=True,
                     help="Whether what is written must reach the disk."),
        mpicc_option,
        click.option("--seed", type=int, default=1, help="Another order of turns."),
        click.option("--json", "as_json", is_flag=True, help="For machines, with all samples."),
        click.argument("launcher", nargs=-1, type=WORDS),
    ]  # fmt: skip

    def decorate(function: Decorated) -> Decorated:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  brigade bench checkpoint                              4 ranks, here, every peer there is
  brigade bench checkpoint -n 4,16,32 --dir /scratch/me -- srun -n {n}
  brigade bench checkpoint --pattern strided --record 1k --variants brigade,ompio,romio
  brigade bench checkpoint --variants brigade,brigade:transport=rotate:checksums=no,posix-fpp
  brigade bench checkpoint --rival 64 --rounds 30 --pattern contiguous --record 1M --figure load.png
  brigade bench checkpoint --mpicc mpicc.mpich --variants brigade,mpiio -- mpiexec.mpich -n {n}

\b
Back ends: """
    + ", ".join(plan.BACK_ENDS),
)
@click.option(
    "--pattern", "patterns", default=",".join(plan.PATTERNS), show_default=True, callback=_words,
    help="; ".join(f"{name}: {meaning}" for name, meaning in plan.PATTERNS.items()) + ".",
)  # fmt: skip
@click.option(
    "--record", "records", default="1k,64k,1M,16M", show_default=True, callback=sizes_of,
    metavar="SIZE,...", help="Record sizes of contiguous and strided.",
)  # fmt: skip
@click.option(
    "--variants", callback=_words, metavar="BACKEND[:HINTS],...",
    help="What is compared; ratios are to Brigade's first by name.  [default: all that are there]",
)  # fmt: skip
@click.option(
    "--publish", is_flag=True,
    help="Peers, too, write beside the name and rename when all is there: as safe as Brigade.",
)  # fmt: skip
@click.option("--read/--no-read", default=True, show_default=True, help="Whether to read back.")
@click.option(
    "--rival", type=click.IntRange(0), default=0, metavar="MIB",
    help="Another job that writes and reads bursts of up to so many MiB meanwhile.",
)  # fmt: skip
@click.option("--figure", type=FILE, help="Draw it, too (needs Matplotlib).")
@click.option(
    "--python", default=sys.executable, type=FILE,
    help="The Python whose ADIOS2 is measured.  [default: this one]",
)  # fmt: skip
@_common(5, "")
def checkpoint(
    launcher: tuple[str, ...],
    patterns: list[str],
    records: list[int],
    variants: list[str] | None,
    widths: list[int],
    figure: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Write and read the same bytes through Brigade and its peers, in turn, and compare.

    LAUNCHER starts a program with RANKS ranks ({n} stands for their number); the benchmark's
    program is put after it.  [default: mpirun or mpiexec here]

    Every rank's bytes follow from their place in the file; what is read is compared, and in the
    first round so is the whole file. Phases are open, move and close (with --sync: on disk), of
    the slowest rank; a time is from when the first rank begins until the last one has ended. In
    each round cells and variants have another order.
    """
    unknown = [name for name in patterns if name not in plan.PATTERNS]
    if unknown:
        raise UsageError(f"no pattern '{unknown[0]}'", hint=f"there are {', '.join(plan.PATTERNS)}")
    report = _run(
        lambda ranks: plan.cells(patterns, records, ranks), variants, widths, launcher, **options
    )
    if figure:
        from brigade.bench.checkpoint import figure as drawing

        if options["rival"]:
            drawing.draw_steadiness(report["samples"], Path(figure), "writing beside another job")
        else:
            drawing.draw_cells(report["cells"], "write", Path(figure), "open to closed")
    if as_json:
        click.echo(json.dumps(report, indent=1))
        return
    from brigade.bench.checkpoint.table import print_report

    print_report(report)


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  brigade bench align -n 4                               headers of 256 B and 4 KiB, 64 MiB blocks
  brigade bench align -n 4,32,128 --block 1G --dir /scratch/me -- srun -n {n}
  brigade bench align --header 256 --place shared --csv
  brigade bench align --system xt5 --back-end posix""",
)
@click.option(
    "--header", "headers", default="256,4k", show_default=True, callback=sizes_of,
    metavar="SIZE,...", help="Headers; without one is always measured.",
)  # fmt: skip
@click.option("--block", type=Size(), default="64M", show_default=True, help="What follows it.")
@click.option(
    "--place", "places", default="shared,own", show_default=True, callback=_words,
    help="shared: one file; own: a file for each rank.",
)  # fmt: skip
@click.option(
    "--back-end", "back_ends", default="brigade,posix", show_default=True, callback=_words,
    help="Whose rates.",
)  # fmt: skip
@click.option("--system", default=lambda: os.uname().nodename, help="What the rows are called.")
@click.option("--csv", "as_csv", is_flag=True, help="As the published file is.")
@_common(4, " (the published iterations)")
def align(
    launcher: tuple[str, ...],
    headers: list[int],
    block: int,
    places: list[str],
    back_ends: list[str],
    system: str,
    widths: list[int],
    as_json: bool,
    as_csv: bool,
    **options: Any,
) -> None:
    """A small header before each rank's large block: what does it do to the rates?

    Each rank writes a header and then a block, to one shared file or to a file of its own, and
    reads them back; the same without a header. Four iterations; printed in the published form:
    MB/s of all blocks, writing with fsync, with (offset) and without (plain) the header.
    """
    from brigade.bench.checkpoint import align as bench

    for name, known in ((places, ("shared", "own")), (back_ends, ("brigade", "posix"))):
        if set(name) - set(known):
            raise UsageError(f"'{','.join(name)}': there are {' and '.join(known)}")
    report = _run(
        lambda ranks: bench.cells(headers, block, ranks),
        bench.variants(back_ends, places), widths, launcher,
        read=True, rival=0, python=sys.executable, **options,
    )  # fmt: skip
    rows = bench.rates(report["samples"], system)
    report["settings"]["block"] = block
    report["rows"] = rows
    if as_json:
        click.echo(json.dumps(report, indent=1))
    elif as_csv:
        click.echo(bench.as_csv(rows), nl=False)
    else:
        bench.print_report(report)


def _run(
    cells: Callable[[int], list[plan.Cell]],
    wanted: Sequence[str] | None,
    widths: Sequence[int],
    launcher: Sequence[str],
    *,
    rounds: int,
    folder: str,
    sync: bool,
    read: bool,
    publish: bool = False,
    mpicc: str,
    python: str,
    seed: int,
    rival: int,
) -> dict[str, Any]:
    """The report of all widths; UsageError if a variant that was asked for is not there."""
    from brigade.bench.checkpoint import measure, program, summary
    from brigade.bench.checkpoint.rival import rival as neighbour
    from brigade.paths import cache_dir
    from brigade.report.host import host

    planned = {ranks: cells(ranks) for ranks in widths}
    if wanted:
        for name in wanted:
            plan.variant(name, {})
    made = program.prepare(cache_dir() / "bench", mpicc, python)
    samples: list[dict[str, Any]] = []
    about: dict[str, Any] = {}
    with stoppable(), scratch(folder) as place:
        with neighbour(place, rival), counted("measuring") as progress:
            for number, ranks in enumerate(widths):
                settings = measure.Settings(
                    place,
                    launcher_words(launcher, ranks, mpicc),
                    rounds,
                    sync,
                    read,
                    seed,
                    publish,
                )
                ways = _variants(wanted, made, ranks)
                shown = progress and _part(progress, number, len(widths))
                said = measure.measure(made, planned[ranks], ways, settings, shown)
                samples += said.pop("samples")
                about = said
    about.pop("ranks", None)
    return {
        "host": host(),
        "settings": {
            **about, "widths": list(widths), "rounds": rounds, "sync": sync, "publish": publish,
            "rival_mib": rival,
            "launcher": list(launcher_words(launcher, widths[-1], mpicc)),
            "folder": folder, "seed": seed,
        },
        "absent": made.absent,
        "cells": summary.summarize(samples),
        "samples": samples,
    }  # fmt: skip


def _part(progress: Callable[[int, int], None], number: int, parts: int) -> Callable[..., None]:
    """The progress of one of several widths."""
    return lambda done, total: progress(number * total + done, parts * total)


def _variants(wanted: Sequence[str] | None, made: Program, ranks: int) -> list[plan.Variant]:
    if wanted is None:
        wanted = [name for name in _PEERS if name not in made.absent]
        if "ompio" in made.absent and "romio" in made.absent:
            wanted.append("mpiio")
    for name in wanted:
        why = made.absent.get(name.partition(":")[0])
        if why:
            raise UsageError(f"{name} cannot be measured: {why}")
    return [plan.variant(name.replace("{ranks}", str(ranks)), made.components) for name in wanted]


def launcher_words(words: Sequence[str], ranks: int, mpicc: str) -> tuple[str, ...]:
    """The launcher of so many ranks: the user's words, or this machine's of the compiler's MPI:
    that of `mpicc.mpich` is `mpiexec.mpich`, where there is one."""
    from brigade.bench.checkpoint.program import is_open_mpi

    if not words:
        suffix = os.path.basename(shlex.split(mpicc)[0]).removeprefix("mpicc")
        name, *flags = ["mpirun", "--oversubscribe"] if is_open_mpi(mpicc) else ["mpiexec"]
        words = [name + suffix if shutil.which(name + suffix) else name, *flags, "-n", "{n}"]
    return tuple(word.replace("{n}", str(ranks)) for word in words)


@contextmanager
def scratch(folder: str) -> Iterator[Path]:
    """A folder of our own below `folder`. A signal that is listened for ends the block at once, and
    never the removal."""
    from brigade import interrupt

    try:
        place = Path(tempfile.mkdtemp(prefix="brigade-bench-", dir=Path(folder).absolute()))
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error
    try:
        with interrupt.promptly():
            yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
