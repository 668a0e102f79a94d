"""Are the sources of an image still what they were? Asked by one process before a job.

`freshplan` decides what to look at; here it is looked at. Directories are visited in the
order of a walk through the tree, each held open while what lies below is checked, and
names are looked up relative to it: a client that keeps the metadata a listing brought for
as long as the directory is open (MooseFS does) then answers without asking its server.

A file has changed if its size, modification time, mode or change time differs. The change
time also moves when another hard link to the file is made (conda and uv do that), so it
does not count when the number of links moved too. A directory of software whose own time
has changed is read: its names count, and the files in it. New byte code is no change. In a
directory that may be entered but not listed each path is asked for.

What the trial did not use itself, in a folder of the user's own that it listed, may change: the
image serves, but does not answer for it. So it is with folders that are gone: a program's output.
A link is another matter: paths through it lead elsewhere.

What must stay true: only metadata is read; an error while asking is a change, never
silence.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from brigade.image.freshplan import (
    DEFAULT_BUDGET,
    FolderCheck,
    Known,
    plan_checks,
)
from brigade.image.layout import ABSENT, DIR, FILE, OTHER, SYMLINK, kind_of
from brigade.image.names import is_bytecode
from brigade.imports.claims import claims_of

if TYPE_CHECKING:
    from brigade.image.reader import Image

_PERMISSIONS = 0o7777
_MOST_LEFT = 1000  # paths
_MOST_SILENT = 10_000  # entries: all are told to each node, in one word of 128 KiB at most


@dataclass(frozen=True)
class Freshness:
    """`changed`: (path, what happened, to be read after the path). `moved`: directories of the
    user's own that got or lost names: the image serves, but may not list them, nor say what is
    imported from there. `left`: paths in such directories that it may not answer for, nor for what
    lies below. `requests`: what the check cost the file system, by freshplan's count. `silent`: the
    entries of an image, by number, that it shall not answer for, as follows from moved and left."""

    changed: list[tuple[str, str]] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    requests: int = 0
    looked_at: int = 0
    silent: list[int] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.changed


def check(
    image: Image,
    level: str = "fast",
    *,
    budget: int = DEFAULT_BUDGET,
    turn: int | None = None,
) -> Freshness:
    """Compare the sources of `image` with the file system. `turn` chooses the share of files
    that a `fast` check cannot always reach; None lets the clock choose."""
    if level == "none":
        return Freshness()
    if turn is None:
        turn = time.time_ns() // 1_000_000
    claims = claims_of(image.python_table)
    found = run(plan_checks(known_entries(image), level, budget, turn, claims))
    silent = silent_entries(image, found)
    if len(silent) <= _MOST_SILENT:
        return replace(found, silent=silent)
    changed = [(path, "has changed, with very much in it") for path in found.left]
    return replace(found, changed=[*found.changed, *changed], left=[])


def run(checks: Iterable[FolderCheck]) -> Freshness:
    """Carry out checks that are sorted by folder."""
    with _Run(list(checks)) as one:
        return one.result()


def silent_entries(image: Image, found: Freshness) -> list[int]:
    """The numbers of the entries for which the image shall not answer in this job."""
    moved = [image.lookup(path).entry for path in found.moved]
    numbers = [entry.number for entry in moved if entry]
    left = set(found.left)
    for entry in image.entries() if left else ():  # parents before children
        if entry.path in left or entry.path.rpartition("/")[0] in left:
            left.add(entry.path)
            numbers.append(entry.number)
    return numbers


def known_entries(image: Image) -> Iterator[Known]:
    """What `image` says about the file system (not about Brigade's own parts)."""
    for entry in image.entries():
        if not entry.covered and entry.kind != SYMLINK:
            continue
        used = entry.order is not None or entry.content is not None
        yield Known(
            entry.path, entry.kind, entry.listed, used, entry.size, entry.mtime_ns,
            entry.ctime_ns, entry.mode, entry.nlink, snapshot=entry.snapshot,
        )  # fmt: skip


class _OpenFolders:
    """The directories above the present one that were read, held open."""

    def __init__(self) -> None:
        self._stack: list[tuple[str, int]] = []

    def leave(self, path: str) -> None:
        """Close what is not above `path`."""
        while self._stack and not path.startswith(self._stack[-1][0].rstrip("/") + "/"):
            os.close(self._stack.pop()[1])

    def relative(self, path: str) -> tuple[str, int | None]:
        """`path` as seen from the nearest open directory above it."""
        self.leave(path)
        if not self._stack:
            return path, None
        above, fd = self._stack[-1]
        return path[len(above.rstrip("/")) + 1 :], fd

    def open(self, path: str) -> int:
        name, above = self.relative(path)
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=above)
        self._stack.append((path, fd))
        return fd


class _Run:
    """One check being carried out."""

    def __init__(self, checks: list[FolderCheck]) -> None:
        self._checks = checks
        self._folders = _OpenFolders()
        self._changed: dict[str, str] = {}
        self._moved: list[str] = []
        self._left: dict[str, str] = {}
        self._requests = 0
        self._later: list[FolderCheck] = []  # directories that were written to
        # directories that are read anyway, whatever their time says
        self._read = {check.folder for check in checks if check.read}

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        self._folders.leave("")

    def result(self) -> Freshness:
        for check in self._checks:
            self._requests += check.cost
            if check.read:
                self._read_folder(check)
            else:
                self._ask(check)
        while self._later:
            self._read_folder(self._later.pop())
        if len(self._left) > _MOST_LEFT:
            self._changed.update(self._left)
        looked_at = sum(len(check.items) for check in self._checks)
        changed = sorted(self._changed.items())
        left = sorted(self._left.keys() - self._changed.keys())
        return Freshness(changed, sorted(self._moved), left, self._requests, looked_at)

    def _note(self, path: str, what: str) -> None:
        self._changed.setdefault(path, what)

    def _note_known(self, known: Known, what: str, now: int | None, own: bool) -> None:
        """`now`: the kind of what is there instead; `own`: in a directory of the user's own."""
        is_link = SYMLINK in (known.kind, now)
        if own and not is_link and (known.kind == DIR or not known.used):
            self._left[known.path] = what
        else:
            self._note(known.path, what)

    def _read_folder(self, check: FolderCheck) -> None:
        wanted = {known.name: known for known in check.items}
        names: set[str] = set()
        try:
            with os.scandir(self._folders.open(check.folder)) as entries:
                for entry in entries:
                    known = wanted.get(entry.name)
                    if known is not None:
                        try:
                            metadata = entry.stat(follow_symlinks=False)
                        except FileNotFoundError:  # it goes just now, and no other name does
                            continue
                        self._compare(known, metadata, check.own)
                    names.add(entry.name)
        except PermissionError as error:
            if check.names is None:  # it may be entered, though not listed
                self._requests += len(check.items)
                self._ask(check)
                self._moved += [check.folder] if check.claims else []
            else:
                self._note(check.folder, _trouble(error))
            return
        except OSError as error:
            if not (check.own and _is_gone(error)):  # that is for the directory above to tell
                self._note(check.folder, _trouble(error))
                return
        for name in wanted.keys() - names:
            if wanted[name].kind != ABSENT:
                self._note_known(wanted[name], "is gone", None, check.own)
        if check.claims and any(map(check.claims.are_contradicted_by, names - wanted.keys())):
            self._moved.append(check.folder)
        if check.names is not None:
            self._compare_names(check.folder, check.names, names)

    def _ask(self, check: FolderCheck) -> None:
        for known in check.items:
            name, above = self._folders.relative(known.path)
            try:
                metadata = os.stat(name, dir_fd=above, follow_symlinks=False)
            except (FileNotFoundError, NotADirectoryError):
                if known.kind != ABSENT:
                    self._note_known(known, "is gone", None, check.own)
            except OSError as error:
                self._note(known.path, _trouble(error))
            else:
                self._compare(known, metadata, check.own)

    def _compare(self, known: Known, now: os.stat_result, own: bool) -> None:
        if known.kind == ABSENT:
            if not is_bytecode(known.path):
                self._note(known.path, "is new")
            return
        what = _difference(known, now)
        if what is not None:
            self._note_known(known, what, kind_of(now.st_mode), own)
        elif known.kind == DIR and now.st_mtime_ns != known.mtime_ns:
            if known.snapshot:
                self._moved.append(known.path)
            if known.inside is not None and known.path not in self._read:
                self._reread(known.inside)

    def _reread(self, check: FolderCheck) -> None:
        """A directory whose names are known was written to: what is in it now?"""
        self._read.add(check.folder)
        self._requests += check.cost
        self._later.append(check)

    def _compare_names(self, folder: str, known: frozenset[str], names: Iterable[str]) -> None:
        present = set(names)
        for name, what in [(n, "is new") for n in present - known] + [
            (n, "is gone") for n in known - present
        ]:
            path = f"{folder}/{name}"
            if not is_bytecode(path):
                self._note(path, what)


def _difference(known: Known, now: os.stat_result) -> str | None:
    """What happened to a path, or None if nothing did."""
    kind = kind_of(now.st_mode)
    if kind != known.kind:
        return {FILE: "is a file now", DIR: "is a folder now", SYMLINK: "is a link now"}.get(
            kind, "is something else now"
        )
    if kind in (DIR, OTHER):  # a pipe's times move as it is used; the image answers for none
        return None
    if now.st_size != known.size or now.st_mtime_ns != known.mtime_ns:
        return "changed"
    if kind == FILE and (now.st_mode ^ known.mode) & _PERMISSIONS:
        return "has other permissions"
    if now.st_ctime_ns != known.ctime_ns and now.st_nlink == known.nlink:
        return "changed (its old time was put back)"
    return None


def _is_gone(error: OSError) -> bool:
    return isinstance(error, (FileNotFoundError, NotADirectoryError))


def _trouble(error: OSError) -> str:
    return "is gone" if _is_gone(error) else f"cannot be read ({error.strerror})"
