"""What every launcher offers: the same job small, with one process per node, or with a prefix.

A `Launch` is a parsed launcher command. It only builds command lines; `session()` alone may
start something (an allocation), and ends it again.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from brigade.launch.guard import guarded, passable
from brigade.trial.invocation import invocation

_FEW, _MANY = 8, 16
# the variables of srun's options label, output, error and input, which our own steps go without
_STREAMS_OF_SRUN = {"SLURM_LABELIO", "SLURM_STDOUTMODE", "SLURM_STDERRMODE", "SLURM_STDINMODE"}


class Launch(ABC):
    """A job as its user would start it."""

    kind: str  # "srun", "mpirun", "mpiexec" or "local"
    everywhere = False  # steps of our own go to all nodes of the allocation, not to the job's only
    searches_last = ""  # where PATH has no program: "word" or "whole" (src/base/search_last.h)
    keeps_pwd = False  # ranks have PWD as this process has it, for certain
    launched = False  # and through the launcher, also where it has no other machine to reach

    def __init__(self, words: list[str]) -> None:
        self.words = words

    @property
    @abstractmethod
    def programs(self) -> list[list[str]]:
        """Programs and their arguments: several in an MPMD job, in its order."""

    @property
    def program(self) -> list[str]:
        """The first of them; empty if there is none."""
        return next(iter(self.programs), [])

    @property
    def folders(self) -> list[str]:
        """Those that options name for ranks to start in."""
        return []

    @property
    @abstractmethod
    def ranks(self) -> int | None:
        """How many ranks the user asked for, if the command line says so."""

    @abstractmethod
    def job(self, prefix: list[str]) -> list[str]:
        """The user's job with `prefix` before each program."""

    @abstractmethod
    def trial(self, ranks: int, prefix: list[str]) -> list[str]:
        """The same program with `ranks` ranks on one node, its output to our own streams."""

    def guarded(self, wrapper: list[str]) -> list[str]:
        """A prefix for each program: `wrapper` where it exists."""
        return guarded(wrapper, searches_last=self.searches_last, keeps_pwd=self.keeps_pwd)

    def per_node(self, tool: list[str]) -> list[str]:
        """`tool`, one process on each node of the job."""
        return tool if self.is_here else self.launched_per_node(tool)

    def per_node_told(self, tool: list[str]) -> list[str] | None:
        """The same, the first process with our standard input; None if that is not to be had, or
        if there is nothing to be gained by it."""
        return None

    @property
    def is_here(self) -> bool:
        """Whether all ranks start on this machine, and our own steps need no launcher."""
        return not self.launched and not self.everywhere and self.stays_here

    @property
    @abstractmethod
    def stays_here(self) -> bool:
        """Whether the launcher starts all ranks on this machine; False where that is in doubt."""

    @abstractmethod
    def launched_per_node(self, tool: list[str]) -> list[str]:
        """`per_node` through the launcher, wherever the ranks are."""

    @property
    def spans_jobs(self) -> bool:
        """Whether the nodes belong to several jobs of the scheduler's: no MPI of ours starts over
        all of them."""
        return False

    @property
    def nodes(self) -> int:
        """How many nodes the job has, as far as that is known before it runs."""
        return 1

    def mpi_library(self, recorded: str | None) -> str:
        """The MPI library that processes of this launcher use: a path, 'auto', or 'none'.

        `recorded` is the one that the program loaded in its trial, perhaps under another launcher.
        """
        return "none" if self.is_here else self.launched_mpi_library(recorded)

    def launched_mpi_library(self, recorded: str | None) -> str:
        """The same of processes that the launcher starts."""
        return "none"

    @property
    def slurm_job(self) -> str | None:
        """The Slurm job that the command line itself names, if it does."""
        return None

    def join_slurm_job(self, number: str) -> None:
        """Let steps run in that Slurm job, which may not be the one we are in."""
        return None

    @contextmanager
    def session(self) -> Iterator[None]:
        """Hold whatever lets several steps run on the same nodes."""
        yield


def step_environment(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What launchers of our own steps are started with: `env` without what makes srun label or
    redirect what they say, and that Intel MPI's shall start one process a node where it is told so.
    In a scheduler's job it otherwise does what that says."""
    kept = {name: value for name, value in passable(env).items() if name not in _STREAMS_OF_SRUN}
    return {**kept, "I_MPI_JOB_RESPECT_PROCESS_PLACEMENT": "off"}


def distinct(programs: list[list[str]]) -> list[list[str]]:
    """Those that a trial starts: all of a few; of many, each program (with its script) once, and
    not more than a node can well start. What the others look up, an image grows by."""
    if len(programs) <= _FEW:
        return programs
    once = {(words[0], *invocation(words).script): words for words in reversed(programs)}
    return list(reversed(once.values()))[:_MANY]


def library_beside(launcher: str, sonames: list[str]) -> str:
    """The first of `sonames` in the lib folders of the launcher's own prefix, else 'auto'.

    A launcher in /usr uses the system's library, which the stager finds by what the launcher
    tells its processes.
    """
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(launcher)))
    if prefix != "/usr":
        for folder in ("lib", "lib64"):
            for soname in sonames:
                path = os.path.join(prefix, folder, soname)
                if os.path.exists(path):
                    return path
    return "auto"


def count(text: str | None) -> int | None:
    """A number of tasks or nodes as launchers accept it ('4', '2-4', '1k'): the largest meant."""
    match = re.fullmatch(r"(?:\d+-)?(\d+)([kKmM]?)", text or "")
    if not match:
        return None
    return int(match.group(1)) * {"": 1, "k": 1024, "m": 1024**2}[match.group(2).lower()]


def numbers_of(text: str) -> list[str]:
    """Each number of `0,2-3`."""
    found: list[str] = []
    for part in re.findall(r"\d+(?:-\d+)?", text):
        first, _, last = part.partition("-")
        found += [str(number) for number in range(int(first), int(last or first) + 1)]
    return found
