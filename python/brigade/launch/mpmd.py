"""A launcher whose jobs have contexts, parted by ':' (multiple programs, multiple data).

    LAUNCHER [options] program [: [options] program]…

Open MPI's mpirun and MPICH's mpiexec share all of this; they differ in their options.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping

from brigade.launch.base import Launch
from brigade.launch.options import Option, flatten, split_contexts, split_words


class MpmdLaunch(Launch):
    """Contexts of (options, program); the ranks of one job run them side by side."""

    arity: Mapping[str, int]  # how many words follow an option
    kept: Collection[str]  # options that our own steps keep: where to run, how to get there

    def __init__(self, words: list[str], executable: str) -> None:
        super().__init__(words)
        self.launcher = words[0]
        self.executable = executable
        self.contexts: list[tuple[list[Option], list[str]]] = [
            split_words(context, self.arity) for context in split_contexts(words[1:])
        ]

    @property
    def program(self) -> list[str]:
        return self.contexts[0][1]

    def job(self, prefix: list[str]) -> list[str]:
        return self._joined([self.launcher], [flatten(o) for o, _ in self.contexts], prefix)

    def trial(self, ranks: int, prefix: list[str]) -> list[str]:
        share = max(1, min(ranks, self.ranks or ranks) // len(self.contexts))
        options = [["-n", str(share)] for _ in self.contexts]
        return self._joined(self._own_step(), options, prefix)

    @abstractmethod
    def _own_step(self) -> list[str]:
        """The launcher and the options with which each step of Brigade's own begins."""

    def _kept(self) -> list[str]:
        """The words of the options that our own steps keep, those of the first context."""
        return flatten(option for option in self.contexts[0][0] if option.name in self.kept)

    def _joined(self, words: list[str], options: list[list[str]], prefix: list[str]) -> list[str]:
        for at, (_, program) in enumerate(self.contexts):
            words = [*words, *([":"] if at else []), *options[at], *prefix, *program]
        return words
