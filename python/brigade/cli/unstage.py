"""`brigade unstage`: take away what `brigade stage` has left."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

EPILOG = """\b
Examples:
  brigade unstage                     in the job script that staged
  brigade unstage --all               in all your allocations
  trap 'brigade unstage' EXIT         so that a script takes it away however it ends
"""


@click.command(epilog=EPILOG)
@click.option("--all", "everywhere", is_flag=True, help="What stands in any allocation of yours.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("-q", "--quiet", is_flag=True, help="Only errors.")
def command(everywhere: bool, as_json: bool, quiet: bool) -> None:
    """Take off the nodes of this allocation (without Slurm: of this host's jobs) what
    `brigade stage` has left there.

    A job that uses the image keeps it until it ends. Nothing to take away is no error. What cannot
    be taken away keeps nothing else standing; the exit code is that of the first of them.
    """
    from brigade.job.ahead import unstage

    done = unstage(everywhere)
    if as_json:
        click.echo(json.dumps({"unstaged": done}, indent=1))
    else:
        for one in done:
            if one["failed"]:
                click.echo(f"brigade: {_line(one)}", err=True)
            elif not quiet:
                click.echo(_line(one))
        if not done and not quiet:
            click.echo("nothing stands here")
    sys.exit(next((one["failed"] for one in done if one["failed"]), 0))


def _line(one: dict[str, Any]) -> str:
    if one["why"]:
        return f"{one['image']} ({one['allocation']}): {one['why']}"
    nodes = one["nodes"]
    kept = [node["host"] for node in nodes if node["found"] and not node["removed"]]
    lost = [node["host"] for node in nodes if not node["found"] and not node["removed"]]
    n_taken = len(nodes) - len(lost)
    line = f"{one['image']}: taken off {n_taken} node{'s' if n_taken != 1 else ''}"
    if kept:
        line += f"; a job still uses it on {_hosts(kept)}"
    if lost:
        line += f"; it was not there any more on {_hosts(lost)}"
    return line


def _hosts(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
