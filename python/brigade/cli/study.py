"""`brigade study`: the same start-up in several variants, measured in turn, with a conclusion."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from brigade.cli.completing import DIR, FILE, WORDS
from brigade.cli.number import Number
from brigade.errors import BrigadeError, UsageError

if TYPE_CHECKING:
    from brigade.study.run import Progress
    from brigade.study.samples import Study

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@click.group(
    epilog="""\b
Examples:
  brigade study storage --at /scratch/me --at /home/me -- srun -n 4 python app.py
  brigade study paths --widths 1,2,4 -- srun -n 4 ./solver --steps 0"""
)
def command() -> None:
    """The same start-up in several variants, side by side, at rising widths.

    Variants are started in turn, so that a machine that grows slower does not look like a slow
    variant. The conclusion says what follows from the samples, and what does not.
    """


def _common(function: Decorated) -> Decorated:
    """The options that all studies have."""
    options = [
        click.option("--widths", metavar="LIST", help="Ranks: 1,2,4.  [default: up to the job's]"),
        click.option("--repeats", type=click.IntRange(1), default=3, show_default=True),
        click.option(
            "--until",
            metavar="TEXT",
            help="Start-up is over when a line of output has TEXT; then the program is ended.  "
            "[default: when the program has ended]",
        ),
        click.option(
            "--limit",
            type=Number(1),
            default=600.0,
            show_default=True,
            help="Seconds that one start may take.",
        ),
        click.option(
            "--json", "json_file", type=FILE, help="Write the raw samples ('-': print them)."
        ),
        click.option("--figure", type=FILE, help="Draw seconds against ranks (PNG, SVG)."),
        click.argument("words", nargs=-1, required=True, type=WORDS, metavar="COMMAND"),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@command.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  brigade study storage --at /scratch/me --at /home/me -- srun -n 4 venv/bin/python app.py
  brigade study storage --at /scratch/me --here --with-libraries -- ./app --steps 0
  brigade study storage --at /scratch/me --copy ~/venv --copy ~/app -- srun -n 4 python run.py
  brigade study storage --at /tmp --until 'step 1' --json raw.json --figure it.png -- ./app""",
)
@click.option(
    "--at", "places", multiple=True, required=True, type=DIR, help="On a file system to try."
)
@click.option(
    "--copy",
    "copied",
    multiple=True,
    type=DIR,
    help="What the start-up uses, if it is not the prefix that the program is installed in.",
)
@click.option("--here", is_flag=True, help="Measure it where it is, too.")
@click.option(
    "--with-libraries", is_flag=True, help="Each place also with a copy of the system's libraries."
)
@_common
def storage(
    words: tuple[str, ...],
    places: tuple[str, ...],
    copied: tuple[str, ...],
    here: bool,
    with_libraries: bool,
    **options: Any,
) -> None:
    """The same start-up from several file systems.

    What the start-up uses (the virtual environment or prefix of its program) is copied to a folder
    of its own below each DIR, started from there, and removed again. A traced start looks whether
    it really runs from the copy.
    """
    from brigade.study import storage as study

    _make(
        words,
        options,
        lambda common, progress: study.study(
            study.Wanted(
                places=list(places),
                copied=list(copied),
                here=here,
                with_libraries=with_libraries,
                **common,
            ),
            progress,
        ),
    )


@command.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  brigade study paths -- srun -n 4 venv/bin/python app.py
  brigade study paths --widths 1,2,4 --repeats 5 --figure paths.png -- ./solver --steps 0
  brigade study paths --variants plain,links,brigade --until ready -- mpirun -n 8 ./app""",
)
@click.option(
    "--at", type=DIR, help="Where links and copies go.  [default: beside the program's prefix]"
)
@click.option(
    "--variants",
    default="plain,links,short,shrunk,brigade",
    show_default=True,
    metavar="LIST",
    help="Which to compare; plain is always among them.",
)
@_common
def paths(words: tuple[str, ...], at: str | None, variants: str, **options: Any) -> None:
    """The same start-up with other search paths.

    As it is; with one directory of links to all libraries, searched first; with LD_LIBRARY_PATH and
    PYTHONPATH without entries in which nothing is found; with a copy whose RPATHs are shrunk
    (patchelf); and under Brigade. Nothing of yours is changed.
    """
    from brigade.study import paths as study

    chosen = tuple(word for word in variants.split(",") if word)
    unknown = [name for name in chosen if name not in study.LABELS]
    if unknown:
        raise UsageError(f"--variants {unknown[0]}: variants are {', '.join(study.LABELS)}")
    _make(
        words,
        options,
        lambda common, progress: study.study(
            study.Wanted(at=at, variants=chosen, **common), progress
        ),
    )


def _make(
    words: tuple[str, ...],
    options: dict[str, Any],
    study: Callable[[dict[str, Any], Progress], Study],
) -> None:
    """Make a study, and say what it found."""
    from brigade import interrupt
    from brigade.job.progress import Progress as Line
    from brigade.job.signals import die_of
    from brigade.model import figure as figures
    from brigade.study import figure, report
    from brigade.study.conclude import conclude
    from brigade.study.run import Timing

    if options["figure"]:
        figures.check(options["figure"])
    if options["json_file"] not in (None, "-"):
        _check_json(Path(options["json_file"]))
    begun: list[Study] = []
    common = {
        "words": list(words),
        "widths": options["widths"],
        "repeats": options["repeats"],
        "timing": Timing(options["until"], options["limit"]),
        "begun": begun.append,
    }
    line = Line(quiet=False)
    with interrupt.listening():
        try:
            found = study(common, line.show)
        except (interrupt.Interrupted, BrigadeError) as stop:
            line.close()
            try:
                _keep_part(begun, options["json_file"])
            except BrigadeError as error:
                line.warn(error.message)
            if isinstance(stop, interrupt.Interrupted):
                line.warn(f"stopped by {stop.name}")
                die_of(stop.signum)
                raise SystemExit(128 + stop.signum) from None
            raise
        finally:
            line.close()
    said = conclude(found)
    if options["json_file"] != "-":
        report.print_study(found, said)
    _save(found, options["json_file"], said)
    if options["figure"]:
        figure.draw(found, Path(options["figure"]), report.title(found))


def _check_json(path: Path) -> None:
    """Raise UsageError if samples cannot be written there; nothing is left behind."""
    why = ""
    if path.exists() and not path.is_file() and not path.is_dir():  # a pipe: nobody shall read now
        why = "" if os.access(path, os.W_OK) else "Permission denied"
    else:
        named = Path(os.path.realpath(path))  # what a link leads to, which need not be there yet
        try:
            there = named.exists()
            named.open("a").close()
            if not there:
                named.unlink()
        except OSError as error:
            why = error.strerror or str(error)
    if why:
        raise UsageError(f"--json {path}: {why}", hint="name another file")


def _save(found: Study, json_file: str | None, said: list[str]) -> None:
    """The raw samples, where --json wants them."""
    from brigade.study import samples

    if json_file == "-":
        click.echo(samples.text_of(found, said), nl=False)
    elif json_file:
        samples.save(found, Path(json_file), said)


def _keep_part(begun: list[Study], json_file: str | None) -> None:
    """What was measured of a study that ends before its time; nothing is concluded from it."""
    if json_file and begun and begun[0].samples:
        made = len(begun[0].samples)
        starts = f"{made} start{'s' if made > 1 else ''}"
        _save(begun[0], json_file, [f"The study ended after {starts}: nothing is concluded."])
