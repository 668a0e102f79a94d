"""`brigade run`: start a job from one image in every node's memory."""

from __future__ import annotations

import shlex
import sys

import click

from brigade.cli.completing import FILE, WORDS
from brigade.cli.setting import Setting
from brigade.cli.staging import staging_options
from brigade.job.course import Settings
from brigade.job.flow import run_job

EPILOG = """\b
Examples:
  brigade run -- srun -N 4 -n 32 python app.py
  brigade run -- mpirun -n 64 --hostfile hosts ./solver input.nml
  brigade run -- srun --multi-prog coupled.conf                  each of its programs is served
  brigade run -n 8 -- python app.py                  one machine, no MPI needed
  brigade run --fork -- srun -n 64 python app.py     import once per node, fork the ranks
  brigade run --fork -- srun -n 64 ./select_gpu python app.py     wrappers stay in front
  brigade run --view namespace -- srun -n 64 ./static-solver
  brigade run --json report.json --keep -- srun …    keep the image staged for the next job
  brigade run --trial-command 'srun -n 2 python app.py --steps 0' -- srun -n 512 python app.py
"""


@click.command(epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@staging_options
@click.option(
    "--view",
    default="auto",
    show_default=True,
    metavar="LIST",
    help="How ranks reach the image: auto, none, or a comma list of namespace, interpose, python.",
)
@click.option(
    "--fork/--no-fork",
    default=False,
    show_default=True,
    help="Fork each node's ranks from one process that has imported, or loaded, what they share.",
)
@click.option(
    "--fork-warm",
    multiple=True,
    metavar="MODULE",
    help="Import MODULE (or all in that package) once per node, whatever it did in the trial.",
)
@click.option(
    "--fork-leave",
    multiple=True,
    metavar="MODULE",
    help="Leave MODULE (or all in that package) to each rank.",
)
@click.option("--keep", is_flag=True, help="Leave the image in the nodes' memory for later jobs.")
@click.option(
    "--strict",
    cls=Setting,
    is_flag=True,
    envvar="BRIGADE_STRICT",
    help="Abort instead of falling back.",
)
@click.option(
    "--json", "json_file", type=FILE, help="Write the report as JSON ('-': standard error)."
)
@click.option("-q", "--quiet", is_flag=True, help="No progress and no report, only errors.")
@click.option("--outside", hidden=True, default="")  # brigade profile --after: the tracer's words
@click.argument("command", nargs=-1, required=True, type=WORDS)
def command(
    command: tuple[str, ...],
    cover: tuple[str, ...],
    fork_warm: tuple[str, ...],
    fork_leave: tuple[str, ...],
    outside: str,
    **options: object,
) -> None:
    """Start COMMAND (a launcher and a program) from one image in every node's memory.

    The first time, the program is run small and recorded, and an image is written; later the image
    is found and checked. It is staged into each node's memory, once per node, and every rank's
    look-ups are answered from there. Whatever the image does not answer goes to the real file
    system. The exit code is the job's own; a short report goes to standard error. A start that
    fails ends with what was searched, what is closest, and what would mend it.
    """
    settings = Settings(
        words=list(command),
        cover=list(cover),
        fork_warm=list(fork_warm),
        fork_leave=list(fork_leave),
        outside=shlex.split(outside),
        **options,  # type: ignore[arg-type]
    )
    sys.exit(run_job(settings))
