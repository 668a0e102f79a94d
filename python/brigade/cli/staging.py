"""The options that `brigade run` and `brigade stage` share: which image, and how it gets to the
nodes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from brigade.cli.completing import DIR, FILE
from brigade.cli.number import Number
from brigade.cli.setting import Setting
from brigade.cli.size import Size


def _absolute(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A file's path as a process elsewhere understands it."""
    return os.path.abspath(value) if value else None


def _absolute_or_none(
    context: click.Context, option: click.Parameter, value: str | None
) -> str | None:
    return value if value == "none" else _absolute(context, option, value)


_OPTIONS = [
    click.option("-n", "ranks", type=click.IntRange(1), help="Processes, if there is no launcher."),
    click.option("--image", type=FILE, callback=_absolute, help="Use this image; make no trial."),
    click.option("--renew", is_flag=True, help="Make a new trial and image even if there is one."),
    click.option(
        "--grow/--no-grow",
        default=True,
        show_default=True,
        help="Add to the image what the last run of it missed.",
    ),
    click.option(
        "--check",
        cls=Setting,
        type=click.Choice(["fast", "full", "none"]),
        default="fast",
        show_default=True,
        envvar="BRIGADE_CHECK",
        help="How the image is compared with its sources before the job.",
    ),
    click.option(
        "--cover",
        multiple=True,
        type=DIR,
        help="Also answer for DIR, though it is not on a shared file system.",
    ),
    click.option(
        "--trial-ranks",
        type=click.IntRange(1),
        default=2,
        show_default=True,
        help="Width of the trial.",
    ),
    click.option(
        "--trial-command",
        metavar="CMD",
        help="A launcher command to record instead of the job's own.",
    ),
    click.option(
        "--trial-quiet",
        type=Number(0.1),
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        help="The trial's start-up is over after this long without a new look-up.",
    ),
    click.option(
        "--trial-limit",
        type=Number(1),
        default=600.0,
        show_default=True,
        metavar="SECONDS",
        help="Longest trial.",
    ),
    click.option(
        "--readers",
        type=click.IntRange(1),
        help="Processes that read the image.  [default: 4 at most]",
    ),
    click.option(
        "--memory",
        cls=Setting,
        type=Size(),
        metavar="SIZE",
        envvar="BRIGADE_MEMORY",
        help="Most memory of a node that the image may take, as 500M or 2G; what is least useful "
        "then stays on the file system.",
    ),
    click.option(
        "--transport",
        cls=Setting,
        type=click.Choice(["auto", "mpi", "sbcast"]),
        default="auto",
        show_default=True,
        envvar="BRIGADE_TRANSPORT",
        help="What carries the image to the nodes. auto: MPI; without it, in a Slurm allocation, "
        "sbcast; none where all ranks start on this machine.",
    ),
    click.option(
        "--topology",
        cls=Setting,
        type=FILE,
        envvar="BRIGADE_TOPOLOGY",
        callback=_absolute_or_none,
        help="Which nodes share a switch, in the syntax of Slurm's topology.conf; neighbours there "
        "hand to each other. 'none': as started.  [default: what Slurm tells the nodes]",
    ),
]


def staging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command all of them, named as the fields of `brigade.job.course.Settings`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
