"""`brigade file clean`: what dead jobs have left."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from brigade.cli.file_tool import ask
from brigade.cli.there import There
from brigade.errors import BrigadeIOError


@click.command(
    "clean",
    epilog="""\b
Examples:
  brigade file clean /scratch/me/run7          what certainly is of dead jobs
  brigade file clean --dry-run .               only say what there is
  brigade file clean --force .                 also what may be of a job on another host

What certainly is of a living job is never removed. What cannot be removed stays, is said with its
reason ("failure" with --json), and ends the command with 10.""",
)
@click.option("--force", is_flag=True, help="Also what cannot be known to be of a dead job.")
@click.option("--dry-run", is_flag=True, help="Remove nothing.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.argument("folder", default=".", type=There(file_okay=False))
def command(folder: str, force: bool, dry_run: bool, as_json: bool) -> None:
    """Remove what jobs that died while they wrote have left in FOLDER."""
    found = ask("leftovers", os.path.abspath(folder))["leftovers"]
    for left in found:
        wanted = left["state"] == "dead" or (force and left["state"] != "in use")
        left["removed"] = wanted and not dry_run and _remove(left)
        if not as_json:
            done = "removed" if left["removed"] else "would be removed" if wanted else "stays"
            if "failure" in left:
                done = f"stays: {left['failure']}"
            click.echo(f"{left['base']} ({left['bytes']:,} bytes): {left['state']}; {done}")
    if as_json:
        click.echo(json.dumps(found, indent=1))
    if any("failure" in left for left in found):
        sys.exit(BrigadeIOError.exit_code)


def _remove(left: dict[str, Any]) -> bool:
    try:
        ask("remove", left["base"])
    except BrigadeIOError as error:
        left["failure"] = error.strerror
        return False
    return True
