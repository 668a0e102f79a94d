"""A launcher whose jobs have contexts, parted by ':' (multiple programs, multiple data).

    LAUNCHER [options] program [: [options] program]…
    LAUNCHER [options] --app FILE       # MPICH: -configfile; a context is a line of it

Open MPI's mpirun and MPICH's mpiexec share all of this; they differ in their options.
"""

from __future__ import annotations

import os
import shutil
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence

from brigade.errors import UsageError
from brigade.launch import here
from brigade.launch.base import Launch, distinct
from brigade.launch.options import (
    Option,
    flatten,
    join_contexts,
    named_by,
    split_contexts,
    split_words,
)


class MpmdLaunch(Launch):
    """Contexts of (options, program); the ranks of one job run them side by side."""

    arity: Mapping[str, int]  # how many words follow an option
    pairs: Collection[str] = ()  # options of two words, or of one that is NAME=VALUE
    kept: Collection[str]  # options that our own steps keep: where to run, how to get there
    files: Collection[str]  # options that name a file of contexts
    hosts: Collection[str]  # options that name the hosts of one context

    def __init__(self, words: list[str], executable: str) -> None:
        super().__init__(words)
        self.launcher = words[0]
        self.executable = executable
        self.contexts: list[tuple[list[Option], list[str]]] = [
            self._split(context) for context in split_contexts(words[1:])
        ]
        options, program = self.contexts[0]
        if not program and len(self.contexts) == 1:
            self.contexts = self._of_file(options)
        named = {option.name for options, _ in self.contexts for option in options}
        bare = [program[0] for program in self.programs if "/" not in program[0]]
        if "path" in named and bare:
            raise UsageError(
                f"with its option path, {os.path.basename(self.launcher)} looks for {bare[0]} in "
                "other folders than its ranks do",
                hint="name the program by its path",
            )

    @property
    def folders(self) -> list[str]:
        return named_by(["wd", "wdir", "gwdir"], (options for options, _ in self.contexts))

    def _of_file(self, options: list[Option]) -> list[tuple[list[Option], list[str]]]:
        """The contexts of the file that one of the options names; the others stand before the
        first. Its lines are split at spaces; nothing quotes."""
        named = [option.values[0] for option in options if option.name in self.files]
        if not named:
            return self.contexts
        try:
            with open(named[-1], encoding="utf-8", errors="surrogateescape") as file:
                lines = [line.split() for line in file]
        except OSError as error:
            raise UsageError(f"{named[-1]}: {error.strerror}") from error
        found = [
            self._split(words)
            for line in lines
            if line and not line[0].startswith("#")
            for words in split_contexts(line)
            if words
        ]
        if not found:
            raise UsageError(f"{named[-1]}: no line names a program")
        without = {*self.files, *self.ignored_beside_file()}
        own = [option for option in options if option.name not in without]
        return [([*own, *found[0][0]], found[0][1]), *found[1:]]

    def _split(self, words: list[str]) -> tuple[list[Option], list[str]]:
        return split_words(words, self.arity, self.pairs, _seems_program)

    def ignored_beside_file(self) -> Collection[str]:
        """Options that the launcher forgets where a file has the contexts."""
        return ()

    @property
    def programs(self) -> list[list[str]]:
        return [program for _, program in self.contexts if program]

    @property
    def stays_here(self) -> bool:
        options = [option for options, _ in self.contexts for option in options]
        return (
            here.is_program(self.executable)
            and here.no_scheduler_places(os.environ)
            and not self.is_told_of_others(options)
        )

    @abstractmethod
    def is_told_of_others(self, options: Sequence[Option]) -> bool:
        """Whether options of any context, variables or files may tell the launcher of other
        machines than this."""

    def job(self, prefix: list[str]) -> list[str]:
        if not prefix:
            return self.words
        parts = [[*flatten(options), *prefix, *program] for options, program in self.contexts]
        return [self.launcher, *join_contexts(parts)]

    def trial(self, ranks: int, prefix: list[str]) -> list[str]:
        programs = distinct(self.programs)
        share = max(1, min(ranks, self.ranks or ranks) // len(programs))
        parts = [["-n", str(share), *prefix, *program] for program in programs]
        return [*self._own_step(), *join_contexts(parts)]

    @abstractmethod
    def _own_step(self) -> list[str]:
        """The launcher and the options with which each step of Brigade's own begins."""

    def _kept(self) -> list[str]:
        """The words of the options that our own steps keep: those of the first context, on the
        hosts of all."""
        options = [option for option in self.contexts[0][0] if option.name in self.kept]
        named = [o for options, _ in self.contexts[1:] for o in options if o.name in self.hosts]
        if not named:
            return flatten(options)
        named = [option for option in options if option.name in self.hosts] + named
        once: dict[str, str] = {}
        for host in (host for option in named for host in option.values[0].split(",")):
            once.setdefault(host.partition(":")[0], host)
        others = [option for option in options if option.name not in self.hosts]
        return [*flatten(others), named[0].tokens[0], ",".join(once.values())]


def _seems_program(word: str) -> bool:
    """Whether a word may be a program: one of this machine, or a path that only the nodes have."""
    return shutil.which(word) is not None or ("/" in word and not os.path.exists(word))
