"""Staging that starts while the image is still being compared with its sources.

Both take time that is mostly waiting: a launcher starts processes on all nodes, and MPI in them;
the check asks the file system for metadata. So the processes start as soon as the image is known,
and wait for the word (`brigade-stage put --held`). It comes when the check has found the image
fresh, with the entries for which it shall not answer; if the image is to be made anew, it does not
come, and nothing was staged.

What must stay true: no byte is staged, and nothing made on any node, before the check has ended
well.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from brigade.errors import StageError
from brigade.image import missed
from brigade.job import stage, standing
from brigade.launch import Launch

if TYPE_CHECKING:
    from brigade.job.course import Course


class Early:
    """The staging of one job, begun early or not."""

    def __init__(self, launch: Launch, job: str, progress: Callable[[int, int], None]) -> None:
        self._launch = launch
        self._job = job
        self._progress = progress
        self._held: stage.Held | None = None

    def begin(self, course: Course) -> None:
        """The image is known (`course.image`, `image_id`, `meta`): start, if nothing but the check
        speaks against staging it."""
        assert course.image
        settings = course.settings
        way = course.way(self._launch)
        if way.transport == "sbcast" or way.mpi == "none" or self._held:
            return
        if settings.grow and not settings.image and missed.pending(course.image):
            return  # it is to grow first
        if standing.find(standing.allocation(self._launch), course.image_id):
            return  # there may be nothing to stage
        with suppress(StageError):  # then staging says so
            self._held = stage.hold(
                self._launch,
                course.image,
                self._job,
                mpi=way.mpi,
                readers=way.readers,
                memory=way.memory,
                topology=way.topology,
                progress=self._progress,
            )

    def take(self) -> stage.Held | None:
        """What was begun, for the one who goes on with it."""
        held, self._held = self._held, None
        return held

    def withdraw(self) -> None:
        """End what was begun and not taken."""
        held = self.take()
        if held:
            held.withdraw()
