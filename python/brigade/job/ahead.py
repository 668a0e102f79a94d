"""`brigade stage` and `brigade unstage`: an image that stands on nodes for the jobs to come.

Staging ahead is what `brigade run` does before a job, without the job. What stands is kept by an
entry of the allocation's (`job/standing.py`) until it is taken away, the node restarts, or `brigade
clean` finds that the allocation is over.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from brigade import interrupt
from brigade.errors import BrigadeError, LauncherError, StageError, UsageError
from brigade.job import stage, standing
from brigade.job.course import Course, Settings
from brigade.job.prepare import prepare
from brigade.job.progress import Progress
from brigade.job.signals import die_of
from brigade.job.standing import Standing
from brigade.job.step import PULSE, run_step, short
from brigade.job.transport import bring, warn_of
from brigade.launch import Launch, parse
from brigade.launch.slurm import job_is_over
from brigade.paths import native


def stage_ahead(settings: Settings) -> dict[str, Any]:
    """Find or make the image, and leave it on all nodes of the launcher. Returns what was done.

    Raises what went wrong: there is no job that could be started without an image. A signal that
    asks to end leaves nothing on any node; this process then dies of it.
    """
    with interrupt.listening():
        try:
            return _stage_ahead(settings)
        except interrupt.Interrupted as stop:
            print(f"brigade: stopped by {stop.name}", file=sys.stderr)
            die_of(stop.signum)
            raise SystemExit(128 + stop.signum) from None


def _stage_ahead(settings: Settings) -> dict[str, Any]:
    launch = _launch(settings)
    launch.launched = settings.needs_launcher
    where = standing.allocation(launch)
    if launch.kind == "srun" and not standing.slurm_job_of(where):
        raise UsageError(
            "brigade stage with srun needs an allocation: without one, the nodes would be given "
            "back at once",
            hint="use it in a job script, under salloc, or with srun --jobid=NUMBER",
        )
    standing.make_room(where)
    course = Course(settings, launch)
    job = standing.job_name(where)
    progress = Progress(settings.quiet)
    try:
        prepare(course, launch, progress)
        assert course.image and course.image_id
        stands = standing.find(where, course.image_id)
        staged = bring(
            launch,
            course.image,
            course.image_id,
            job,
            course.way(launch),
            stands,
            lambda done, total: progress.show("stage", done, total),
            join_as=stands.entry if stands else None,
        )
        warn_of(staged, progress)
    finally:
        progress.close()
    if staged["transport"] != "standing":  # then the record is there
        if interrupt.noted():
            stage.drop(launch, staged["image_id"], job, keep=False)
        interrupt.check()
        record = standing.new(where, launch, course.image, course.image_id, staged, job)
        stands = standing.find(where, course.image_id)  # another staging may have been faster
        try:
            standing.note(record)
        except StageError:  # nobody would know of it
            stage.drop(launch, staged["image_id"], job, keep=False)
            raise
        if stands:  # with other bytes, or not on every node: the record is the new one's
            _drop_other(launch, stands, record)
    return {
        "allocation": where,
        "image": course.image,
        "image_id": course.image_id,
        "staged_id": staged["image_id"],
        "folder": stage.staged_folder(staged["image_id"]),
        "nodes": [node["host"] for node in staged["nodes"]],
        "already": sum(1 for node in staged["nodes"] if node["already"]),
        "bytes_per_node": staged["bytes"],
        "read_bytes": staged["read_bytes"],
        "seconds": staged["seconds"],
        "transport": staged["transport"],
        "topology": staged.get("topology"),
        "renewed": course.renewed,
    }


def _drop_other(launch: Launch, other: Standing, ours: Standing) -> None:
    """Take away what another record named, beside what ours names."""
    if other.staged_id != ours.staged_id:
        also = standing.entries(other.allocation)
        stage.drop(launch, other.staged_id, other.entry, keep=False, also=also)
    elif other.entry != ours.entry:
        stage.drop(launch, other.staged_id, other.entry, keep=False)


def _launch(settings: Settings) -> Launch:
    """With an image that is named, a launcher without a program will do, or none at all."""
    words = settings.words
    try:
        return parse(words or ["true"], settings.ranks)
    except LauncherError:
        raise
    except UsageError:
        if not settings.image:
            raise
        return parse([*words, "true"], settings.ranks)


def unstage(everywhere: bool) -> list[dict[str, Any]]:
    """Take away what stands in this allocation, or in all of them: one object each, with `nodes`
    (of which each gave its memory back, or not yet, because a job uses the image, or did not have
    it any more), `why` it could not be done ("" if it was), and the exit code of that (`failed`: 0
    where it needed not be)."""
    where = None if everywhere else standing.allocation()
    done: list[dict[str, Any]] = []
    for what in list(standing.all_of(where)):
        told: dict[str, Any] = {
            "allocation": what.allocation,
            "image": what.image,
            "staged_id": what.staged_id,
            "nodes": [],
            "why": "",
            "failed": 0,
        }
        try:
            told.update(_take_away(what))
        except BrigadeError as error:
            told["why"] = f"{error.message}\n  {error.hint}" if error.hint else error.message
            told["failed"] = error.exit_code
        except OSError as error:
            named = f"{error.filename}: " if error.filename else ""
            told["why"] = f"{named}{error.strerror or error}"
            told["failed"] = StageError.exit_code
        done.append(told)
    return done


@contextmanager
def _in_folder(folder: str) -> Iterator[None]:
    """What the launcher's words name is named from there. It may be gone."""
    before = os.open(".", os.O_PATH | os.O_CLOEXEC)
    with suppress(OSError):
        os.chdir(folder)
    try:
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def _take_away(what: Standing) -> dict[str, Any]:
    """What is to be told of it: `nodes`, or `why` there was nothing to do."""
    number = standing.slurm_job_of(what.allocation)
    if number and job_is_over(number):
        standing.forget(what)
        nodes = ",".join(what.nodes)
        return {
            "why": f"its job is over; if its nodes keep memory: brigade clean -- srun -w {nodes}"
        }
    tool = [str(native("brigade-stage")), "drop", "--image-id", what.staged_id]
    tool += ["--job", what.entry, "--also", standing.entries(what.allocation)]
    tool += ["--base", stage.node_base(), *PULSE]
    with _in_folder(what.cwd):
        launch = parse(what.words)
        launch.everywhere = what.transport == "sbcast"
        if number:
            launch.join_slurm_job(number)
        results, said, status = run_step(
            launch.per_node(tool), lambda done, total: None, counted=not launch.is_here
        )
    if status or not results:
        raise StageError(
            f"taking {what.image} off its nodes ended with status {status} and said: {short(said)}",
            hint="`brigade clean --all -- LAUNCHER` removes it too",
        )
    standing.forget(what)
    told = [
        {"host": one["host"], **{word: bool(one.get(word)) for word in ("found", "removed")}}
        for one in results
        if "host" in one
    ]
    return {"nodes": told}
