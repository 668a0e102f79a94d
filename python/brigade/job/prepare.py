"""Find the image of a job and see that it is fresh, or make one: before every staging.

An image that is in the cache is compared with its sources; it is made anew when they have changed,
and grows by what the last runs missed. What is set in the course: image, image_id and meta, and
what was done about them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from brigade import interrupt
from brigade.errors import BrigadeError, ImageError, TrialError
from brigade.image import missed
from brigade.job import failed, standing, views
from brigade.job.key import image_path
from brigade.job.leftovers import remove_trials
from brigade.job.progress import Progress
from brigade.job.turns import file_of, turn
from brigade.launch import Launch, parse
from brigade.whose import stranger

if TYPE_CHECKING:
    from brigade.job.course import Course
    from brigade.job.early import Early

_MORE_S = 600.0  # than two trials: to build what one has found


def prepare(course: Course, launch: Launch, progress: Progress, early: Early | None = None) -> None:
    """Find an image that is fresh, or make one. Sets image, image_id and meta. What is `early`
    begins beside the check; it is withdrawn if the image does not serve.

    Raises BrigadeError, also for a cache that cannot be read or written; Interrupted.
    """
    try:
        with interrupt.promptly():
            _prepare(course, launch, progress, early)
    except OSError as error:
        raise _cannot_keep(course, error) from error


def remake(course: Course, launch: Launch, progress: Progress, reason: str) -> None:
    """Make the image anew, because of `reason`. Raises as `prepare` does."""
    assert course.image
    try:
        with interrupt.promptly():
            _anew(course, launch, course.image, progress, reason)
    except OSError as error:
        raise _cannot_keep(course, error) from error


def _cannot_keep(course: Course, error: OSError) -> ImageError:
    where = error.filename or os.path.dirname(course.image or "")
    return ImageError(
        f"cannot keep an image: {where}: {error.strerror or error}",
        hint="BRIGADE_CACHE names another folder for images",
    )


def _prepare(course: Course, launch: Launch, progress: Progress, early: Early | None) -> None:
    settings = course.settings
    path = settings.image or image_path(launch.programs, settings.cover, folders=launch.folders)
    course.image = path
    reason = "--renew" if settings.renew and not settings.image else None
    if reason is None and (settings.image or os.path.exists(path)):
        reason = _whose(path) if not settings.image else None
        reason = reason or _use_image(course, path, early=early)
    elif reason is None:
        reason = "first run"
    if reason is None:
        stands = standing.find(standing.allocation(launch), course.image_id)
        if settings.grow and not settings.image and not stands:  # grown, it would be another one
            _grow_image(course, path, progress)
        return
    if early:
        early.withdraw()
    wait_s = 0.0 if settings.renew else 2 * settings.trial_limit + _MORE_S
    with turn(path, wait_s, _told_once(progress)) as mine:
        if mine.in_vain and not mine.mine and wait_s:
            raise TrialError(
                f"another job still makes the image after {wait_s:.0f} s",
                hint=f"{file_of(path)} says which",
            )
        made = not settings.renew and os.path.exists(path) and not _whose(path)
        if not made or _use_image(course, path):  # another has not made it since our look
            _anew(course, launch, path, progress, reason, is_ours=mine.mine)


def _told_once(progress: Progress) -> Callable[[float], None]:
    told: list[bool] = []

    def waiting(seconds: float) -> None:
        if not told:
            told.append(True)
            progress.note("waiting for the image that another job makes")
        progress.show("waiting", seconds, None)

    return waiting


def _does_not_serve(course: Course) -> str | None:
    """Why an image does not serve this job, fresh or not."""
    settings = course.settings
    if course.meta.get("bare") and not course.stays_on_disk and not settings.image:
        return "it holds no contents: it was made for ranks forked on one machine"
    if not settings.fork or settings.image or "fork" in course.meta:
        return None
    started = views.executables(course.launch.programs) if course.launch else []
    return None if started and all(map(views.is_unseen, started)) else "no plan for --fork"


def _anew(
    course: Course,
    launch: Launch,
    path: str,
    progress: Progress,
    reason: str,
    is_ours: bool = True,
) -> None:
    course.renewed = reason
    progress.note(f"making an image ({reason})")
    watched = course.settings.fork or "fork" in course.meta  # a plan is not lost
    course.image_id, course.meta = None, {}
    _make_image(course, launch, path, progress, watched, is_ours)
    _use_image(course, path, checked=True)


def _grow_image(course: Course, path: str, progress: Progress) -> None:
    """Add to the image what the last runs missed. Without that it still serves."""
    if not missed.pending(path):
        return
    from brigade.image import grow  # and all that builds images, for which no job need wait

    try:
        with turn(path) as mine:
            if not mine.mine:  # another job grows it, or nobody can
                return
            grown = grow.grow(path, lambda done, total: progress.show("image", done, total))
        if grown is None:
            return
        progress.note(f"the image has grown by what the last run missed ({grown.paths} paths)")
        course.grown = {"paths": grown.paths, "seconds": grown.built.seconds}
        _use_image(course, path, checked=True)
    except (BrigadeError, OSError) as error:
        progress.warn(f"the image could not grow: {error}")


def _whose(path: str) -> str | None:
    """Why an image in the cache is not to be believed: what it holds is run. Root's is."""
    user = stranger(path)
    return None if user is None else f"{path} belongs to user {user}"


def _older(course: Course, path: str) -> str | None:
    """The image that is to be replaced, if a new one may have contents of it."""
    if course.settings.renew or not os.path.exists(path) or _whose(path):
        return None
    return path


def _use_image(
    course: Course, path: str, checked: bool = False, early: Early | None = None
) -> str | None:
    """Open and check an image; returns why it cannot be used, or None."""
    from brigade.image import freshness
    from brigade.image.reader import Image

    settings = course.settings
    try:
        with Image(path) as image:
            course.image_id, course.meta = image.id, image.meta
            course.left, course.moved = [], []
            start = time.monotonic()
            if not checked:
                why_not = _does_not_serve(course)
                if why_not:
                    return why_not
                if early:
                    early.begin(course)
                found = freshness.check(image, settings.check)
                course.check = {
                    "level": settings.check,
                    "seconds": time.monotonic() - start,
                    "changed": [list(change) for change in found.changed],
                }
                if not found.ok and not settings.image:
                    path_changed, what = found.changed[0]
                    more = len(found.changed) - 1
                    return f"{path_changed} {what}" + (f" and {more} more" if more else "")
                if not found.ok:
                    path_changed, what = found.changed[0]
                    raise ImageError(
                        f"{path} is stale: {path_changed} {what}",
                        hint="make it anew with `brigade run --renew` or `brigade image create`",
                    )
                course.left = sorted(found.moved + found.left)
                course.moved = found.silent
            return None
    except ImageError as error:
        if settings.image or checked:
            raise
        return error.message


def _make_image(
    course: Course,
    launch: Launch,
    path: str,
    progress: Progress,
    watched: bool,
    is_ours: bool = True,
) -> None:
    """Trial and build; leaves no record behind unless it failed. `watched`: with a plan for
    --fork; `is_ours`: nobody else makes it meanwhile."""
    from brigade.image import grow
    from brigade.image.build import build
    from brigade.job.trialrun import run_trial

    settings = course.settings
    if settings.trial_command:
        launch = parse(shlex.split(settings.trial_command))
    folder = f"{path}.trial-{os.uname().nodename}-{os.getpid()}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    remove_trials(path)
    os.mkdir(folder, 0o700)  # a new one: what it holds is run
    try:
        trial = run_trial(
            launch,
            settings.trial_ranks,
            folder,
            quiet_s=settings.trial_quiet,
            limit_s=settings.trial_limit,
            progress=lambda seconds, size: progress.show("trial", seconds, None),
            fork=watched,
        )
        start = time.monotonic()
        added = grow.carried(path) if settings.grow else []
        grow.supplement(folder, added)
        grow.keep_records(folder, path, settings.cover, added)
        built = build(
            folder,
            path,
            cover=settings.cover,
            bare=course.opens_in_place,
            base=_older(course, path),
            progress=lambda done, total: progress.show("image", done, total),
        )
        if built.unseen:
            grow.keep_records(folder, path, settings.cover, added, built.unseen)
    finally:
        course.said = failed.tail(os.path.join(folder, "output.log"))
        shutil.rmtree(folder, ignore_errors=True)
        if is_ours and not os.path.exists(path):
            grow.forget(path)
    course.trial = {
        "seconds": trial.seconds,
        "ended": trial.ended,
        "status": trial.status,
        "build_seconds": time.monotonic() - start,
    }
    if not trial.status or trial.ended != "exit":
        course.said = ""  # it did not fail: its words explain nothing
    else:
        progress.note(
            f"the trial ended with status {trial.status}; "
            "what it looked up until then is in the image"
        )
