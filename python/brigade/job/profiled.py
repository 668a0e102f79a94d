"""The course of `brigade profile`: run the job traced, as often as was asked, and make a profile.

The first run is the user's: its streams are its own, and its exit status becomes ours. Further runs
(warm, under Brigade, plain) see no input, and what they say is thrown away.

What must stay true: traces lie where all nodes can write them, and are removed unless they are to
be kept; an error of a further run costs its part of the profile, never the profile.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from brigade import interrupt
from brigade.errors import BrigadeError
from brigade.job.aside import LEAVE_S, aside, muted, redirected, stopped_with_us
from brigade.job.observed import (
    Observed,
    Settings,
    add_counts,
    note_unheard,
    observe,
    own_status,
    scratch,
)
from brigade.job.progress import Progress
from brigade.job.traced import Ran, Watch
from brigade.launch import Launch, parse
from brigade.paths import native
from brigade.profile import build
from brigade.profile.counters import Sampler
from brigade.profile.profile import Profile, save

PROFILE = "profile.json"  # in a folder of kept traces
_REPORT = "report.json"  # of a run under Brigade


def profiled(settings: Settings) -> Observed:
    """Run the job traced and make its profile, insights and further runs included. Raises
    Interrupted if a signal came."""
    from brigade.profile.insights import find

    launch = parse(settings.words, settings.ranks)
    progress = Progress(settings.quiet)
    try:
        with _folder(settings, launch) as folder, launch.session():
            observed = observe(settings, launch, folder)
            profile = observed.built.profile
            _keep(settings, profile, progress)
            if observed.status == 0:
                _further(settings, launch, observed, progress)
            profile.insights = find(profile)
            if profile.after:
                profile.after.insights = find(profile.after)
            _keep(settings, profile, progress)
            return observed
    finally:
        progress.close()


def _keep(settings: Settings, profile: Profile, progress: Progress) -> None:
    """Beside a trace that is to be kept lies its profile, if there is room."""
    if not settings.keep_trace:
        return
    path = os.path.join(settings.keep_trace, PROFILE)
    try:
        save(profile, path)
    except OSError as error:
        progress.warn(f"{path}: {error.strerror}")


@contextmanager
def _folder(settings: Settings, launch: Launch) -> Iterator[str]:
    """Where the trace of the run goes; removed unless it is to be kept."""
    if settings.keep_trace:
        try:
            os.makedirs(settings.keep_trace, exist_ok=True)
            names = os.listdir(settings.keep_trace)
        except OSError as error:
            raise BrigadeError(
                f"{settings.keep_trace}: {error.strerror}",
                hint="--keep-trace names a folder that can be made, or is there",
            ) from error
        if any(name.endswith(".trace") for name in names):
            raise BrigadeError(
                f"{settings.keep_trace} has a trace already",
                hint="name a new folder with --keep-trace, or remove that one",
            )
        yield os.path.abspath(settings.keep_trace)
        return
    with scratch(launch) as folder:
        yield folder


def _further(settings: Settings, launch: Launch, first: Observed, progress: Progress) -> None:
    """Further runs, each for its part of the profile."""
    profile = first.built.profile
    parts: dict[str, tuple[bool, Callable[[], None]]] = {
        "warm": (settings.warm, lambda: _warm(settings, launch, first, progress)),
        "after": (settings.after, lambda: _after(settings, launch, first, progress)),
        "overhead": (settings.overhead, lambda: _overhead(settings, launch, profile, progress)),
    }
    for name, (wanted, run) in parts.items():
        if not wanted:
            continue
        interrupt.check()
        try:
            run()
        except (BrigadeError, OSError) as error:
            why = error.message if isinstance(error, BrigadeError) else str(error)
            progress.warn(f"--{name} is left out: {why}")
            profile.lost.append(f"The run for --{name} failed: {why}.")


def _once_more(settings: Settings, launch: Launch) -> Observed:
    """The same run again; caches hold what the first one has brought."""
    with scratch(launch) as folder, muted():
        return observe(settings, launch, folder, stopped_with_us)


def _warm(settings: Settings, launch: Launch, first: Observed, progress: Progress) -> None:
    progress.note("runs again, warm; its output is thrown away")
    again = _once_more(settings, launch)
    for count in again.built.profile.server:
        count.state = "warm"
    first.built.profile.server += again.built.profile.server


def _overhead(settings: Settings, launch: Launch, profile: Profile, progress: Progress) -> None:
    """The seconds of two more runs, traced and plain: the first one's caches may have been cold."""
    progress.note("runs again, traced and untraced; its output is thrown away")
    again = _once_more(settings, launch)
    if again.status:
        raise BrigadeError(f"the traced run ended with status {again.status}")
    start = time.monotonic()
    status = aside(launch.job([]))
    if status:
        raise BrigadeError(f"the plain run ended with status {status}")
    profile.overhead.plain_s = time.monotonic() - start
    profile.overhead.traced_s = again.seconds


def _after(settings: Settings, launch: Launch, first: Observed, progress: Progress) -> None:
    """The same under `brigade run`: what the ranks then still ask the kernel."""
    progress.note("runs again under Brigade; its output is thrown away")
    stand_in = first.built.places.stand_in()
    same = replace(settings, cover=[*settings.cover, *([stand_in] if stand_in else [])])
    with scratch(launch) as folder:
        seen = observe_under_brigade(same, launch, folder)
    first.built.profile.after = seen.built.profile


def observe_under_brigade(settings: Settings, launch: Launch, folder: str) -> Observed:
    """A traced run under `brigade run`, with an image that was there before: one that made it is
    followed by another. Raises BrigadeError if it was not staged."""
    from brigade.trace import native as traces

    for number in range(2):
        into = os.path.join(folder, str(number))
        os.mkdir(into)
        with Sampler() as sampler:
            ran = _run_under_brigade(settings, launch, into)
        said = _report(into, ran.status)
        if (ran.status and ran.ended_ns is None) or not said["image"]["trial"]:
            break
    trace = traces.load(into, ended=ran.ended_ns is not None)
    built = build.build(
        trace,
        command=["brigade", "run", "--", *settings.words],
        program=launch.program,
        launcher=None if launch.kind == "local" else launch.kind,
        cover=settings.cover,
        viewed=bool(said["namespace"] and said["namespace"]["ranks"]),
    )
    status = own_status(built, trace, ran.status, ran.ended_ns)
    note_unheard(launch, built.profile)
    add_counts(built.profile, sampler, trace, folder)
    return Observed(launch, built, trace, status, ran.seconds)


def _run_under_brigade(settings: Settings, launch: Launch, folder: str) -> Ran:
    """One run; what may end the job counts from its start, not from that of what comes before."""
    watches: list[Watch] = []

    def wait(child: subprocess.Popen[bytes]) -> int:
        watches.append(Watch(child, folder, None, lambda seconds, size: None, LEAVE_S))
        return watches[0].wait(settings.until_quiet, settings.limit)

    start = time.monotonic()
    status = aside(_under_brigade(settings, launch, folder), wait)
    return Ran(status, time.monotonic() - start, watches[0].ended_ns)


def _under_brigade(settings: Settings, launch: Launch, folder: str) -> list[str]:
    command = [sys.executable, "-m", "brigade", "run", "--quiet", "--json", f"{folder}/{_REPORT}"]
    command += [word for root in settings.cover for word in ("--cover", root)]
    command += ["-n", str(settings.ranks)] if settings.ranks else []
    return [*command, "--outside", shlex.join(_tracer(launch, folder)), "--", *settings.words]


def _report(folder: str, status: int) -> dict[str, Any]:
    """What a run under Brigade says of itself. Raises BrigadeError if it was not staged."""
    import json

    try:
        with open(os.path.join(folder, _REPORT), encoding="utf-8") as text:
            said: dict[str, Any] = json.load(text)
    except (OSError, ValueError) as error:
        raise BrigadeError(f"brigade run ended with status {status} and no report") from error
    if said.get("unstaged"):
        raise BrigadeError(f"brigade run did not stage: {said['unstaged']}")
    return said


def _tracer(launch: Launch, folder: str) -> list[str]:
    """What stands before Brigade's wrapper, which looks at the program itself."""
    ranks = ["--rank", "0"] if launch.kind == "local" and launch.ranks == 1 else []
    return [str(native("brigade-trace")), "--out", folder, *ranks, "--"]


def observed_once(settings: Settings) -> Observed:
    """One traced run and its profile, for those that say their result on standard output: what the
    program says there goes to standard error."""
    launch = parse(settings.words, settings.ranks)
    progress = Progress(settings.quiet)
    try:
        with _folder(settings, launch) as folder, launch.session():
            with redirected({1: 2}):
                return _not_blind(observe(settings, launch, folder))
    finally:
        progress.close()


def _not_blind(seen: Observed) -> Observed:
    """A program that ran unseen must not pass for one that asks nothing. Raises BrigadeError."""
    profile = seen.built.profile
    if not profile.cells and seen.status == 0:
        raise BrigadeError(
            f"no call was seen: {'; '.join(profile.lost) or 'the trace is empty'}",
            hint="is it under a debugger already, or in a container that forbids ptrace?",
        )
    return seen


def observed_under_brigade(settings: Settings) -> Observed:
    """The same under `brigade run`."""
    launch = parse(settings.words, settings.ranks)
    with scratch(launch) as folder:
        return _not_blind(observe_under_brigade(settings, launch, folder))
