"""`brigade file join`: one plain file of parts."""

from __future__ import annotations

import click

from brigade.cli.file_tool import ask
from brigade.cli.there import There


@click.command(
    "join",
    epilog="""\b
Examples:
  brigade file join ckpt.0042 ckpt.plain      another name
  brigade file join ckpt.0042 ckpt.0042       in its own place, whole at any moment""",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.argument("file", type=There(dir_okay=False, plain=True))
@click.argument("target", type=click.Path(dir_okay=False))
def command(file: str, target: str, quiet: bool) -> None:
    """Make one plain file of a file of parts: the same bytes, with checksums of their own.

    What is read is compared with its checksums.
    """
    outcome = ask("join", file, target, quiet=quiet)
    click.echo(f"{outcome['file']}: {outcome['bytes']:,} bytes")
