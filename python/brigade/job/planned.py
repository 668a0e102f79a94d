"""Trials outside of a job; the plan for ranks that are forked, of a trial or of an image."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from brigade.errors import BrigadeError, ImageError
from brigade.fork import program
from brigade.fork.plan import Plan, from_json
from brigade.fork.program import ProgramPlan
from brigade.fork.trial_plan import of_trial
from brigade.job.course import Settings
from brigade.job.progress import Progress
from brigade.job.trialrun import run_trial
from brigade.launch import parse
from brigade.paths import cache_dir
from brigade.trial.record import load


@contextmanager
def tried(
    words: list[str],
    *,
    fork: bool = True,
    ranks: int | None = None,
    until_quiet: float | None = None,
    limit: float | None = None,
    quiet: bool = False,
    **_: Any,
) -> Iterator[str]:
    """A folder with the records of a trial of a command line; it is removed afterwards. Raises
    BrigadeError."""
    launch = parse(words, ranks)
    progress = Progress(quiet)
    os.makedirs(cache_dir(), exist_ok=True)
    folder = tempfile.mkdtemp(prefix="trial-", dir=cache_dir())  # where all nodes can write
    try:
        with launch.session():
            run_trial(
                launch, Settings.trial_ranks, folder, fork=fork,
                quiet_s=until_quiet or Settings.trial_quiet, limit_s=limit or Settings.trial_limit,
                progress=lambda seconds, size: progress.show("trial", seconds, None),
            )  # fmt: skip
        progress.close()
        yield folder
    finally:
        progress.close()
        shutil.rmtree(folder, ignore_errors=True)


def plan_of_trial(words: list[str], **options: Any) -> Plan | ProgramPlan:
    """Try the program of a command line. Raises BrigadeError."""
    with tried(words, **options) as folder:
        plan = of_trial(load(folder))
    if plan is None:
        raise BrigadeError(
            "no rank of the trial could be watched",
            hint="static programs, and those for another C library, are not forked",
        )
    return plan


def plan_of_image(path: str) -> Plan | ProgramPlan:
    """The plan that an image holds. Raises ImageError if it has none."""
    from brigade.image.reader import Image

    with Image(path) as image:
        if "fork" not in image.meta:
            raise ImageError(
                f"{path} has no plan: its trial was not made for --fork",
                hint="`brigade run --fork` makes one that has",
            )
        value = image.meta["fork"]
        is_python = value.get("kind", "python") == "python"
        return from_json(value) if is_python else program.from_json(value)
