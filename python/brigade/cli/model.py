"""`brigade model`: models of what storage and jobs do, one subcommand each, loaded when called."""

from __future__ import annotations

import click

from brigade.cli import LazyGroup

# name -> one line for `brigade model --help`
MODELS = {
    "cache": "The page cache: what writes and reads take, and what stays cached.",
    "checkpoint": "When to checkpoint, how, through how many writers, at what rate.",
}


@click.group(
    cls=LazyGroup,
    lazy=MODELS,
    prefix="brigade.cli.model_",
    epilog="""\b
Examples:
  brigade model checkpoint --nodes 1024 --node-size 64G --rate 500G
  brigade model cache --memory 64G --write 2G --read 3G
  brigade model COMMAND --help                       more about a model, with examples""",
)
def command() -> None:
    """Models: plan before you run. Nothing is started, and no file system is asked."""
