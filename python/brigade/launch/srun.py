"""Slurm's srun.

Inside an allocation the trial, the staging and the job are steps of it. Outside, srun would make
an allocation of its own for each of them, perhaps on other nodes; so one allocation is
taken with salloc, from the user's own options, and given back at the end.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from brigade import interrupt
from brigade.errors import LauncherError, UsageError
from brigade.launch import slurm
from brigade.launch.base import Launch, count
from brigade.launch.options import Option, flatten, split_getopt

# From srun(1) and salloc(1) of Slurm 20.11 to 24.05.
_SHORT = {
    "A": "account", "b": "begin", "c": "cpus-per-task", "d": "dependency", "D": "chdir",
    "e": "error", "G": "gpus", "i": "input", "J": "job-name", "L": "licenses", "M": "clusters",
    "m": "distribution", "n": "ntasks", "N": "nodes", "o": "output", "p": "partition", "q": "qos",
    "r": "relative", "S": "core-spec", "T": "threads", "t": "time", "W": "wait", "C": "constraint",
    "w": "nodelist", "x": "exclude", "F": "nodefile", "B": "extra-node-info",
}  # fmt: skip
_SHORT_FLAGS = {
    "E": "preserve-env", "H": "hold", "I": "immediate", "k": "no-kill", "K": "kill-on-bad-exit",
    "l": "label", "O": "overcommit", "Q": "quiet", "s": "oversubscribe", "u": "unbuffered",
    "v": "verbose", "X": "disable-status", "Z": "no-allocate", "h": "help", "V": "version",
}  # fmt: skip
_LONG_WITH_VALUE = frozenset(_SHORT.values()) | {
    "accel-bind", "acctg-freq", "bb", "bbf", "bcast", "bcast-exclude", "comment", "container",
    "cluster-constraint", "cores-per-socket", "cpu-bind", "cpu-freq", "cpus-per-gpu", "deadline",
    "delay-boot", "environment", "epilog", "export", "export-file", "gid", "gpu-bind", "gpu-freq",
    "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "gres-flags", "het-group", "hint",
    "jobid", "mail-type", "mail-user", "mcs-label", "mem", "mem-bind", "mem-per-cpu", "mem-per-gpu",
    "mincpus", "mpi", "msg-timeout", "network", "ntasks-per-core", "ntasks-per-gpu",
    "ntasks-per-node", "ntasks-per-socket", "ntasks-per-tres", "open-mode", "power", "prefer",
    "priority", "profile", "prolog", "reservation", "signal", "slurmd-debug", "sockets-per-node",
    "switches", "task-epilog", "task-prolog", "thread-spec", "threads-per-core", "time-min", "tmp",
    "tres-bind", "tres-per-task", "tree-width", "uid", "wckey",
}  # fmt: skip
# What salloc understands too: the options that shape an allocation.
_ALLOCATION = frozenset({
    "account", "acctg-freq", "bb", "bbf", "begin", "chdir", "cluster-constraint", "clusters",
    "comment", "constraint", "container", "contiguous", "core-spec", "cores-per-socket", "cpu-freq",
    "cpus-per-gpu", "cpus-per-task", "deadline", "delay-boot", "dependency", "distribution",
    "exclude", "exclusive", "gpu-bind", "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket",
    "gpus-per-task", "gres", "gres-flags", "hint", "hold", "immediate", "job-name", "licenses",
    "mcs-label", "mem", "mem-per-cpu", "mem-per-gpu", "mincpus", "network", "nice", "nodefile",
    "nodelist", "nodes", "ntasks", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node",
    "ntasks-per-socket", "overcommit", "oversubscribe", "partition", "power", "priority", "profile",
    "qos", "reboot", "reservation", "signal", "sockets-per-node", "spread-job", "switches",
    "thread-spec", "threads-per-core", "time", "time-min", "tmp", "use-min-nodes", "wckey",
})  # fmt: skip
# Left out of our own steps: shape and streams of the user's job, and what acts on its tasks.
_SHAPE = frozenset({
    "ntasks", "nodes", "nodelist", "exclude", "nodefile", "relative", "distribution", "cpu-bind",
    "mem-bind", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node", "ntasks-per-socket",
    "ntasks-per-tres", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gpu-bind",
    "gres", "tres-per-task", "extra-node-info", "cpus-per-task", "cores-per-socket",
    "sockets-per-node", "threads-per-core", "hint", "accel-bind", "output", "error", "input",
    "label", "pty", "multi-prog", "bcast", "send-libs", "prolog", "epilog", "task-prolog",
    "task-epilog", "wait", "unbuffered", "exact", "exclusive", "spread-job", "verbose",
    "quit-on-interrupt", "contiguous", "use-min-nodes", "mincpus", "signal", "immediate",
    "dependency", "begin", "hold",
})  # fmt: skip
# Where the job's nodes are: kept by a step that has to be on the same ones.
_PLACE = frozenset({"nodelist", "exclude", "nodefile", "relative"})
_GRANTED = re.compile(r"Granted job allocation (\d+)")


class SrunLaunch(Launch):
    """`srun [options] program`."""

    kind = "srun"

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.srun = words[0]
        self.options, self._program = split_getopt(
            words[1:], _LONG_WITH_VALUE, frozenset(_SHORT), {**_SHORT, **_SHORT_FLAGS}
        )
        if ":" in self._program:
            raise UsageError("heterogeneous srun jobs (':') cannot be staged")
        if self._value("multi-prog") is not None:
            raise UsageError("srun --multi-prog jobs cannot be staged")
        self._job: str | None = None  # the allocation that session() took

    def _value(self, name: str) -> str | None:
        values = [o.values[0] if o.values else "" for o in self.options if o.name == name]
        return values[-1] if values else None

    @property
    def program(self) -> list[str]:
        return self._program

    @property
    def ranks(self) -> int | None:
        return count(self._value("ntasks"))

    def _step(self, options: list[Option]) -> list[str]:
        in_job = ["--jobid", self._job] if self._job else []
        return [self.srun, *in_job, *flatten(options)]

    def _own_step(self, nodes: int, tasks: int, keep: frozenset[str] = frozenset()) -> list[str]:
        """Takes no processors away from other steps of the allocation, and waits for none."""
        kept = [o for o in self.options if o.name not in _SHAPE or o.name in keep]
        shape = ["--nodes", str(nodes), "--ntasks", str(tasks), "--overcommit", "--overlap"]
        return [*self._step(kept), *shape]

    def job(self, prefix: list[str]) -> list[str]:
        return [*self._step(self.options), *prefix, *self._program]

    def trial(self, ranks: int, prefix: list[str]) -> list[str]:
        ranks = min(ranks, self.ranks or ranks)
        return [*self._own_step(1, ranks), "--input", "none", *prefix, *self._program]

    def per_node(self, tool: list[str]) -> list[str]:
        return self._per_node(tool, "none")

    def per_node_told(self, tool: list[str]) -> list[str]:
        return self._per_node(tool, "0")

    def _per_node(self, tool: list[str], hears: str) -> list[str]:
        nodes = self._allocated() if self.everywhere else self.nodes
        place = frozenset[str]() if self.everywhere else _PLACE
        alone = ["--ntasks-per-node=1", "--kill-on-bad-exit=1", "--input", hears]
        return [*self._own_step(nodes, nodes, place), *alone, *tool]

    @property
    def slurm_job(self) -> str | None:
        return self._job or self._value("jobid")

    def join_slurm_job(self, number: str) -> None:
        if os.environ.get("SLURM_JOB_ID") != number:
            self._job = number

    @property
    def nodes(self) -> int:
        """Number of nodes of the job: as asked for, else those named, else the allocation's."""
        asked = self._value("nodes")
        if asked and asked.isdigit():
            return int(asked)
        named = self._value("nodelist")
        if named and "/" not in named:  # no file of names
            return slurm.count_nodes(named) or 1
        excluded = self._value("exclude")
        return max(1, self._allocated() - (slurm.count_nodes(excluded) if excluded else 0))

    def _allocated(self) -> int:
        """Number of nodes of the allocation; 1 if that cannot be found out."""
        if self.slurm_job:
            return slurm.nodes_of(self.slurm_job) or 1
        return int(os.environ.get("SLURM_JOB_NUM_NODES") or os.environ.get("SLURM_NNODES") or 1)

    @contextmanager
    def session(self) -> Iterator[None]:
        inside = os.environ.get("SLURM_JOB_ID") or self._value("jobid")
        if inside or self._value("no-allocate") is not None:
            yield
            return
        kept = [option for option in self.options if option.name in _ALLOCATION]
        command = ["salloc", "--no-shell", *flatten(kept)]
        try:
            said, status = _salloc(command)
        except FileNotFoundError as error:
            raise LauncherError("salloc is not in PATH", hint="run inside an allocation") from error
        granted = _GRANTED.search(said)
        if status or not granted:
            interrupt.check()
            from brigade.failure.launchers import refused

            known = refused(said)
            raise LauncherError(
                f"salloc gave no allocation: {said.strip()}",
                hint=known.mend[0] if known else "`" + " ".join(command) + "` shows it by itself",
            )
        self._job = granted.group(1)
        try:
            yield
        finally:
            job, self._job = self._job, None
            slurm.ask(["scancel", "--quiet", job])

    def mpi_library(self, recorded: str | None) -> str:
        """srun serves every MPI: which one, the program says. Without any, each node reads the
        image for itself."""
        return "none" if self._value("mpi") == "none" else recorded or "auto"


def _salloc(command: list[str]) -> tuple[str, int]:
    """What salloc said, and its status; however long the queue. Told to end it withdraws."""
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    try:
        with interrupt.promptly():
            said, _ = child.communicate()
    except BaseException:
        child.terminate()
        said, _ = child.communicate()
        granted = _GRANTED.search(said)
        if granted:
            slurm.ask(["scancel", "--quiet", granted.group(1)])
        raise
    return said, child.returncode
