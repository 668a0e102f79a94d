"""`brigade stage`: leave an image in nodes' memory for several jobs."""

from __future__ import annotations

import json
from typing import Any

import click

from brigade.cli.completing import WORDS
from brigade.cli.staging import staging_options
from brigade.job.ahead import stage_ahead
from brigade.job.course import Settings

EPILOG = """\b
Examples:
  brigade stage -- srun python app.py                in a job script, before its steps
  brigade stage --image app.brg -- srun -N 4         an image by its file; no program needed
  brigade stage --memory 2G -- mpirun --hostfile hosts python app.py
  brigade unstage                                    at the end of the script
"""


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@staging_options
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no result, only errors.")
@click.argument("command", nargs=-1, type=WORDS)
def command(
    command: tuple[str, ...], cover: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Bring the image of COMMAND (a launcher and a program) into its nodes' memory, and leave it.

    The image is found, checked or made as `brigade run` does it, but no job is started. Every later
    `brigade run` of the same program in the same allocation (without Slurm: from the same host)
    finds it on its nodes and reads and moves nothing. It stays until `brigade unstage`: some sites
    do not clear nodes' memory at the end of an allocation. If it cannot be staged, nothing
    is left on any node, and the exit code is 6.
    """
    if not command and not options["image"]:
        raise click.UsageError("give a launcher and a program, or --image FILE")
    settings = Settings(words=list(command), cover=list(cover), **options)
    done = stage_ahead(settings)
    if as_json:
        click.echo(json.dumps(done, indent=1))
    elif not options["quiet"]:
        click.echo(_line(done))


def _line(done: dict[str, Any]) -> str:
    nodes = len(done["nodes"])
    where = f"{nodes} node{'s' if nodes != 1 else ''} of {done['allocation']}"
    if done["already"] == nodes:
        return f"{done['image']} stands on {where} already"
    return (
        f"{done['image']} stands on {where}: {done['bytes_per_node'] / 2**20:.1f} MiB each, "
        f"{done['seconds']:.2f} s; `brigade unstage` takes it away"
    )
