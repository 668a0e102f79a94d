"""The course of `brigade profile`: run the job traced, as often as was asked, and make a profile.

The first run is the user's: its streams are its own, and its exit status becomes ours. Further runs
(warm, under Brigade, plain) see no input, and what they say is thrown away.

What must stay true: traces lie where all nodes can write them, and are removed unless they are to
be kept; an error of a further run costs its part of the profile, never the profile.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from brigade import interrupt
from brigade.errors import BrigadeError
from brigade.job.aside import aside, muted, redirected
from brigade.job.progress import Progress
from brigade.launch import Launch, parse
from brigade.paths import cache_dir, native
from brigade.profile import build
from brigade.profile.build import Built
from brigade.profile.counters import Sampler
from brigade.profile.profile import Overhead, Profile, save
from brigade.trace.events import Trace
from brigade.trace.importtime import Import
from brigade.trial.mounts import is_under

PROFILE = "profile.json"  # in a folder of kept traces
_REPORT = "report.json"  # of a run under Brigade


@dataclass
class Settings:
    """What a command line says about the runs."""

    words: list[str]
    ranks: int | None = None
    cover: list[str] = field(default_factory=list)
    until_quiet: float | None = None
    limit: float | None = None
    warm: bool = False
    after: bool = False
    overhead: bool = False
    importtime: str | None = None
    keep_trace: str | None = None
    quiet: bool = False


@dataclass
class Observed:
    """One traced run."""

    launch: Launch
    built: Built
    trace: Trace
    status: int  # of the launcher, as subprocess gives it
    seconds: float


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
            if settings.keep_trace:
                save(profile, os.path.join(settings.keep_trace, PROFILE))
            if observed.status == 0:
                _further(settings, launch, observed, progress)
            profile.insights = find(profile)
            if profile.after:
                profile.after.insights = find(profile.after)
            if settings.keep_trace:
                save(profile, os.path.join(settings.keep_trace, PROFILE))
            return observed
    finally:
        progress.close()


def observe(settings: Settings, launch: Launch, folder: str) -> Observed:
    """One traced run of the job, as it is."""
    from brigade.job.traced import run_traced
    from brigade.trace import native as traces

    with Sampler() as sampler:
        ran = run_traced(
            launch,
            folder,
            progress=lambda seconds, size: None,  # the terminal is the program's
            quiet_s=settings.until_quiet,
            limit_s=settings.limit,
        )
    trace = traces.load(folder)
    built = build.build(
        trace,
        command=settings.words,
        program=launch.program,
        launcher=None if launch.kind == "local" else launch.kind,
        importtimes=import_times(settings.importtime),
        cover=settings.cover,
    )
    status = ran.status
    if ran.ended_ns is not None and not failed_before(built, ran.ended_ns - trace.start_ns):
        status = 0
    built.profile.overhead.traced_s = ran.seconds
    _note_unheard(launch, built.profile)
    add_counts(built.profile, sampler, trace, folder)
    return Observed(launch, built, trace, status, ran.seconds)


def _note_unheard(launch: Launch, profile: Profile) -> None:
    missing = unheard(launch.ranks, profile)
    profile.lost += missing
    profile.complete = profile.complete and not missing


def unheard(ranks: int | None, profile: Profile) -> list[str]:
    """What to say if ranks that the launcher was to start left no trace: a mean over the others
    would pass for one over all."""
    heard = len({one.rank for one in profile.ranks if one.rank >= 0})
    if not ranks or not heard or heard >= ranks:
        return []
    return [
        f"{ranks - heard} of {ranks} ranks left no trace: what stands here is that of the others. "
        "Does every node see the folder that BRIGADE_CACHE names?"
    ]


def add_counts(profile: Profile, sampler: Sampler, trace: Trace, folder: str) -> None:
    """What reached the servers meanwhile, as the clients' own counters say."""
    profile.server += sampler.counts("as found")
    profile.timelines += sampler.timelines(zero_ns=trace.start_ns)
    profile.seen += sampler.notes
    if any(is_under(os.path.realpath(folder), count.mount) for count in profile.server):
        profile.seen.append(
            "The servers' counts include the writing of the trace itself; BRIGADE_CACHE names "
            "another folder for it."
        )


def failed_before(built: Built, ended_ns: int) -> bool:
    """Whether a rank had failed by itself when we ended the job, its start-up over. The others,
    which we ended, have no status of their own."""
    firsts = {rank.number: rank.first for rank in built.ranks}
    failed = False
    for times in built.profile.ranks:
        first = firsts[times.rank]
        if first.end_ns is None or first.end_ns >= ended_ns:
            times.status = None
        else:
            failed = failed or bool(first.status)
    return failed


def import_times(path: str | None) -> list[Import] | None:
    """The lines of -X importtime in a file. Raises BrigadeError if there are none."""
    if path is None:
        return None
    from brigade.trace import importtime

    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as text:
            found = importtime.read(text)
    except OSError as error:
        raise BrigadeError(f"{path}: {error.strerror}") from error
    if not found:
        raise BrigadeError(
            f"{path}: no import times",
            hint="make them with `python -X importtime app.py 2> FILE`",
        )
    return found


@contextmanager
def _folder(settings: Settings, launch: Launch) -> Iterator[str]:
    """Where the trace of the run goes; removed unless it is to be kept."""
    if settings.keep_trace:
        os.makedirs(settings.keep_trace, exist_ok=True)
        if any(name.endswith(".trace") for name in os.listdir(settings.keep_trace)):
            raise BrigadeError(
                f"{settings.keep_trace} has a trace already",
                hint="name a new folder with --keep-trace, or remove that one",
            )
        yield os.path.abspath(settings.keep_trace)
        return
    with scratch(launch) as folder:
        yield folder


@contextmanager
def scratch(launch: Launch) -> Iterator[str]:
    """A folder of ours for a trace, removed again. Without a launcher it lies on this node, so that
    writing it asks no shared file system; else where all nodes see it."""
    if launch.kind == "local":
        base = tempfile.gettempdir()
    else:
        base = str(cache_dir())
        os.makedirs(base, exist_ok=True)
    prefix = f"brigade-trace-{os.uname().nodename}-{os.getpid()}-"
    folder = tempfile.mkdtemp(prefix=prefix, dir=base)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _further(settings: Settings, launch: Launch, first: Observed, progress: Progress) -> None:
    """Further runs, each for its part of the profile."""
    profile = first.built.profile
    parts: dict[str, tuple[bool, Callable[[], None]]] = {
        "warm": (settings.warm, lambda: _warm(settings, launch, first, progress)),
        "after": (settings.after, lambda: _after(settings, launch, first, progress)),
        "overhead": (settings.overhead, lambda: _plain(launch, profile.overhead, progress)),
    }
    for name, (wanted, run) in parts.items():
        if not wanted:
            continue
        interrupt.check()
        try:
            run()
        except BrigadeError as error:
            progress.warn(f"--{name} is left out: {error.message}")
            profile.lost.append(f"The run for --{name} failed: {error.message}.")


def _warm(settings: Settings, launch: Launch, first: Observed, progress: Progress) -> None:
    """The same again: caches hold what the first run has brought."""
    progress.note("runs again, warm; its output is thrown away")
    with scratch(launch) as folder, muted():
        again = observe(settings, launch, folder)
    for count in again.built.profile.server:
        count.state = "warm"
    first.built.profile.server += again.built.profile.server


def _plain(launch: Launch, overhead: Overhead, progress: Progress) -> None:
    """The same without a tracer, for the seconds alone."""
    progress.note("runs again untraced; its output is thrown away")
    start = time.monotonic()
    status = aside(launch.job([]))
    if status:
        raise BrigadeError(f"the plain run ended with status {status}")
    overhead.plain_s = time.monotonic() - start


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
        start = time.monotonic()
        with Sampler() as sampler:
            status = aside(_under_brigade(settings, launch, into))
        seconds = time.monotonic() - start
        said = _report(into, status)
        if status or not said["image"]["trial"]:
            break
    trace = traces.load(into)
    built = build.build(
        trace,
        command=["brigade", "run", "--", *settings.words],
        program=launch.program,
        launcher=None if launch.kind == "local" else launch.kind,
        cover=settings.cover,
        viewed=bool(said["namespace"] and said["namespace"]["ranks"]),
    )
    _note_unheard(launch, built.profile)
    add_counts(built.profile, sampler, trace, folder)
    return Observed(launch, built, trace, status, seconds)


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
