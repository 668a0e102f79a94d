"""Resolve paths component by component, as the kernel does, and remember every step.

The index is keyed by canonical paths, so a path that a program used must leave an entry
for each directory and each symbolic link on its way, and for the place where it ended:
what is there, or the first component that is not. `..` is taken physically, a link's
target is walked like any path, and forty links are the limit.

What must stay true: `Reached.path` is canonical; for a path that exists it equals
`os.path.realpath` (with `follow`), however the links are tangled.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Callable

from brigade.image.snapshot import Snapshot, is_dir, is_link

MAX_LINKS = 40


@dataclass(frozen=True)
class Reached:
    """Where a path ended. err 0: `path` exists. Otherwise `path` is the first component that
    could not be passed: absent (ENOENT), not a directory (ENOTDIR), a loop (ELOOP), ..."""

    path: str
    err: int


class Walker:
    """Resolves over one snapshot. `whole(folder)` says whether a directory shall be read as a
    whole; `step(path)` is called for each existing component that a path passed through."""

    def __init__(
        self,
        snapshot: Snapshot,
        whole: Callable[[str], bool],
        step: Callable[[str], None],
    ) -> None:
        self._snapshot = snapshot
        self._whole = whole
        self._step = step
        self._folders: dict[str, Reached] = {}

    def resolve(self, path: str, follow: bool = True) -> Reached:
        """Walk an absolute path; with `follow`, through a symbolic link at its end."""
        folder, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            return self._walk("", path, True)
        start = self._folders.get(folder)
        if start is None:
            start = self._walk("", folder, True) if folder else Reached("", 0)
            self._folders[folder] = start
        return start if start.err else self._walk(start.path, name, follow)

    def _walk(self, start: str, path: str, follow: bool) -> Reached:
        here = "" if start == "/" else start
        links = 0
        todo = _components(path)
        while todo:
            name = todo.pop()
            if here and not is_dir(self._snapshot.lstat(here)):
                return Reached(here, errno.ENOTDIR)
            if name == ".":
                continue
            if name == "..":
                here = here.rpartition("/")[0]
                continue
            there = f"{here}/{name}"
            answer = self._snapshot.lookup(here or "/", name, self._whole(here or "/"))
            if isinstance(answer, int):
                return Reached(there, answer)
            self._step(there)
            if is_link(answer) and (todo or follow):
                links += 1
                if links > MAX_LINKS:
                    return Reached(there, errno.ELOOP)
                target = self._snapshot.readlink(there)
                if target.startswith("/"):
                    here = ""
                todo.extend(_components(target))
                continue
            here = there
        return Reached(here or "/", 0)


def _components(path: str) -> list[str]:
    """The components of a path, last one first. A slash at the end asks for a directory, as a
    "." there does."""
    names = [name for name in path.split("/") if name]
    return ([*names, "."] if path.endswith("/") and names else names)[::-1]
