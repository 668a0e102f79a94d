"""Every error a user can meet, as one tree.

BrigadeError            what failed, where, and what to do: one message, no traceback
|-- UsageError          the command line or a setting cannot be meant as written
|-- LauncherError       the launcher (srun, mpirun, mpiexec) is missing or refused
|   `-- SilentLauncherError  it is there, and does not say of which MPI it is
|-- ImageError          an image cannot be read, written, or is damaged
|-- TrialError          the trial run gave nothing to make an image from
|   `-- NoTraceError    a traced job has run, and what it left tells nothing of it
|-- StageError          an image could not be brought into the nodes' memory
|   |-- NoMpiError      because no MPI started there; there may be another way
|   `-- LostNodeError   because a node that had begun is not heard of any more
|-- LabError            the cluster in a box could not be brought up or used
|-- OverBudget          a start-up asks more of the file system than it may (brigade budget)
|-- ProgramFailed       the program that was to be judged failed by itself (brigade budget)
`-- BrigadeIOError      a shared file could not be written or read (brigade.io); an OSError too

`brigade.__main__.main` is the one place that catches it.
"""

from __future__ import annotations


class BrigadeError(Exception):
    """A failure that is explained to the user; `exit_code` ends the command."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(BrigadeError):
    exit_code = 2


class LauncherError(BrigadeError):
    exit_code = 3


class SilentLauncherError(LauncherError):
    pass


class ImageError(BrigadeError):
    exit_code = 4


class TrialError(BrigadeError):
    exit_code = 5


class NoTraceError(TrialError):
    """`status`: how the job itself ended, as subprocess gives it."""

    def __init__(self, message: str, hint: str | None = None, *, status: int = 0) -> None:
        super().__init__(message, hint)
        self.status = status


class StageError(BrigadeError):
    exit_code = 6


class NoMpiError(StageError):
    pass


class LostNodeError(StageError):
    pass


class LabError(BrigadeError):
    exit_code = 7


class OverBudget(BrigadeError):
    exit_code = 8


class ProgramFailed(BrigadeError):
    exit_code = 9


class BrigadeIOError(BrigadeError, OSError):
    """A call on a shared file failed: the same on every rank, whichever rank met it.

    `errno`, `strerror` (what failed, in words) and `filename` as of OSError; `rank` (in the file's
    communicator) and `offset` (byte in the file) where it failed, or None.
    """

    exit_code = 10

    def __init__(
        self,
        code: int,
        text: str,
        path: str | None = None,
        *,
        rank: int | None = None,
        offset: int | None = None,
    ) -> None:
        OSError.__init__(self, code, text, path)
        self.message = text
        self.hint = None
        self.rank = rank
        self.offset = offset

    def __str__(self) -> str:
        where = "" if self.rank is None else f" (rank {self.rank})"
        return f"[Errno {self.errno}] {self.message}{where}"

    def __reduce__(self) -> tuple[object, ...]:
        more = {"rank": self.rank, "offset": self.offset}
        return type(self), (self.errno, self.message, self.filename), more
