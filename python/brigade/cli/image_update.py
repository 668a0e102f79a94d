"""`brigade image update`: add to an image what its last runs missed."""

from __future__ import annotations

import json

import click

from brigade.image.find import find_image
from brigade.job.progress import redraws

EPILOG = """\b
Examples:
  brigade image update app.brg
  brigade image update hello                    the image in the cache that starts so
  brigade image update --json app.brg | jq .grown.id
"""


@click.command("update", epilog=EPILOG, short_help="Add to an image what its last runs missed.")
@click.option("--json", "as_json", is_flag=True, help="Say what was done as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no report.")
@click.argument("image", type=click.Path())
def command(image: str, as_json: bool, quiet: bool) -> None:
    """Add to IMAGE what its last runs looked up and did not find in it.

    `brigade run` notes that beside the image (IMAGE.missed), and does the same as this command
    before the next run, for images that it keeps in the cache. Use it for an image of your own
    that you give to `brigade run --image`. No trial is made: the records of the first one lie
    beside the image (IMAGE.records). The image is replaced when the new one is complete.
    """
    from brigade.cli.image_create import Bar
    from brigade.image.grow import grow
    from brigade.image.missed import pending
    from brigade.image.reader import Image

    path = str(find_image(image))
    with Image(path):  # what is none has missed nothing either
        pass
    missed = pending(path)
    bar = Bar(not quiet and not as_json and redraws())
    try:
        grown = grow(path, bar.written)
    finally:
        bar.close()
    if as_json:
        built = grown.built.as_json() if grown else None
        click.echo(
            json.dumps({"grown": built, "missed": [list(miss) for miss in missed]}, indent=1)
        )
    elif not quiet and grown is None:
        click.echo(f"{path}: its last runs have missed nothing that could be added")
    elif not quiet and grown is not None:
        click.echo(
            f"{path}: {grown.paths:,} missed paths looked at, now {grown.built.entries:,} entries "
            f"and {grown.built.files:,} files ({grown.built.content_bytes / 1e6:,.1f} MB)"
        )
