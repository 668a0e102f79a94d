"""Slurm's srun.

Inside an allocation the trial, the staging and the job are steps of it. Outside, srun would make
an allocation of its own for each of them, perhaps on other nodes; so one allocation is
taken with salloc, from the user's own options, and given back at the end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Set
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from brigade.errors import UsageError
from brigade.launch import here, multiprog, slurm, srun_inputs
from brigade.launch.allocation import allocated
from brigade.launch.base import Launch, count, distinct, numbers_of
from brigade.launch.options import (
    Option,
    flatten,
    join_contexts,
    named_by,
    split_contexts,
    split_getopt,
)
from brigade.launch.srun_options import ALLOCATION, CONTAINERS, ELSEWHERE, OPTIONS, PLACE, SHAPE

_ROOM = 32  # words of a command of --multi-prog that what stands before it may have


class SrunLaunch(Launch):
    """`srun [options] program`, `srun --multi-prog [options] file`, or several components of a
    heterogeneous step (or job): `srun [options] program : [options] program`."""

    kind = "srun"
    searches_last = "word"

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.srun = words[0]
        self.components = [
            split_getopt(part, OPTIONS, lambda: slurm.options_with_value(words[0]))
            for part in split_contexts(words[1:])
        ]
        self.options, self._program = self.components[0]
        self._job: str | None = None  # one that we are not in
        self._name: list[str] = []  # of an allocation that session() took: srun's own would have it
        self._files: TemporaryDirectory[str] | None = None
        self.entries: list[multiprog.Entry] | None = None  # of a --multi-prog file
        named = {option.name for options, _ in self.components for option in options}
        named |= srun_inputs.named(os.environ)
        if "bcast" in named:
            raise UsageError("srun --bcast would copy Brigade's wrapper in the program's place")
        contained = sorted(named & CONTAINERS)
        if contained:
            raise UsageError(
                f"srun --{contained[0]} starts every rank in a container: its files are not "
                "those of the nodes"
            )
        if "multi-prog" in named:
            if len(self.components) > 1:
                raise UsageError("srun takes no --multi-prog with several components (':')")
            self.entries = _read_entries(self._program)

    def _value(self, name: str, component: int = 0) -> str | None:
        options, _ = self.components[component]
        values = [o.values[0] if o.values else "" for o in options if o.name == name]
        return values[-1] if values else None

    @property
    def programs(self) -> list[list[str]]:
        if self.entries is not None:
            return [[*entry.words(), *self._program[1:]] for entry in self.entries]
        return [program for _, program in self.components if program]

    @property
    def folders(self) -> list[str]:
        return named_by(["chdir"], (options for options, _ in self.components))

    @property
    def ranks(self) -> int | None:
        counts = [count(self._value("ntasks", at)) for at in range(len(self.components))]
        if self.entries is not None and counts[0] is None:
            return max(entry.end for entry in self.entries) or None
        if counts == [None]:
            return self._ranks_unsaid()
        known = [number for number in counts if number is not None]
        return sum(known) if len(known) == len(counts) else None

    def _ranks_unsaid(self) -> int | None:
        """Without -n: as many as the job has, unless nodes are asked for; else so many a node."""
        if self._value("nodes") is None and not self.slurm_job:
            inherited = srun_inputs.tasks(os.environ)
            if inherited is not None:
                return inherited
        each, asked = count(self._value("ntasks-per-node")), self._value("nodes")
        if asked is not None and not asked.isdigit():  # a range: Slurm chooses
            return None
        return each * self.nodes if each else None

    def _step(self, options: list[Option]) -> list[str]:
        in_job = ["--jobid", self._job] if self._job else []
        return [*in_job, *flatten(options)]

    def _own_step(
        self, nodes: int, tasks: int, keep: Set[str] = frozenset(), group: str = ""
    ) -> list[str]:
        """Takes no processors away from other steps of the allocation, and waits for none."""
        kept = [o for o in self.options if o.name not in SHAPE or o.name in keep]
        shape = ["--nodes", str(nodes), "--ntasks", str(tasks), "--overcommit", "--overlap"]
        shape += srun_inputs.own_streams(os.environ)
        return [*self._step(kept), *shape, *([f"--het-group={group}"] if group else [])]

    def job(self, prefix: list[str]) -> list[str]:
        if self.entries is not None and prefix:
            file = self._file(self._program[0], multiprog.written(self.entries, prefix))
            return [self.srun, *self._name, *self._step(self.options), file, *self._program[1:]]
        parts = [
            [*self._step(options), *(prefix if program else []), *program]
            for options, program in self.components
        ]
        return [self.srun, *self._name, *join_contexts(parts)]

    def trial(self, ranks: int, prefix: list[str]) -> list[str]:
        ranks = min(ranks, self.ranks or ranks)
        each = distinct(self.programs)
        group = next(iter(self._groups()), "")
        if len(each) == 1:
            step = self._own_step(1, ranks, group=group)
            return [self.srun, *step, "--input", "none", *prefix, *each[0]]
        share = max(1, ranks // len(each))
        entries = multiprog.one_after_another(each, share)
        file = self._file("trial", multiprog.written(entries, prefix))
        step = self._own_step(1, share * len(each), group=group)
        return [self.srun, *step, "--input", "none", "--multi-prog", file]

    def _file(self, name: str, text: str) -> str:
        """A file for srun, which reads it on this machine; gone with the session."""
        self._files = self._files or TemporaryDirectory(prefix="brigade-")
        path = os.path.join(self._files.name, os.path.basename(name))
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        return path

    def launched_per_node(self, tool: list[str]) -> list[str]:
        return self._per_node(tool, "none")

    def per_node_told(self, tool: list[str]) -> list[str] | None:
        return None if self.is_here else self._per_node(tool, "0")

    @property
    def stays_here(self) -> bool:
        if self._job or len(self.components) > 1 or not here.slurm_is_here(os.environ):
            return False
        named = {option.name for option in self.options}
        if named & ELSEWHERE or not all(map(OPTIONS.knows, named)):  # a plug-in may do anything
            return False
        return self._value("nodes") in (None, "1")

    def _per_node(self, tool: list[str], hears: str) -> list[str]:
        alone = ["--ntasks-per-node=1", "--kill-on-bad-exit=1", "--input", hears]
        sizes = {group: self._nodes_of_group(group) for group in self._groups()}
        if sizes:
            steps = [self._own_step(size, size, group=group) for group, size in sizes.items()]
            parts = [[*step, "--mpi=none", *alone, *tool] for step in steps]
            return [self.srun, *join_contexts(parts)]
        everywhere = self.everywhere or len(self.components) > 1
        nodes = self._allocated() if everywhere else self.nodes
        place = frozenset[str]() if everywhere else PLACE
        return [self.srun, *self._own_step(nodes, nodes, place), *alone, *tool]

    def _groups(self) -> list[str]:
        """Components of a heterogeneous job that the step is on; none of an ordinary job."""
        if not os.environ.get("SLURM_HET_SIZE"):
            return []
        groups: list[str] = []
        for at in range(len(self.components)):
            groups += numbers_of(self._value("het-group", at) or str(at))
        return groups

    def _nodes_of_group(self, group: str) -> int:
        told = os.environ.get(f"SLURM_JOB_NUM_NODES_HET_GROUP_{group}", "")
        return int(told) if told.isdigit() else 1

    @property
    def spans_jobs(self) -> bool:
        return len(self._groups()) > 1

    @property
    def slurm_job(self) -> str | None:
        return self._job or self._value("jobid")

    def join_slurm_job(self, number: str) -> None:
        if os.environ.get("SLURM_JOB_ID") != number:
            self._job = number

    @property
    def nodes(self) -> int:
        """Number of nodes of the job: as asked for, else those named, else the allocation's."""
        if len(self.components) > 1 or self.spans_jobs:
            return sum(map(self._nodes_of_group, self._groups())) or self._allocated()
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
        try:
            with self._allocation():
                yield
        finally:
            if self._files:
                self._files.cleanup()
                self._files = None

    @contextmanager
    def _allocation(self) -> Iterator[None]:
        """One of our own, unless there is one."""
        inside = os.environ.get("SLURM_JOB_ID") or self._value("jobid")
        if inside or self._value("no-allocate") is not None:
            yield
            return
        if self._value("job-name") is None and self._program:
            if not os.environ.get("SLURM_JOB_NAME"):
                self._name = ["--job-name", os.path.basename(self._program[0])]
        parts = [
            [
                *srun_inputs.for_allocation(os.environ, {o.name for o in options}),
                *flatten(option for option in options if option.name in ALLOCATION),
            ]
            for options, _ in self.components
        ]
        try:
            with allocated([*self._name, *join_contexts(parts)]):
                yield
        finally:
            self._name = []

    def launched_mpi_library(self, recorded: str | None) -> str:
        """srun serves every MPI: which one, the program says. Without any, each node reads the
        image for itself."""
        if self._value("mpi") == "none" or self.spans_jobs:
            return "none"
        return recorded or "auto"


def _read_entries(words: list[str]) -> list[multiprog.Entry]:
    if not words:
        raise UsageError("srun --multi-prog: no file given")
    try:
        with open(words[0], encoding="utf-8", errors="surrogateescape") as file:
            entries = multiprog.read(file.read())
        longest = max(len(entry.words()) for entry in entries) + len(words[1:])
    except (OSError, UsageError) as error:
        why = error.strerror if isinstance(error, OSError) else error.message
        raise UsageError(f"srun --multi-prog {words[0]}: {why}") from error
    if longest + _ROOM > multiprog.MOST_WORDS:
        raise UsageError(f"srun --multi-prog {words[0]}: a command of {longest} words is too long")
    return entries
