"""`brigade file split`: parts of one plain file."""

from __future__ import annotations

import click

from brigade.cli.file_tool import ask
from brigade.cli.there import There


@click.command(
    "split",
    epilog="""\b
Examples:
  brigade file split -n 16 input.dat input.parts     each part on its own server""",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option(
    "-n",
    "--parts",
    type=click.IntRange(1, 100000),
    required=True,
    help="How many parts; fewer of a file of fewer stripes.",
)
@click.argument("file", type=There(dir_okay=False, plain=True))
@click.argument("target", type=click.Path(dir_okay=False))
def command(file: str, target: str, parts: int, quiet: bool) -> None:
    """Make a file of parts of a plain file, or of one of other parts: shares in order, of whole
    stripes (1 MiB), equal but for one stripe.

    What is read is compared with its checksums, where it has any.
    """
    outcome = ask("split", file, target, str(parts), quiet=quiet)
    click.echo(f"{outcome['file']}: {outcome['bytes']:,} bytes")
