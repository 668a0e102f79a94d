"""`brigade clean`: remove what dead jobs have left in nodes' memory."""

from __future__ import annotations

import json
from typing import Any

import click

from brigade.cli.completing import WORDS

EPILOG = """\b
Examples:
  brigade clean                                 this node
  brigade clean --dry-run                       say what would go
  brigade clean -- srun -N 4                    all nodes of an allocation
  brigade clean -- mpirun --hostfile hosts
  brigade clean --all                           also images that --keep has left
"""


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.option(
    "--all", "everything", is_flag=True, help="Also images that --keep has left for later jobs."
)
@click.option(
    "--idle",
    type=click.IntRange(0, 2**31),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="Leave younger jobs alone: their ranks may not have started.",
)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.argument("launcher", nargs=-1, type=WORDS)
def command(
    launcher: tuple[str, ...], dry_run: bool, everything: bool, idle: int, as_json: bool
) -> None:
    """Remove what dead jobs have left in the memory of this node, or of all nodes of LAUNCHER.

    Jobs end by taking their images away; one that was killed could not. A job counts as dead when
    no process on the node uses it, its `brigade run` is not alive on this host, and it is older
    than --idle (if it was started from this host: than 20 s). Only your own folder is looked into,
    and an image that a live job uses stays. The next job on a node does the same by itself.
    """
    from brigade.job.clean import clean

    found = clean(list(launcher), idle_s=idle, everything=everything, dry_run=dry_run)
    if as_json:
        click.echo(json.dumps({"dry_run": dry_run, "found": found}, indent=1))
        return
    for one in found:
        click.echo(_line(one, dry_run))
    freed = sum(one["bytes"] for one in found if not one["why"])
    if not found:
        click.echo("nothing is left")
    elif freed:
        click.echo(f"{freed / 2**20:.1f} MiB {'would be' if dry_run else 'were'} given back")


def _line(one: dict[str, Any], dry_run: bool) -> str:
    name = {
        "unfinished": f"unfinished image {one['id'][:12]}",
        "job": f"job {one['job']} of image {one['id'][:12]}",
        "image": f"image {one['id'][:12]}",
    }[one["what"]]
    if one["why"]:
        return f"{one['host']}: {name} stays: {one['why']}"
    return f"{one['host']}: {name} {'would be removed' if dry_run else 'removed'}"
