"""`--fork` of a job: whether its ranks can be forked, and what their wrapper is told.

Python programs are, under the views that see their imports; others, where the trial saw a place to
stop them (docs/design/0023-fork.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brigade.errors import BrigadeError, UsageError

if TYPE_CHECKING:
    from brigade.job.course import Course, Settings

_NEEDED = {"interpose", "python"}
_NO_PLAN = (
    "the trial could not watch the program: it is static, for another C library, or in a container"
)
_IMAGE_WITHOUT = "the image has no plan for it: make it with `brigade image create --fork`"


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
    """The wrapper's words; none if this program's ranks cannot be forked, with the reason in
    `course.fork_why`. Raises UsageError for pins that cannot be had, BrigadeError if strict."""
    settings = course.settings
    plan = course.meta.get("fork")
    behind = str(plan["behind"]) if plan else ""
    alone = course.launch and course.launch.ranks == 1 and not behind  # it may be a launcher
    if not settings.fork or alone:
        return []  # nobody to share with; nodes with one rank find that out for themselves
    kind = plan.get("kind", "python") if plan else "plain"
    if kind != "python" and (settings.fork_warm or settings.fork_leave):
        raise UsageError(
            "--fork-warm and --fork-leave are for Python's modules, and there are none"
        )
    if plan:
        why = _why_plain(plan, kind, views)
    else:
        why = _IMAGE_WITHOUT if settings.image else _NO_PLAN
    if plan and not why:
        pins = _pins(plan, settings) if kind == "python" else []
        return ["--fork", kind, *pins, *(["--fork-behind", behind] if behind else [])]
    if settings.strict:
        raise BrigadeError(f"--fork: {why}")
    course.fork_why = why
    return []


def _why_plain(plan: dict[str, Any], kind: str, views: list[str]) -> str:
    if kind == "plain":
        return str(plan["why"])
    needed = _NEEDED if kind == "python" else {"interpose"}
    return "" if set(views) >= needed else f"it needs --view {','.join(sorted(needed))}"


def _pins(packed: dict[str, Any], settings: Settings) -> list[str]:
    from brigade.fork.pins import pins, pins_text
    from brigade.fork.plan import from_json, pinned

    plan = from_json(packed)
    wanted = pinned(plan, settings.fork_warm, settings.fork_leave)
    text = pins_text(pins(plan, wanted))
    return ["--fork-pins", text] if text else []
