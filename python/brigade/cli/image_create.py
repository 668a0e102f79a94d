"""`brigade image create`: make an image of a folder of software, of a trial's records, or of a
trial."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from brigade.cli.completing import DIR, FILE
from brigade.cli.observing import BeforeAndAfter, in_order
from brigade.cli.size import size
from brigade.errors import UsageError
from brigade.job.progress import redraws
from brigade.trial.mounts import is_under

_EXAMPLES = """\b
Examples:
  brigade image create --prefix /shared/env -o env.brg
  brigade image create --record trial/ --cover /shared/project
  brigade image create --fork -o app.brg -- srun -n 2 python app.py   with a plan for forked ranks
  brigade run --image env.brg -- srun -n 64 /shared/env/bin/python app.py"""


@click.command(
    "create",
    cls=BeforeAndAfter,
    help="Make an image.\n\nWith --prefix, of a whole folder of installed software, without a trial"
    " run: every file in it, whatever its name. With --record, of what a trial run recorded. With"
    " COMMAND, of what a trial of it looks up, as `brigade run` makes it; with --fork that also"
    " says what `brigade run --fork --image FILE` may import once per node: the job needs none.",
    epilog=_EXAMPLES,
    short_help="Make an image of a folder, or from a trial's records.",
)
@click.option("--prefix", type=DIR, help="Take in this whole folder.")
@click.option("--record", type=DIR, help="Take in what this trial used.")
@click.option("--fork", is_flag=True, help="With COMMAND: have a plan for `brigade run --fork`.")
@click.option("-n", "ranks", type=click.IntRange(1), help="Ranks of COMMAND without a launcher.")
@click.option("-o", "--output", type=FILE, help="Default: NAME.brg here.")
@click.option("--cover", multiple=True, type=DIR, help="Answer for this folder too.")
@click.option("--python", metavar="PROGRAM", help="Interpreter of --prefix.  [default: its own]")
@click.option("--level", default=3, show_default=True, type=click.IntRange(0, 19),
              help="zstd's; 0 stores the bytes as they are.")  # fmt: skip
@click.option(
    "--jobs", default=0, type=click.IntRange(0, 256), help="Threads.  [default: processors]"
)
@click.option("--max-file", metavar="SIZE", help="Leave larger files out: 500M, 2G.")
@click.option("--json", "as_json", is_flag=True, help="Say what was made as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no report.")
def command(
    prefix: str | None,
    record: str | None,
    fork: bool,
    ranks: int | None,
    output: str | None,
    cover: tuple[str, ...],
    python: str | None,
    level: int,
    jobs: int,
    max_file: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    words: list[str] = click.get_current_context().meta.get("job", [])
    if [prefix is not None, record is not None, bool(words)].count(True) != 1:
        raise UsageError(
            "one of --prefix, --record and -- COMMAND says what to take in",
            hint="brigade image create --prefix /shared/env -o env.brg",
        )
    if prefix is not None and cover:
        raise UsageError("--cover goes with --record", hint="--prefix covers what it takes in")
    if prefix is None and python is not None:
        raise UsageError("--python goes with --prefix", hint="the trial recorded its interpreters")
    if (fork or ranks) and not words:
        raise UsageError(
            f"{'--fork' if fork else '-n'} needs a program to try",
            hint="brigade image create --fork -o app.brg -- srun -n 2 python app.py",
        )
    if words and not output:
        raise UsageError("-o says where the image is to be", hint="-o app.brg -- COMMAND")
    source = prefix or record or ""
    target = output or os.path.basename(os.path.abspath(source)) + ".brg"
    if os.path.isdir(target):
        raise UsageError(f"{target} is a folder", hint="name the file of the image with -o")
    if prefix is not None and is_under(os.path.realpath(target), os.path.realpath(prefix)):
        raise UsageError(
            f"{target} would lie inside the folder it is made of", hint="choose another with -o"
        )
    from brigade.job.planned import tried

    options: dict[str, Any] = {"level": level, "threads": jobs}
    bar = Bar(not quiet and not as_json and redraws())
    try:
        if words:
            with in_order(), tried(words, fork=fork, ranks=ranks, quiet=quiet or as_json) as folder:
                built = _make(None, folder, target, cover, None, size(max_file), bar, options)
        else:
            built = _make(prefix, record, target, cover, python, size(max_file), bar, options)
    finally:
        bar.close()
    if as_json:
        click.echo(json.dumps(built.as_json(), indent=2))
    elif not quiet:
        _report(built)


def _make(
    prefix: str | None,
    record: str | None,
    target: str,
    cover: tuple[str, ...],
    python: str | None,
    max_file: int | None,
    bar: Bar,
    options: dict[str, Any],
) -> Any:
    from brigade.image import build

    if prefix is None:
        assert record is not None
        from brigade.image.grow import keep_records

        built = build.build(
            record, target, cover=cover, max_file=max_file, progress=bar.written, **options
        )
        keep_records(record, target, cover, written=built.unseen)
        return built
    from brigade.image.prefix import assemble_prefix

    return build.make(
        lambda: assemble_prefix(
            prefix, python=python, jobs=options["threads"] or 4, max_file=max_file,
            progress=bar.looked,
        ),
        target, trial=None, progress=bar.written, **options,
    )  # fmt: skip


def _report(built: Any) -> None:
    from brigade.image.build import Built

    assert isinstance(built, Built)
    click.echo(
        f"{built.path}: {built.bytes / 1e6:,.1f} MB for {built.files:,} files "
        f"({built.content_bytes / 1e6:,.1f} MB), in {built.seconds:.1f} s"
    )
    if built.summary is not None:
        click.echo(built.summary.text())
    for left in built.left_out[:5]:
        click.echo(f"left on the file system: {left.path}: {left.why}")
    if len(built.left_out) > 5:
        click.echo(f"and {len(built.left_out) - 5} more; --json lists all")


class Bar:
    """A line of progress on a terminal."""

    def __init__(self, live: bool) -> None:
        self._live = live
        self._shown = ""

    def looked(self, paths: int) -> None:
        self._show(f"looking: {paths:,} paths")

    def written(self, done: int, total: int) -> None:
        share = done / total if total else 1.0
        filled = int(24 * share)
        self._show(f"writing the image [{'#' * filled}{'.' * (24 - filled)}] {100 * share:3.0f}%")

    def _show(self, text: str) -> None:
        if self._live and text != self._shown:
            sys.stderr.write(f"\r\033[K{text}")
            sys.stderr.flush()
            self._shown = text

    def close(self) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._shown = ""
