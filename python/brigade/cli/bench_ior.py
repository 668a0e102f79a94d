"""`brigade bench ior`: IOR's options, semantics and table."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, TypeVar

import click
from click.core import ParameterSource

from brigade.bench.ior import options, presets
from brigade.cli.bench_checkpoint import (
    folder_option,
    launcher_words,
    mpicc_option,
    numbers_of,
    scratch,
    sizes_of,
)
from brigade.cli.completing import WORDS
from brigade.cli.counting import counted
from brigade.cli.size import size
from brigade.cli.stoppable import stoppable
from brigade.errors import UsageError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_ROUNDS = 5  # of a comparison
_FIRST = "ior_"  # of the names of IOR's own options here


def _ior_option(option: options.Option) -> Callable[[Decorated], Decorated]:
    names = [f"-{option.letter}"] if option.letter else []
    names += [f"--{name}" for name in (option.name, option.other) if name]
    text = option.help
    if option.kind == "FLAG":
        return click.option(*names, _FIRST + option.field, count=True, help=text)
    if option.unless_said.strip("0-1") and "[default" not in text:
        text += f"  [default: {option.unless_said}]"
    kind = {"SIZE": "SIZE", "TEXT": "WORD"}.get(option.kind, "N")
    several = option.letter == "O"
    return click.option(
        *names, _FIRST + option.field, metavar=kind, multiple=several, default=None, help=text
    )


def _ior_options(function: Decorated) -> Decorated:
    for option in reversed(options.options()):
        function = _ior_option(option)(function)
    return function


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  brigade bench ior                                      POSIX, 4 ranks, here
  brigade bench ior -a MPIIO -c -V -b 1m -t 1m -s 64 -Q 16 -Z -X 16 -w -r
  brigade bench ior -a MPIIO,MPIIO:view,LAMINAR -c -t 64k -s 64 -i 5 -C -e
  brigade bench ior -a MPIIO,ONESIDED,ONESIDED:seam=shmem -c -t 64k -s 64 --compare
  brigade bench ior -a LAMINAR:transport=rotate -w -W -r -R -C --json
  brigade bench ior -a OMPIO,ROMIO,LAMINAR -c --compare --sizes 64M,1G -n 4,16 -- srun -n {n}
  brigade bench ior --preset titan-1024 --scale 64
  brigade bench ior -n 64 -F -b 1g -t 4m -o /scratch/me/file -- srun -n {n}
  srun -n 64 $(brigade bench ior --program) -a LAMINAR -b 1g -t 4m -o /scratch/me/file

\b
Back ends: POSIX; MPIIO and ONESIDED (libbrigade_shmemio, over MPI's windows, or OpenSHMEM with
ONESIDED:seam=shmem), with a view MPIIO:view and ONESIDED:view; LAMINAR (libbrigade_io); HDF5,
where there is a parallel one. To compare, also
Open MPI's OMPIO and ROMIO, and PRELOADED: MPIIO as `brigade mpiio` does it.""",
)
@_ior_options
@click.option(
    "-n", "widths", default="4", show_default=True, callback=numbers_of, metavar="RANKS,...",
    help="Ranks; of several numbers a comparison has a row each.",
)  # fmt: skip
@click.option("--compare", is_flag=True, help="Back ends side by side: medians, and ratios.")
@click.option(
    "--sizes", callback=sizes_of, metavar="SIZE,...",
    help="Compare files of these sizes: as many segments as it takes.",
)  # fmt: skip
@click.option(
    "--preset", type=click.Choice(list(presets.PRESETS)),
    help="Compare as in a published run, and print that beside.",
)  # fmt: skip
@click.option(
    "--scale", type=click.IntRange(1), default=1, metavar="N",
    help="Of a preset, 1/N of the ranks, and of what each writes.",
)  # fmt: skip
@folder_option("Without -o: a folder")
@mpicc_option
@click.option("--program", "only_program", is_flag=True, help="Only compile; print its path.")
@click.option("--csv", "as_csv", is_flag=True, help="A line for each sample.")
@click.option("--json", "as_json", is_flag=True, help="For machines, with all samples.")
@click.argument("launcher", nargs=-1, type=WORDS)
@click.pass_context
def ior(
    ctx: click.Context,
    /,
    launcher: tuple[str, ...],
    widths: list[int],
    folder: str,
    mpicc: str,
    only_program: bool,
    compare: bool,
    as_csv: bool,
    as_json: bool,
    **said: Any,
) -> None:
    """IOR: its options, its semantics, its table; several back ends take turns.

    LAUNCHER starts a program with RANKS ranks ({n} stands for their number); brigade-ior is put
    after it.  [default: mpirun or mpiexec here]

    Where words are checked (-W, -R) each says which task wrote it and where it belongs. The exit
    code is 1 if one is wrong.
    """
    from brigade.bench.checkpoint.program import open_mpi
    from brigade.bench.ior import measure, program
    from brigade.paths import cache_dir

    values = options.folded(
        {name[len(_FIRST) :]: said.pop(name) for name in list(said) if name[:4] == _FIRST}
    )
    shmem = "seam=shmem" in str(values["api"] or "")
    if shmem:
        mpicc = os.environ.get("OSHCC", "oshcc")
    if open_mpi(mpicc) == 4:  # which makes no windows with it over TCP; later ones, only with it
        os.environ.setdefault("OMPI_MCA_osc", "^rdma")
    made = program.prepare(cache_dir() / "bench", mpicc, shmem)
    if only_program:
        click.echo(made)
        return
    several = compare or said["sizes"] or said["preset"]
    if values["summary_file"] and (several or as_json):
        raise UsageError("summaryFile: a comparison, and --json, are printed")
    if values["script"] and several:
        raise UsageError("-f: a comparison is of one test: give its options")
    start = functools.partial(launcher_words, launcher, mpicc=mpicc)
    with stoppable(), _place(values, folder):
        if several:
            given = ctx.get_parameter_source("widths") is not ParameterSource.DEFAULT
            said["mpicc"] = mpicc
            _compare(str(made), start, widths if given else None, values, as_csv, as_json, **said)
            return
        if len(widths) > 1:
            raise UsageError("several numbers of ranks (-n) are for --compare")
        command = [*start(ranks=widths[0]), str(made), *options.words(values)]
        if as_json:
            report = measure.gather_report(command)
            click.echo(json.dumps(report, indent=1))
            ctx.exit(report["status"])
        ctx.exit(measure.show([*command, *(["-O", "summaryFormat=CSV"] if as_csv else [])]))


def _compare(
    made: str,
    start: Callable[..., tuple[str, ...]],
    widths: list[int] | None,
    values: dict[str, Any],
    as_csv: bool,
    as_json: bool,
    *,
    mpicc: str,
    sizes: list[int] | None,
    preset: str | None,
    scale: int,
) -> None:
    """Print the comparison. With a preset its values are what is not said."""
    from brigade.bench.checkpoint.program import is_open_mpi, mpiio_components
    from brigade.bench.ior import compare, measure
    from brigade.report.host import host

    if _number(values, "minutes"):
        raise UsageError(
            "-T: a comparison needs every phase", hint="-D lets each move for so many seconds"
        )
    published = presets.PRESETS[preset] if preset else None
    if published:
        reordered = values["reorder"]
        accesses = ("write", "read") if values["write"] or values["read"] else ()
        theirs = {k: v for k, v in presets.VALUES.items() if k not in accesses}
        values.update({k: v for k, v in theirs.items() if not values[k]})
        if reordered:  # by -C, not by -Z
            values["reorder_random"] = 0
        ranks, each = presets.scaled(published, scale)
        widths = widths or [ranks]
    widths = widths or [4]
    cases = []
    for ranks in widths:
        if published and not sizes and not values["segments"]:
            files = [bytes_ * ranks for bytes_ in each]
        else:
            files = sizes or []
        cases += [
            measure.Case(start(ranks=ranks), ranks, one) for one in _files(values, files, ranks)
        ]
    components = mpiio_components(mpicc) if is_open_mpi(mpicc) else {}
    ways = measure.ways(values["api"] or "POSIX", components)
    rounds = _number(values, "repetitions") or _ROUNDS
    with counted("measuring") as progress:
        samples = measure.compare(made, cases, ways, rounds, progress)
    found = compare.rows(samples, [way.name for way in ways])
    if as_json:
        settings = {"words": options.words(values), "widths": widths, "rounds": rounds,
                    "preset": preset, "scale": scale}  # fmt: skip
        report = {"host": host(), "settings": settings, "rows": found, "samples": samples}
        click.echo(json.dumps(report, indent=1))
    elif as_csv:
        click.echo(compare.as_csv(found, os.uname().nodename), nl=False)
    else:
        compare.print_report(found, published)


def _number(values: dict[str, Any], field: str) -> int:
    """What the comparison itself must know, where the program would refuse what is none."""
    try:
        return int(values[field] or 0)
    except ValueError:
        option = next(one for one in options.options() if one.field == field)
        raise UsageError(f"{option.said}: {values[field]!r} is not a number") from None


def _files(values: dict[str, Any], sizes: list[int], ranks: int) -> Iterator[dict[str, Any]]:
    """The options of each file: segments follow from sizes, if there are any."""
    if not sizes:
        yield values
    elif values["segments"]:
        raise UsageError("--sizes says how many segments there are; leave -s out")
    block = size(str(values["block"] or "1m")) or 1
    for bytes_ in sizes:
        yield {**values, "segments": str(max(1, bytes_ // (block * ranks)))}


@contextmanager
def _place(values: dict[str, Any], folder: str) -> Iterator[None]:
    """Unless the file is named (-o), it is in a folder of its own, which is removed. A signal ends
    the block at once."""
    from brigade import interrupt

    if values["path"] is not None:
        with interrupt.promptly():
            yield
        return
    if values["keep"]:
        raise UsageError("a file that is kept (-k) needs a name", hint="give it one: -o FILE")
    with scratch(folder) as place:
        values["path"] = str(place / "testFile").replace("@", "@@")  # one @ is between names
        yield
