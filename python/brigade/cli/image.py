"""`brigade image`: create, look into and check images."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

import click
from click.shell_completion import CompletionItem

from brigade.cli import LazyGroup
from brigade.cli.completing import FILE
from brigade.errors import ImageError
from brigade.image.find import cached, find_image
from brigade.image.layout import KIND_NAMES
from brigade.printable import is_terminal

# commands with a module of their own, loaded when they are called: name -> one line of help
_LAZY = {
    "create": "Make an image, from a trial's records or of a whole folder.",
    "update": "Add to an image what its last runs missed.",
}
_JSON = click.option("--json", "as_json", is_flag=True, help="For machines.")


class _ImageFile(click.ParamType):  # type: ignore[type-arg]  # not generic in older click
    """A path, or the start of the name or id of an image in the cache."""

    name = "image"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(find_image(value))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        names = [path.name for path in cached() if path.name.startswith(incomplete)]
        return [*map(CompletionItem, names), CompletionItem(incomplete, type="file")]


_IMAGE = click.argument("image", type=_ImageFile())


@click.group(
    cls=LazyGroup,
    lazy=_LAZY,
    prefix="brigade.cli.image_",
    epilog="""\b
Examples:
  brigade image create --prefix /sw/env -o env.brg
  brigade image info env.brg
  brigade image verify env.brg""",
)
def command() -> None:
    """Create, look into and check images.

    IMAGE is a file, or the start of the name or id of an image in the cache, where `brigade run`
    keeps those that it makes.
    """


@command.command(
    epilog="""\b
Examples:
  brigade image info app.brg
  brigade image info hello                      the image in the cache that starts so
  brigade image info --json app.brg | jq .id"""
)
@_JSON
@_IMAGE
def info(image: str, as_json: bool) -> None:
    """Say what an image is made of: sizes, counts, roots, and which program it is for."""
    from brigade.cli.image_show import describe, print_facts
    from brigade.image.reader import Image

    with Image(image) as opened:
        facts = describe(opened)
    if as_json:
        click.echo(json.dumps(facts, indent=1))
    else:
        print_facts(facts)


@command.command(
    epilog="""\b
Examples:
  brigade image ls app.brg                      everything that exists
  brigade image ls app.brg /sw/venv/lib         one folder and what lies below it
  brigade image ls --kind dir app.brg           folders; L marks those whose names are all known
  brigade image ls --absent app.brg             what is known not to exist"""
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(list(KIND_NAMES.values())),
    help="Only this kind; may be repeated.",
)
@click.option("--absent", is_flag=True, help="Known absences, as --kind absent.")
@_JSON
@_IMAGE
@click.argument("paths", nargs=-1, type=FILE, metavar="[PATH]...")
def ls(
    image: str, kinds: tuple[str, ...], absent: bool, as_json: bool, paths: tuple[str, ...]
) -> None:
    """List what an image knows, one path a line, as `ls -l` does.

    The first letters say what the image holds besides: C the contents of a file, L all names of
    a folder. Known absences are left out unless they are asked for.
    """
    from brigade.cli.image_show import entry_facts, entry_line, select
    from brigade.image.reader import Image

    wanted = set(kinds) | ({"absent"} if absent else set())
    with Image(image) as opened:
        chosen = select(opened, wanted or set(KIND_NAMES.values()) - {"absent"}, paths)
        if as_json:
            click.echo(json.dumps([entry_facts(opened, entry) for entry in chosen], indent=1))
            return
        for entry in chosen:
            click.echo(entry_line(entry))


@command.command(
    epilog="""\b
Examples:
  brigade image verify app.brg
  brigade image verify app.brg && cp app.brg /shared/images/"""
)
@_JSON
@_IMAGE
def verify(image: str, as_json: bool) -> None:
    """Read a whole image and check every checksum; exit code 4 if it is damaged."""
    from brigade.image.reader import Image

    try:
        with Image(image) as opened, _progress("verifying", not as_json) as progress:
            opened.verify(progress)
            facts = {
                "ok": True,
                "id": opened.id,
                "blocks": opened.n_blocks,
                "bytes": opened.raw_bytes,
            }
    except ImageError as error:
        if as_json:
            click.echo(json.dumps({"ok": False, "reason": error.message}))
        raise
    if as_json:
        click.echo(json.dumps(facts))
    else:
        click.echo(f"{image} is whole: {facts['blocks']} blocks, {facts['bytes']} bytes of content")


@command.command(
    epilog="""\b
Examples:
  brigade image diff old.brg new.brg
  brigade image diff --json old.brg new.brg | jq '.changed[].path'
  brigade image diff -q old.brg new.brg || echo "they answer differently" """
)
@_JSON
@click.option("-q", "--quiet", is_flag=True, help="No output, only the exit code.")
@click.argument("old", type=_ImageFile())
@click.argument("new", type=_ImageFile())
def diff(old: str, new: str, as_json: bool, quiet: bool) -> None:
    """Say what two images answer differently; exit code 0 if nothing, 1 if something.

    When and where they were made is not compared, nor inode numbers and access times.
    """
    import dataclasses

    from brigade.cli.image_show import difference_lines
    from brigade.image.compare import compare
    from brigade.image.reader import Image

    with Image(old) as before, Image(new) as after:
        difference = compare(before, after)
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(difference), indent=1))
    elif not quiet:
        for line, colour in difference_lines(difference):
            click.secho(line, fg=colour)
    sys.exit(1 if difference else 0)


@contextmanager
def _progress(words: str, wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error if that is a terminal; yields progress(done_bytes, total_bytes)."""
    if not wanted or not is_terminal(sys.stderr):
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from brigade.console import make_console

    columns = (TextColumn(words), BarColumn(), DownloadColumn(True), TransferSpeedColumn())
    with Progress(*columns, console=make_console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(words, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
