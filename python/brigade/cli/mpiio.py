"""`brigade mpiio`: an unmodified MPI program whose collective I/O goes through few writers."""

from __future__ import annotations

import os

import click

from brigade.cli.completing import WORDS
from brigade.errors import LauncherError, UsageError


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  brigade mpiio -- mpirun -n 32 ior -a MPIIO -c -b 16m -t 1m
  brigade mpiio --report -- srun -N 4 -n 64 ./solver input.nml
  brigade mpiio --hints '*.h5:writers=8:stripe=4M' -- mpirun -n 8 python write_h5.py
  srun -n 64 brigade mpiio -- ./solver input.nml      inside the launcher: the same""",
)
@click.option("--report", is_flag=True, help="Rank 0 says at the end what was taken over.")
@click.option("--hints", metavar="TEXT", help="As BRIGADE_IO: hints by the names of files.")
@click.argument("words", nargs=-1, required=True, type=WORDS, metavar="COMMAND")
def command(words: tuple[str, ...], report: bool, hints: str | None) -> None:
    """Run COMMAND, an MPI program with or without its launcher, with its MPI-IO done by Brigade.

    Nothing is rebuilt: a library is preloaded that takes over the collective calls of MPI_File,
    blocking and split, and those of one rank whose bytes do not lie together, in C and Fortran,
    under Open MPI and MPICH; it leaves all else to the MPI. A program can be linked with it
    instead: brigade io-config --mpiio --libs.
    """
    from brigade.launch import parse
    from brigade.launch.preload import preloaded

    hints = hints if hints is not None else os.environ.get("BRIGADE_IO")
    if hints:
        _check(hints)
    told = os.environ.get("BRIGADE_MPIIO")
    said = {
        "LD_PRELOAD": preloaded("libbrigade_mpiio.so"),
        "BRIGADE_MPIIO": "verbose" if report and told != "off" else told,
        "BRIGADE_IO": hints,
    }
    # before each program, as not every launcher passes its own environment on
    prefix = ["env", *(f"{name}={value}" for name, value in said.items() if value)]
    job = parse(list(words)).job(prefix)
    try:
        os.execvp(job[0], job)
    except OSError as error:
        raise LauncherError(f"cannot start {job[0]}: {error.strerror}") from error


def _check(hints: str) -> None:
    """The library leaves a file to MPI whose hints it cannot read."""
    import ctypes

    from brigade.paths import native

    text = ctypes.create_string_buffer(1024)
    try:
        library = ctypes.CDLL(str(native("libbrigade_mpiio.so")))
    except OSError as error:
        raise LauncherError(f"cannot load {error}") from error
    if library.brigade_mpiio_check(os.fsencode(hints), text, ctypes.c_size_t(len(text))):
        raise UsageError(text.value.decode(errors="replace"))
