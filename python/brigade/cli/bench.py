"""`brigade bench`: benchmarks of loading, with worlds of generated libraries, and of writing."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any, Callable, TypeVar

import click

from brigade.bench import layout
from brigade.bench.plan import PRESETS, Cload, Pynamic, Settings
from brigade.cli import (
    Group,
    bench_all,
    bench_cache,
    bench_checkpoint,
    bench_interfere,
    bench_ior,
    bench_overlap,
)
from brigade.cli.completing import DIR, FILE, WORDS
from brigade.cli.counting import counted
from brigade.cli.stoppable import stoppable
from brigade.errors import UsageError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@click.group(
    cls=Group,
    epilog="""\b
Examples:
  brigade bench pynamic -- srun -N 4 -n 16
  brigade bench pynamic --preset llnl-495 -- brigade run -- srun -N 4 -n 16
  brigade bench cload --preset cload-710 --layout long -- mpirun -n 64
  brigade bench checkpoint -n 4,16 --dir /scratch/me -- srun -n {n}
  brigade bench align -n 8 --block 64M --dir /scratch/me
  brigade bench overlap -n 64 --size 256M --dir /scratch/me -- srun -n {n}
  brigade bench interfere -n 16,256 --size 256M --dir /scratch/me -- srun -n {n}
  brigade bench all --quick
  brigade bench ior -a MPIIO,LAMINAR -c -b 1m -t 1m -s 64 -C -w -r -- srun -n {n}
  brigade bench cache --dir /scratch/me --figure cache.png""",
)
def command() -> None:
    """Benchmarks: how long do loading many libraries, and writing shared files, take?

    pynamic and cload generate and compile a world of libraries once (a C compiler is needed) and
    start it under your launcher. Every rank says how long each phase took, and what it has called.

    checkpoint and align write and read the same bytes through Brigade and through its peers, in
    turn, and compare them (the MPI's compiler is needed). overlap takes the time of a program's
    barriers while its checkpoint is written, interfere percentiles of barriers and allreduces
    before, during and after. ior has IOR's options and table. cache shows what the page cache does
    to writes and reads of one program. all runs every one of them, and writes one page.
    """


command.add_command(bench_checkpoint.checkpoint)
command.add_command(bench_checkpoint.align)
command.add_command(bench_overlap.overlap)
command.add_command(bench_interfere.interfere)
command.add_command(bench_all.all_)
command.add_command(bench_ior.ior)
command.add_command(bench_cache.cache)


def _layout_help(layouts: dict[str, str]) -> str:
    return "; ".join(f"{name}: {meaning}" for name, meaning in layouts.items()) + "."


def _number(name: str, kind: type, help: str, least: int = 1) -> Callable[[Decorated], Decorated]:
    """An option for a setting of the world, without a default of its own: the preset has it."""
    shown = next(f.default for f in dataclasses.fields(kind) if f.name == name)
    return click.option(
        f"--{name.replace('_', '-')}",
        type=click.IntRange(least),
        help=f"{help}  [default: {shown}]",
    )


def _common(kind: type) -> Callable[[Decorated], Decorated]:
    """The options that all benchmarks have."""
    presets = [name for name, settings in PRESETS.items() if isinstance(settings, kind)]
    options = [
        click.option("--preset", type=click.Choice(presets), help="Sizes of a published run."),
        _number("functions", kind, "Functions a library."),
        _number("depth", kind, "How deep calls go."),
        _number("function_bytes", kind, "Mean of bytes behind each function.", 0),
        _number("seed", kind, "Another seed is another world.", 0),
        click.option(
            "--dir",
            "base",
            type=DIR,
            help="Where worlds are kept; the file system that is to be measured.  "
            "[default: worlds in the cache folder]",
        ),
        click.option("--jobs", "-j", type=click.IntRange(1), help="Compilers at once."),
        click.option("--generate", is_flag=True, help="Only generate; print the world's folder."),
        click.option("-n", "ranks", type=click.IntRange(1), help="Ranks, if there is no launcher."),
        click.option("--json", "as_json", is_flag=True, help="For machines."),
        click.argument("launcher", nargs=-1, type=WORDS),
    ]

    def decorate(function: Decorated) -> Decorated:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@command.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  brigade bench pynamic                                    a small world, one rank, here
  brigade bench pynamic --dir /scratch/me -- srun -N 4 -n 16
  brigade bench pynamic --dir /scratch/me -- brigade run -- srun -N 4 -n 16
  brigade bench pynamic --preset llnl-495 --generate       1.4 GB; takes minutes, once
  brigade bench pynamic --modules 64 --layout path --json -- srun -n 16""",
)
@_number("modules", Pynamic, "Python extension modules.")
@_number("utilities", Pynamic, "Utility libraries that they are linked with.", 0)
@_number("cross", Pynamic, "Calls of a library into others.", 0)
@click.option(
    "--layout",
    type=click.Choice(list(layout.PYNAMIC)),
    help=f"{_layout_help(layout.PYNAMIC)}  [default: flat]",
)
@click.option("--python", type=FILE, help="Python of the ranks.  [default: this one]")
@_common(Pynamic)
def pynamic(launcher: tuple[str, ...], preset: str | None, **options: Any) -> None:
    """Python imports generated extension modules, and calls all they and their libraries have.

    LAUNCHER is the start of a command that would start a program: the benchmark's is put after it.
    Phases: startup (launch to main), import, visit.
    """
    _bench(Pynamic(), launcher, preset, **options)


@command.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  brigade bench cload -- srun -N 4 -n 16
  brigade bench cload --preset cload-710 -- brigade run -- srun -N 4 -n 16
  brigade bench cload --preset cload-710 --dlopen -n 4
  brigade bench cload --layout long --directories 100 --search env -- mpirun -n 8""",
)
@_number("libraries", Cload, "Libraries.")
@click.option(
    "--layout",
    type=click.Choice(list(layout.CLOAD)),
    help=f"{_layout_help(layout.CLOAD)}  [default: one; of cload-710: each]",
)
@_number("directories", Cload, "Empty folders of layout long.", 0)
@click.option(
    "--search",
    type=click.Choice(["rpath", "env"]),
    help="Libraries are found by RUNPATH, or by LD_LIBRARY_PATH.  [default: rpath]",
)
@click.option("--dlopen", is_flag=True, default=None, help="Open libraries; none is linked.")
@_common(Cload)
def cload(launcher: tuple[str, ...], preset: str | None, **options: Any) -> None:
    """A C program loads generated libraries when it starts, or opens them.

    LAUNCHER is the start of a command that would start a program: the benchmark's is put after it.
    Phases: startup (exec to main, linked libraries included), load (with --dlopen), visit.
    """
    _bench(Cload(), launcher, preset, **options)


def _bench(
    settings: Settings,
    launcher: tuple[str, ...],
    preset: str | None,
    *,
    base: str | None,
    jobs: int | None,
    generate: bool,
    ranks: int | None,
    as_json: bool,
    python: str | None = None,
    **chosen: Any,
) -> None:
    """Generate the world that is asked for, and run it."""
    from brigade import interrupt
    from brigade.bench import build, run
    from brigade.bench.plan import plan
    from brigade.paths import cache_dir

    if launcher and ranks:
        raise UsageError(f"-n goes to the launcher: -- {launcher[0]} -n {ranks}")
    said = {name: value for name, value in chosen.items() if value is not None}
    world = plan(dataclasses.replace(PRESETS[preset] if preset else settings, **said))
    with counted("compiling") as progress:
        folder = build.generate(
            world, Path(base).absolute() if base else cache_dir() / "worlds", jobs, progress
        )
    if generate:
        click.echo(json.dumps({"world": str(folder), **build.read(folder)}) if as_json else folder)
        return
    with stoppable(), interrupt.promptly():
        report = run.run(folder, list(launcher), ranks, python or sys.executable)
    if as_json:
        click.echo(json.dumps(report, indent=1))
        return
    from brigade.bench.table import print_table

    print_table(report)
