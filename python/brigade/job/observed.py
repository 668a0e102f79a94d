"""One run of a job, traced, and what it tells: its profile, without insights yet.

What must stay true: the job is run as it is, its streams and terminal its own; what is said of it
is of all its ranks, or says that it is not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from brigade.errors import BrigadeError, NoTraceError
from brigade.job.signals import passing_on
from brigade.launch import Launch
from brigade.paths import cache_dir
from brigade.profile import build
from brigade.profile.build import Built
from brigade.profile.counters import Sampler
from brigade.profile.profile import Profile
from brigade.trace.events import Trace
from brigade.trace.importtime import Import
from brigade.trial.mounts import is_under

#: Whose the signals are while a run goes on: the job's, or ours.
Around = Callable[["subprocess.Popen[bytes]"], AbstractContextManager[None]]


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
    importtimes: Sequence[Import] | None = None
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


def observe(
    settings: Settings, launch: Launch, folder: str, around: Around = passing_on
) -> Observed:
    """One traced run of the job, as it is. Raises NoTraceError if the job has run, and what it left
    cannot be read."""
    from brigade.job.traced import run_traced
    from brigade.trace import native as traces

    with Sampler() as sampler:
        ran = run_traced(
            launch,
            folder,
            progress=lambda seconds, size: None,  # the terminal is the program's
            quiet_s=settings.until_quiet,
            limit_s=settings.limit,
            around=around,
        )
    try:
        trace = traces.load(folder, ended=ran.ended_ns is not None)
    except BrigadeError as error:
        raise NoTraceError(error.message, error.hint, status=ran.status) from error
    built = build.build(
        trace,
        command=settings.words,
        program=launch.program,
        launcher=None if launch.kind == "local" else launch.kind,
        importtimes=settings.importtimes,
        cover=settings.cover,
    )
    status = own_status(built, trace, ran.status, ran.ended_ns)
    built.profile.overhead.traced_s = ran.seconds
    note_unheard(launch, built.profile)
    add_counts(built.profile, sampler, trace, folder)
    return Observed(launch, built, trace, status, ran.seconds)


def note_unheard(launch: Launch, profile: Profile) -> None:
    """Says of a profile what it does not have because ranks left no trace."""
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


def own_status(built: Built, trace: Trace, status: int, ended_ns: int | None) -> int:
    """What a job ended with by itself. Where we ended it (at `ended_ns`), its start-up over, that
    is 0 unless a rank had failed before; the ranks that we ended have no status of their own."""
    if ended_ns is None:
        return status
    firsts = {rank.number: rank.first for rank in built.ranks}
    failed = False
    for times in built.profile.ranks:
        first = firsts[times.rank]
        if first.end_ns is None or trace.start_ns + first.end_ns >= ended_ns:
            times.status = None
        else:
            failed = failed or bool(first.status)
    return status if failed else 0


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
