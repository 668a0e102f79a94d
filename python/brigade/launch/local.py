"""No launcher: N processes of the program on this machine, started by Brigade itself."""

from __future__ import annotations

import sys

from brigade.launch.base import Launch


class LocalLaunch(Launch):
    """`brigade run -n 8 -- python app.py`."""

    kind = "local"
    keeps_pwd = True

    def __init__(self, words: list[str], ranks: int) -> None:
        super().__init__(words)
        self._ranks = ranks

    @property
    def programs(self) -> list[list[str]]:
        return [self.words]

    @property
    def ranks(self) -> int:
        return self._ranks

    def _spawn(self, ranks: int, command: list[str]) -> list[str]:
        if ranks == 1:
            return command
        return [sys.executable, "-S", _spawner(), str(ranks), *command]

    def job(self, prefix: list[str]) -> list[str]:
        return self._spawn(self._ranks, [*prefix, *self.words])

    def trial(self, ranks: int, prefix: list[str]) -> list[str]:
        return self._spawn(min(ranks, self._ranks), [*prefix, *self.words])

    @property
    def is_here(self) -> bool:
        return True

    @property
    def stays_here(self) -> bool:
        return True

    def launched_per_node(self, tool: list[str]) -> list[str]:
        return tool


def _spawner() -> str:
    from brigade.launch import spawn

    return spawn.__file__
