"""The course of `brigade run`: image, staging, job, report.

Every step before the job may fail without the job failing: it is then started plainly, and the
report says why. Only what the user asked for explicitly (`--image FILE` that cannot be read, a
wrong option) ends the command. The job's own exit code, or signal, becomes ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack, suppress

from brigade import interrupt
from brigade.errors import BrigadeError, ImageError, LauncherError, SilentLauncherError, UsageError
from brigade.job import failed, forking, stage, standing, views
from brigade.job.course import Course, Settings
from brigade.job.early import Early
from brigade.job.prepare import prepare, remake
from brigade.job.progress import Progress
from brigade.job.signals import die_of, passing_on
from brigade.job.transport import bring, warn_of
from brigade.launch import Launch, environment, parse
from brigade.launch.misplaced import refuse_script


def run_job(settings: Settings) -> int:
    """Run a job as `settings` say; returns the exit code (or dies of the job's signal, or of the
    one that stopped us before the job)."""
    with interrupt.listening():
        try:
            status = _run(settings)
            interrupt.check()
            return status
        except interrupt.Interrupted as stop:
            print(f"brigade: stopped by {stop.name}", file=sys.stderr)
            die_of(stop.signum)
            return 128 + stop.signum


def _run(settings: Settings) -> int:
    chosen = views.parse(settings.view)
    forking.check(settings, chosen)
    course = Course(settings)
    progress = Progress(settings.quiet)
    try:
        course.launch = parse(settings.words, settings.ranks)
        course.launch.launched = settings.needs_launcher
        if course.launch.kind == "local":
            refuse_script(settings.words)
    except UsageError as error:
        if settings.ranks is not None:
            raise
        course.unstaged = f"{error.message}; {error.hint}" if error.hint else error.message
        return _finish(course, _execute(course, settings.words))
    except SilentLauncherError as error:
        if settings.strict:
            raise
        course.unstaged = error.message
        progress.warn(f"{error.message}\n  the job starts without an image")
        return _finish(course, _execute(course, settings.words))
    launch = course.launch
    if not chosen:
        course.unstaged = "--view none"
        return _finish(course, _execute(course, launch.job([])))
    with ExitStack() as held:
        try:
            held.enter_context(launch.session())
        except LauncherError as error:
            if settings.strict:
                raise
            return _finish(course, _execute(course, _plainly(course, progress, error)))
        early = Early(launch, _job_id(), lambda done, total: progress.show("stage", done, total))
        try:
            prepare(course, launch, progress, early)
            command = _stage_sound(course, launch, chosen, progress, early)
        except BrigadeError as error:
            if isinstance(error, UsageError) or (isinstance(error, ImageError) and settings.image):
                raise
            if settings.strict:
                raise
            command = _plainly(course, progress, error)
        finally:
            early.withdraw()
            progress.close()
        try:
            interrupt.check()
            course.status = _execute(course, command)
        finally:
            if course.staged:
                course.nodes = stage.drop(
                    launch, course.staged["image_id"], _job_id(), keep=settings.keep
                )
    _note_misses(course)
    return _finish(course, course.status)


def _plainly(course: Course, progress: Progress, error: BrigadeError) -> list[str]:
    """The job's own command line, because of `error`."""
    assert course.launch
    course.unstaged = error.message
    progress.warn(f"{error.message}\n  the job starts without an image")
    return course.launch.job([])


def _job_id() -> str:
    """Names this job on its nodes: host and process, so that no two jobs of a user meet."""
    return f"{os.uname().nodename}-{os.getpid()}"


def _note_misses(course: Course) -> None:
    """Keep what this run missed, for the next one's image to grow by."""
    if not course.image or not course.nodes or not course.settings.grow:
        return
    if not any(node.get("misses") for node in course.nodes):
        return
    from brigade.image import grow

    memory = (course.staged or {}).get("memory") or {}
    capped = bool(memory.get("left_out_files")) or course.stays_on_disk
    with suppress(OSError):  # an image in a folder that is not ours to write to
        grow.note(course.image, course.nodes, capped=capped)


def _stage_sound(
    course: Course, launch: Launch, chosen: list[str], progress: Progress, early: Early
) -> list[str]:
    """Stage the image; one of our own making that turns out to be damaged is made anew, once."""
    try:
        return _stage(course, launch, chosen, progress, early)
    except ImageError as error:
        if course.settings.image or course.trial:
            raise
        remake(course, launch, progress, error.message)
        return _stage(course, launch, chosen, progress, early)


def _stage(
    course: Course, launch: Launch, chosen: list[str], progress: Progress, early: Early
) -> list[str]:
    """Stage the image; returns the command line of the job under it."""
    assert course.image and course.image_id
    settings = course.settings
    course.staged = staged = bring(
        launch,
        course.image,
        course.image_id,
        _job_id(),
        course.way(launch),
        standing.find(standing.allocation(launch), course.image_id),
        lambda done, total: progress.show("stage", done, total),
        early,
    )
    warn_of(staged, progress)
    if settings.view == "auto":
        chosen = views.automatic(launch.programs, bool(course.meta.get("python")))
    course.views = chosen
    folder = stage.staged_folder(staged["image_id"])
    wrapper = [
        f"{folder}/root/.brigade/bin/brigade-rank",
        "--job",
        _job_id(),
        "--view",
        ",".join(chosen),
    ]
    if settings.strict:
        wrapper.append("--strict")
    wrapper += forking.words(course, chosen)
    return launch.job([*settings.outside, *launch.guarded(wrapper)])


def _execute(course: Course, command: list[str]) -> int:
    """Run the job in our own process group and session; returns subprocess's status.

    A terminal's Ctrl-C reaches the job by itself; other signals are passed on.
    """
    course.oom_kills = failed.oom_kills()
    course.before_launcher_s = _age_s()
    course.launched_ns = time.time_ns()
    start = time.monotonic()
    try:
        child = subprocess.Popen(
            command,
            close_fds=False,  # what the user's shell opened is its
            env=environment() if course.unstaged is None else None,
        )
    except OSError as error:
        print(f"brigade: {command[0]}: {error.strerror}", file=sys.stderr)
        course.exec_error = error.errno or 0
        return 127 if isinstance(error, FileNotFoundError) else 126
    with passing_on(child):
        try:
            return child.wait()
        finally:
            course.job_s = time.monotonic() - start


def _age_s() -> float:
    """Seconds since this process was started."""
    with open("/proc/self/stat", encoding="ascii") as stat:
        started = int(stat.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def _finish(course: Course, status: int) -> int:
    """Report, and end as the job ended."""
    course.status = status
    settings = course.settings
    if not settings.quiet or settings.json_file:
        from brigade.report import summary

        course.failure = failed.diagnose(course)
        report = summary.report(course)
        if settings.json_file:
            try:
                summary.write_json(report, settings.json_file)
            except OSError as error:  # the job's own status is worth more
                print(f"brigade: {settings.json_file}: {error.strerror}", file=sys.stderr)
        if not settings.quiet:
            from brigade.report.table import print_report

            print_report(report)
            failed.tell(course.failure)
    if status < 0:
        die_of(-status)
    return status
