"""The options that `brigade profile`, `brigade explain` and `brigade budget` share: how the job is
run and seen; and a command that takes names before `--` and a job after it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from brigade import shut
from brigade.cli.completing import DIR
from brigade.cli.number import Number
from brigade.errors import UsageError

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_OPTIONS = [
    click.option(
        "-n", "ranks", type=click.IntRange(1), help="Ranks, for a program without a launcher."
    ),
    click.option(
        "--cover",
        multiple=True,
        type=DIR,
        help="Count a folder as shared, to try on a machine that shares nothing (repeatable).  "
        "[default: shared file systems that are looked at; without one, the program's folder]",
    ),
    click.option(
        "--until-quiet",
        type=Number(0.1),
        metavar="SECONDS",
        help="End the program when it has looked nothing up for so long.  [default: its own end]",
    ),
    click.option("--limit", type=Number(1), metavar="SECONDS", help="End the program after that."),
    click.option("-q", "--quiet", is_flag=True, help="No progress and no report, only errors."),
]


def observing_options(command: Decorated) -> Decorated:
    """Gives a command all of them, named as the fields of `brigade.job.observed.Settings`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def covered(folders: Iterable[str]) -> list[str]:
    """Those of --cover, for a job that is to be run here. Raises UsageError if one is none: nothing
    would be counted in it, and nobody would hear of that."""
    found = list(folders)
    for folder in found:
        if not os.path.isdir(folder):
            raise UsageError(f"--cover {folder}: there is no such folder", hint=shut.advice(folder))
    return found


@contextmanager
def in_order() -> Iterator[None]:
    """A signal that stops us ends everything that was begun, and then us, with one word."""
    from brigade import interrupt
    from brigade.job.signals import die_of

    with interrupt.listening():
        try:
            yield
        except interrupt.Interrupted as stop:
            print(f"brigade: stopped by {stop.name}", file=sys.stderr)
            die_of(stop.signum)


class BeforeAndAfter(click.Command):
    """Words before `--` are arguments, words after it the job: `context.meta["job"]`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args, ctx.meta["job"] = args[:at], args[at + 1 :]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND…]"]
