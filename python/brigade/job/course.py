"""What `brigade run` is told, and what has happened so far: the two values that its steps share.

`Settings` is the command line's; `Course` grows as the job goes its way, and the report is made
from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from brigade.job.way import Way
from brigade.launch import Launch

if TYPE_CHECKING:
    from brigade.failure import Diagnosis

LEAST = 0  # of `memory`: the image's index and Brigade's own parts, no other contents


@dataclass
class Settings:
    """What the command line of `brigade run` says."""

    words: list[str]
    ranks: int | None = None
    image: str | None = None
    renew: bool = False
    grow: bool = True
    check: str = "fast"
    cover: list[str] = field(default_factory=list)
    view: str = "auto"
    trial_ranks: int = 2
    trial_command: str | None = None
    trial_quiet: float = 10.0
    trial_limit: float = 600.0
    readers: int | None = None
    memory: int | None = None
    topology: str | None = None
    transport: str = "auto"
    keep: bool = False
    strict: bool = False
    json_file: str | None = None
    quiet: bool = False
    fork: bool = False
    fork_warm: list[str] = field(default_factory=list)  # modules that the user vouches for
    fork_leave: list[str] = field(default_factory=list)  # and those that each rank shall import
    outside: list[str] = field(default_factory=list)  # words before the wrapper: a tracer's

    @property
    def needs_launcher(self) -> bool:
        """Whether staging goes through the launcher, also where all ranks seem to start here: MPI
        is asked for, or every rank must have the image."""
        return self.strict or self.transport == "mpi"


@dataclass
class Course:
    """What happened so far; the report is made from it."""

    settings: Settings
    launch: Launch | None = None
    image: str | None = None
    image_id: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    trial: dict[str, Any] | None = None  # of this run, if one was made
    check: dict[str, Any] | None = None
    renewed: str | None = None  # why an image was made in this run
    grown: dict[str, Any] | None = None  # what was added to it in this run
    left: list[str] = field(default_factory=list)  # the user's paths that changed: asked for real
    moved: list[int] = field(default_factory=list)  # entries that changed without harm
    staged: dict[str, Any] | None = None
    unstaged: str | None = None  # why the job ran without an image
    views: list[str] = field(default_factory=list)
    fork_why: str | None = None  # why --fork forks no rank at all
    nodes: list[dict[str, Any]] = field(default_factory=list)  # counters, one object a node
    before_launcher_s: float | None = None
    launched_ns: int = 0
    job_s: float = 0.0
    status: int = 0
    said: str = ""  # by the trial
    oom_kills: int | None = None  # of this machine, before the job
    exec_error: int = 0  # errno of starting the launcher, or the program without one
    failure: list[Diagnosis] = field(default_factory=list)

    @property
    def opens_in_place(self) -> bool:
        """Whether what lies on this machine's own disk is to be opened there: its ranks are forked
        from one process that opens it, and copying it into memory first takes longer than that
        process's imports. What is asked for is copied; `strict` forbids to open what is not.
        """
        settings = self.settings
        if not settings.fork or settings.memory is not None or settings.image or settings.strict:
            return False
        return self.launch is not None and self.launch.is_here

    @property
    def stays_on_disk(self) -> bool:
        """The same, of an image that answers for nothing else: the trial met no shared file
        system."""
        return self.opens_in_place and set(self.meta.get("roots", {}).values()) == {"prefix"}

    def way(self, launch: Launch) -> Way:
        """How the image is to be brought to the nodes."""
        return Way(
            transport=self.settings.transport,
            mpi=launch.mpi_library(self.meta.get("mpi_library")),
            readers=self.settings.readers,
            memory=LEAST if self.stays_on_disk else self.settings.memory,
            topology=self.settings.topology,
            changed=self.moved,
        )
