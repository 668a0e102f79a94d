"""Which directories belong to installed software, so that all their names may be answered.

A complete listing lets the image say "no such name" for names that the trial never asked
for. That is safe only where nothing but an installer writes. Such places are
- anything inside a `site-packages` or `dist-packages`;
- the standard folders of a prefix: a virtual environment (`pyvenv.cfg`), a conda
  environment (`conda-meta`), or any folder with `bin` beside `lib`. The prefix itself is
  not one: people put their own files next to an environment's `bin`;
- a library folder (`lib`, `lib64`, `NAME.libs`, or below) from which ld.so loaded something.

What must stay true: the working directory and the script's folder never qualify, wherever
they are. Neither does a directory that something was written to; the plan sees to that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

from brigade.image.names import PACKAGES
from brigade.image.snapshot import Snapshot, is_dir, is_file

STANDARD = frozenset(
    "bin sbin lib lib32 lib64 libexec include share etc conda-meta ssl plugins Library".split()
)
LIBRARIES = frozenset({"lib", "lib32", "lib64"})


class Software:
    """Says for a canonical directory whether it is installed software. Asks the snapshot for
    the signs of a prefix, once a directory."""

    def __init__(
        self,
        snapshot: Snapshot,
        covers: Callable[[str], bool],
        never: Iterable[str] = (),
        loaded_from: Iterable[str] = (),
    ) -> None:
        self._snapshot = snapshot
        self._covers = covers
        self._never = frozenset(never)
        self._loaded_from = frozenset(loaded_from)
        self._known: dict[str, bool] = {}
        self._prefixes: dict[str, bool] = {}

    def __call__(self, folder: str) -> bool:
        known = self._known.get(folder)
        if known is None:
            known = self._known[folder] = self._decide(folder)
        return known

    def _decide(self, folder: str) -> bool:
        if folder in self._never or not self._covers(folder):
            return False
        parts = folder.split("/")[1:]
        if not PACKAGES.isdisjoint(parts):
            return True
        if folder in self._loaded_from and any(
            part in LIBRARIES or part.endswith(".libs") for part in parts
        ):
            return True
        above = ""
        for part in parts:
            if above and part in STANDARD and self._is_prefix(above):
                return True
            above += "/" + part
        return False

    def _is_prefix(self, folder: str) -> bool:
        known = self._prefixes.get(folder)
        if known is None:
            known = self._prefixes[folder] = self._covers(folder) and self._has_signs(folder)
        return known

    def _has_signs(self, folder: str) -> bool:
        ask = self._snapshot.lstat
        if is_file(ask(folder + "/pyvenv.cfg")) or is_dir(ask(folder + "/conda-meta")):
            return True
        return is_dir(ask(folder + "/bin")) and (
            is_dir(ask(folder + "/lib")) or is_dir(ask(folder + "/lib64"))
        )
