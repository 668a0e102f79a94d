"""`--fork` of a job: whether its ranks can be forked, and what their wrapper is told.

Only Python programs are, under the views that see their imports: a template that the start of
Python does not stop would run the program (docs/design/0023-fork.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brigade.errors import UsageError

if TYPE_CHECKING:
    from brigade.job.course import Course, Settings

_NEEDED = {"interpose", "python"}


def check(settings: Settings, views: list[str]) -> None:
    """Raise UsageError for options that contradict each other."""
    pins = [*settings.fork_warm, *settings.fork_leave]
    if pins and not settings.fork:
        raise UsageError("--fork-warm and --fork-leave need --fork")
    if settings.fork and settings.view != "auto" and not set(views) >= _NEEDED:
        raise UsageError(
            f"--fork cannot be had with --view {settings.view}",
            hint="it needs interpose and python; leave --view out",
        )


def words(course: Course, views: list[str]) -> list[str]:
    """The wrapper's words; none if this program's ranks cannot be forked. Raises UsageError for
    pins that cannot be had."""
    settings = course.settings
    if not settings.fork or not set(views) >= _NEEDED or not course.meta.get("fork"):
        return []
    if course.launch and course.launch.ranks == 1:
        return []  # nobody to share with; nodes with one rank find that out for themselves
    from brigade.fork import plan as plans

    plan = plans.from_json(course.meta["fork"])
    wanted = plans.pinned(plan, settings.fork_warm, settings.fork_leave)
    text = plans.pins_text(plans.pins(plan, wanted))
    return ["--fork", "python", *(["--fork-pins", text] if text else [])]
