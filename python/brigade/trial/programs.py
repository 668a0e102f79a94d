"""Which of a rank's processes is its program: wrappers that stand in front of it are passed over.

    srun ./select_gpu numactl -N 0 python train.py     select_gpu, numactl, then python: the program
    srun --ntasks-per-node=1 torchrun train.py         torchrun, and below it one python a GPU

A wrapper is a shell, or a command that becomes another one (`FRONTS`), or starts it in a project's
environment (`STARTERS`, and Python programs: `RUNNERS`). What a shell starts counts if it does not
become another program itself: of several, what imports or loads most. So it does where a Python
becomes another program. A launcher is a Python program that starts several others of one command
line. What a wrapper without records started (a static one behind a shell) has a parent that nobody
knows; it counts as what the wrapper in front of that started. Pure: no file is looked at.

What must stay true: a program that no wrapper stands in front of is the rank's first process.
"""

from __future__ import annotations

import os
from itertools import groupby

from brigade.trial.invocation import LAUNCHERS, SHELLS, STARTERS, invocation
from brigade.trial.record import Process, Trial

#: Commands that end by executing another one, and are no measuring instruments: those would no
#: longer see the program, if it were forked by another process.
FRONTS = frozenset(
    "Rscript chrt env hwloc-bind ionice linux32 linux64 nice nohup numactl prlimit setarch setsid"
    " stdbuf taskset timeout".split()
)
#: Python programs that start another one in a project's environment.
RUNNERS = frozenset("conda mamba".split())
_WRAPPERS = SHELLS | FRONTS | STARTERS
MODULE = "module:"


def programs(trial: Trial) -> dict[int, list[Process]]:
    """The program of each rank, or those that its launcher started; 0 without a rank."""
    by_rank: dict[int, list[Process]] = {}
    for process in trial.processes:  # in the order in which they started
        by_rank.setdefault(process.rank or 0, []).append(process)
    hosts = [processes[0].host for processes in by_rank.values()]
    return {
        rank: _Rank(processes, hosts.count(processes[0].host) == 1).programs()
        for rank, processes in by_rank.items()
    }


def is_interpreter(process: Process) -> bool:
    """Whether a process is a Python whose imports were recorded; a program of another name that has
    Python inside has a `main` of its own."""
    return os.path.basename(process.exe).startswith("python") and any(
        record.kind == "interpreter" for record in process.records
    )


def called(process: Process) -> str:
    """What a program is known by when it is started again: a Python's script as an absolute path,
    or `module:NAME`; "" of what comes by -c or standard input. The file of any other program."""
    if not is_interpreter(process):
        return process.exe
    script = invocation(process.argv, process.cwd).script if process.argv else []
    if script[:1] == ["-m"]:
        return MODULE + script[1]
    return script[0] if len(script) == 1 else ""


class _Rank:
    """The processes of one rank, in the order of their start. `alone`: the only rank of a node."""

    def __init__(self, processes: list[Process], alone: bool) -> None:
        self.first = processes[0]
        self.alone = alone
        self.images: dict[tuple[str, int], list[Process]] = {}  # of each process
        self.children: dict[tuple[str, int], list[Process]] = {}  # their first images
        self.orphans: list[Process] = []  # of whom the parent has no records
        for process in processes:
            images = self.images.setdefault((process.host, process.pid), [])
            if not images:
                self.children.setdefault((process.host, process.parent), []).append(process)
                if process is not self.first and (process.host, process.parent) not in self.images:
                    self.orphans.append(process)
            images.append(process)

    def programs(self) -> list[Process]:
        first = self.first
        return self._below(first) or [first]

    def _below(self, process: Process) -> list[Process]:
        """What a process is, or became, or started, that is no wrapper; nothing if it is one."""
        name = os.path.basename(process.exe)
        following = self._following(process)
        if name in _WRAPPERS:
            if following:
                return self._below(following)
            later = [one for one in self.orphans if one.start_ns > process.start_ns]
            return self._largest(self._started(process) + later)
        if following and is_interpreter(process):  # poetry run, a script that chooses a Python
            became = self._below(following)
            return max(became if all(map(called, became)) else [], [process], key=_weight)
        if _is_called(process, RUNNERS):
            return self._largest(self._started(process)) or [process]
        return self._launched(process) or [process]

    def _largest(self, started: list[Process]) -> list[Process]:
        return max(map(self._below, started), key=_weight, default=[])

    def _launched(self, process: Process) -> list[Process]:
        """What a launcher in Python started: of one command line, more than once if the launcher is
        none that is known."""
        known = _is_called(process, LAUNCHERS)
        if not is_interpreter(process) or not (known or self.alone):
            return []
        below = [program for child in self._started(process) for program in self._below(child)]
        below = [program for program in below if is_interpreter(program) and called(program)]
        families = [
            list(family)
            for _, family in groupby(sorted(below, key=_words), key=_words)
        ]  # fmt: skip
        return max((f for f in families if known or len(f) > 1), key=_weight, default=[])

    def _following(self, process: Process) -> Process | None:
        """The image that a process executed in its own place."""
        images = self.images[process.host, process.pid]
        later = [p for p in images if p.start_ns > process.start_ns]
        return later[0] if later else None

    def _started(self, process: Process) -> list[Process]:
        """Its children: those of this image, not of what it became."""
        following = self._following(process)
        return [
            child
            for child in self.children.get((process.host, process.pid), [])
            if child.start_ns >= process.start_ns
            and not (following and child.start_ns >= following.start_ns)
        ]


def _is_called(process: Process, names: frozenset[str]) -> bool:
    """Whether a Python program is one of those, by its script or module."""
    name = os.path.basename(called(process).removeprefix(MODULE))
    return is_interpreter(process) and name in names


def _words(process: Process) -> list[str]:
    return [called(process), *process.argv[1:]]


def _weight(processes: list[Process]) -> tuple[int, int]:
    """Modules that were executed, objects that were loaded, by the first of them."""
    records = processes[0].records if processes else []
    return (
        sum(record.kind == "imported" and record.status > 0 for record in records),
        sum(record.kind == "load" for record in records),
    )
