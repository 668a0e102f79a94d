"""`brigade run`: start a job from one image in every node's memory."""

from __future__ import annotations

import sys

import click

from brigade.cli.size import Size
from brigade.job.flow import Settings, run_job

EPILOG = """\b
Examples:
  brigade run -- srun -N 4 -n 32 python app.py
  brigade run -- mpirun -n 64 --hostfile hosts ./solver input.nml
  brigade run -n 8 -- python app.py                  one machine, no MPI needed
  brigade run --json report.json --keep -- srun …    keep the image staged for the next job
  brigade run --trial-command 'srun -n 2 python app.py --steps 0' -- srun -n 512 python app.py
"""


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.option("-n", "ranks", type=click.IntRange(1), help="Processes, if there is no launcher.")
@click.option("--image", metavar="FILE", help="Use this image; make no trial.")
@click.option("--renew", is_flag=True, help="Make a new trial and image even if there is one.")
@click.option(
    "--grow/--no-grow",
    default=True,
    show_default=True,
    help="Add to the image what the last run of it missed.",
)
@click.option(
    "--check",
    type=click.Choice(["fast", "full", "none"]),
    default="fast",
    show_default=True,
    envvar="BRIGADE_CHECK",
    help="How the image is compared with its sources before the job.",
)
@click.option(
    "--cover",
    multiple=True,
    metavar="DIR",
    help="Also answer for DIR, though it is not on a shared file system.",
)
@click.option(
    "--view",
    default="auto",
    show_default=True,
    metavar="LIST",
    help="How ranks reach the image: auto, none, or a comma list of interpose, python.",
)
@click.option(
    "--trial-ranks",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Width of the trial.",
)
@click.option(
    "--trial-command", metavar="CMD", help="A launcher command to record instead of the job's own."
)
@click.option(
    "--trial-quiet",
    type=float,
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="The trial's start-up is over after this long without a new look-up.",
)
@click.option(
    "--trial-limit",
    type=float,
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest trial.",
)
@click.option(
    "--readers", type=click.IntRange(1), help="Processes that read the image.  [default: 4 at most]"
)
@click.option(
    "--memory",
    type=Size(),
    metavar="SIZE",
    envvar="BRIGADE_MEMORY",
    help="Most memory of a node that the image may take, as 500M or 2G; what is least useful then "
    "stays on the file system.",
)
@click.option("--keep", is_flag=True, help="Leave the image in the nodes' memory for later jobs.")
@click.option(
    "--strict", is_flag=True, envvar="BRIGADE_STRICT", help="Abort instead of falling back."
)
@click.option(
    "--json", "json_file", metavar="FILE", help="Write the report as JSON ('-': standard error)."
)
@click.option("-q", "--quiet", is_flag=True, help="No progress and no report, only errors.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(command: tuple[str, ...], cover: tuple[str, ...], **options: object) -> None:
    """Start COMMAND (a launcher and a program) from one image in every node's memory.

    The first time, the program is run small and recorded, and an image is written; later the image
    is found and checked. It is staged into each node's memory, once per node, and every rank's
    look-ups are answered from there. Whatever the image does not answer goes to the real file
    system. The exit code is the job's own; a short report goes to standard error.
    """
    settings = Settings(words=list(command), cover=list(cover), **options)  # type: ignore[arg-type]
    sys.exit(run_job(settings))
