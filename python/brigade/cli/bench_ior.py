"""`brigade bench ior`: IOR's options, semantics and table."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, TypeVar

import click

from brigade.bench.ior import options
from brigade.cli.bench_checkpoint import launcher_words, scratch
from brigade.errors import UsageError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
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
  brigade bench ior -a LAMINAR:transport=rotate -w -W -r -R -C --json
  brigade bench ior -n 64 -F -b 1g -t 4m -o /scratch/me/file -- srun -n {n}
  srun -n 64 $(brigade bench ior --program) -a LAMINAR -b 1g -t 4m -o /scratch/me/file

\b
Back ends: POSIX; MPIIO, and with a view MPIIO:view; LAMINAR (libbrigade_io).""",
)
@_ior_options
@click.option("-n", "ranks", type=click.IntRange(1), default=4, show_default=True, help="Ranks.")
@click.option(
    "--dir",
    "folder",
    default=".",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Without -o: a folder on the file system to be measured.  [default: this one]",
)
@click.option(
    "--mpicc",
    default=lambda: os.environ.get("MPICC", "mpicc"),
    metavar="COMMAND",
    help="Compiler of the MPI.  [default: MPICC, or mpicc]",
)
@click.option("--program", "only_program", is_flag=True, help="Only compile; print its path.")
@click.option("--csv", "as_csv", is_flag=True, help="A line for each sample.")
@click.option("--json", "as_json", is_flag=True, help="For machines, with all samples.")
@click.argument("launcher", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def ior(
    ctx: click.Context,
    /,
    launcher: tuple[str, ...],
    ranks: int,
    folder: str,
    mpicc: str,
    only_program: bool,
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
    from brigade.bench.checkpoint.program import says
    from brigade.bench.ior import measure, program
    from brigade.paths import cache_dir

    made = program.prepare(cache_dir() / "bench", mpicc)
    if only_program:
        click.echo(made)
        return
    values = {name[len(_FIRST) :]: value for name, value in said.items()}
    open_mpi = "Open MPI" in says([*shlex.split(mpicc), "--showme:version"])
    command = [*launcher_words(launcher, ranks, open_mpi), str(made)]
    with _place(values, folder):
        if as_json:
            report = measure.gather_report([*command, *options.words(values)])
            click.echo(json.dumps(report, indent=1))
            ctx.exit(report["status"])
        form = ["-O", "summaryFormat=CSV"] if as_csv else []
        ctx.exit(measure.show([*command, *options.words(values), *form]))


@contextmanager
def _place(values: dict[str, Any], folder: str) -> Iterator[None]:
    """Unless the file is named (-o), it is in a folder of its own, which is removed."""
    if values["path"] is not None:
        yield
        return
    if values["keep"]:
        raise UsageError("a file that is kept (-k) needs a name", hint="give it one: -o FILE")
    with scratch(folder) as place:
        values["path"] = str(place / "testFile")
        yield
