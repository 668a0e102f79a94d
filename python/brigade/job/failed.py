"""What `brigade run` knows of a job that failed, as evidence for `brigade.failure`.

Costs nothing until a job has failed; then the rules are loaded, and asked.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brigade.failure import Diagnosis
    from brigade.job.course import Course

_SAID_BYTES = 32 << 10


def tail(path: str) -> str:
    """The end of a log, as text; "" if there is none."""
    try:
        with open(path, "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _SAID_BYTES))
            return log.read().decode("utf-8", "replace")
    except OSError:
        return ""


def diagnose(course: Course) -> list[Diagnosis]:
    """Why the job's start failed, as far as that is certain; nothing of one that did not."""
    if course.status == 0:
        return []
    from brigade.failure import Evidence, after

    launch = course.launch
    return after(
        Evidence(
            words=course.settings.words,
            program=launch.program if launch else course.settings.words,
            status=course.status,
            seconds=course.job_s,
            launcher=launch.kind if launch else None,
            ranks=launch.ranks if launch else None,
            nodes=max(launch.nodes if launch else 1, len(course.nodes)),
            said="\n".join(filter(None, (course.said, course.unstaged))),
            oom_kills=(oom_kills() or 0) - (course.oom_kills or 0),
            image_bytes=(course.staged or {}).get("bytes") or 0,
            exec_error=course.exec_error,
            mpi_library=course.meta.get("mpi_library"),
        )
    )


def tell(failure: list[Diagnosis]) -> None:
    """The last lines of the job, on standard error."""
    if failure:
        from brigade.failure import tell

        sys.stdout.flush()
        tell(failure, sys.stderr)


def oom_kills() -> int | None:
    """How many processes this machine has killed for want of memory since it started."""
    try:
        with open("/proc/vmstat", "rb") as counters:
            text = counters.read()
        at = text.find(b"\noom_kill ")
        return int(text[at + 10 :].split(None, 1)[0]) if at >= 0 else None
    except (OSError, ValueError):
        return None
