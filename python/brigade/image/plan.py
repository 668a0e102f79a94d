"""Decide what an image says: from what a trial did, and what the file system shows now.

Every path that the trial used is walked over one snapshot. What exists becomes an entry,
with each directory and link on its way; where the trial found nothing and nothing is
there, the absence becomes one. Where the two disagree, something changes while programs
run, and the image keeps silent: the path and all below it are left out, and its directory
does not claim to know all its names. The same holds for what the trial itself wrote, and
for what was written while it ran: static programs, and what launchers and containers start
elsewhere, leave no record of what they write.

Byte code that Python cached during the trial is no such change: Python checks each
`.pyc` against its source, and the next run reads what the trial wrote.

What must stay true: an entry is canonical and its parent is an entry, up to a covered
root; an ABSENT entry was looked up, found missing, and still is.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Callable

from brigade.image.layout import ABSENT, DIR, FILE, OTHER, SYMLINK
from brigade.image.names import is_bytecode
from brigade.image.snapshot import Answer, Snapshot, is_dir, is_file, is_link
from brigade.image.walk import Reached, Walker
from brigade.trial.mounts import KERNEL_FOLDERS, Coverage, is_under

MAX_OWN_NAMES = 1000  # of a directory of the user's own, for its listing to be kept
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR})
_CLOCKS_NS = 2_000_000_000  # that a file server may be ahead of the node
UNSEEN = "changed while the trial ran, by whom is not known"


@dataclass
class Entry:
    """One path of the image. `source`: the file that its bytes come from, if not `path`."""

    path: str
    kind: int
    stat: os.stat_result | None = None
    target: str = ""
    err: int = 0
    listed: bool = False
    snapshot: bool = False
    content: bool = False
    own_rights: bool = False
    order: int | None = None
    source: str = ""


@dataclass(frozen=True)
class LeftOut:
    path: str
    why: str


def is_kernel(path: str) -> bool:
    return any(is_under(path, folder) for folder in KERNEL_FOLDERS)


class Plan:
    """Collects uses of paths; `finish` gives the entries, sorted by path. `software`: whether all
    names of a directory may be answered. `trial_ns`: when the trial began and ended, since 1970;
    None if there was none."""

    def __init__(
        self,
        snapshot: Snapshot,
        coverage: Coverage,
        software: Callable[[str], bool],
        trial_ns: tuple[int, int] | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.coverage = coverage
        self.software = software
        self.trial_ns = trial_ns
        self.left_out: list[LeftOut] = []
        self._walker = Walker(snapshot, software, self._step)
        self._entries: dict[str, Entry] = {}
        self._unsure: dict[str, str] = {}  # canonical path -> why the image keeps silent
        self._restless: set[str] = set()  # directories whose names change
        self._listed_own: set[str] = set()  # the user's own directories that the trial listed
        self._links_outside: set[str] = set()
        self._order = 0
        for root in coverage.roots:
            self._walker.resolve(root)

    def _step(self, path: str) -> None:
        if not self.coverage.covers(path):
            if is_link(self.snapshot.lstat(path)):
                self._links_outside.add(path)
        else:
            entry = self._entries.get(path)
            if entry is None:
                entry = self._entries[path] = self._entry(path, self.snapshot.lstat(path))
            if entry.order is None:
                entry.order = self._order
                self._order += 1

    def _entry(self, path: str, answer: Answer) -> Entry:
        if isinstance(answer, int):
            return Entry(path, ABSENT, err=answer)
        if is_dir(answer):
            return Entry(path, DIR, answer)
        if is_file(answer):
            return Entry(path, FILE, answer)
        if is_link(answer):
            return Entry(path, SYMLINK, answer, target=self.snapshot.readlink(path))
        return Entry(path, OTHER, answer)

    def resolve(self, path: str, follow: bool = True) -> Reached:
        """Where `path` leads; leaves entries for its way."""
        return self._walker.resolve(path, follow)

    def look_up(
        self,
        path: str,
        err: int,
        follow: bool = True,
        content: bool = False,
        executed: bool = False,
    ) -> None:
        """The trial looked `path` up and got `err`; `content`: and went on to read it;
        `executed`: as a program."""
        if not path.startswith("/") or is_kernel(path):
            return
        end = self.resolve(path, follow)
        if not self.coverage.covers(end.path):
            return
        if err == 0 and end.err == 0:
            if content:
                entry = self._entries.get(end.path)
                if entry is not None and entry.kind == FILE:
                    entry.content = True
                    if executed:
                        entry.own_rights = self.snapshot.has_capabilities(entry.path)
        elif err in _GONE and end.err == errno.ENOENT:
            self._absent(end.path)
        elif err == 0 and end.err in _GONE:
            self._doubt(end.path, "was there during the trial and is gone")
        elif err in _GONE and end.err == 0 and not is_bytecode(end.path):
            # a call that wants a directory says ENOTDIR of a file that is there
            if err == errno.ENOENT or is_dir(self.snapshot.lstat(end.path)):
                self._doubt(end.path, "appeared since the trial looked")

    def _absent(self, path: str) -> None:
        if path not in self._entries:
            self._entries[path] = Entry(path, ABSENT, err=errno.ENOENT, order=self._order)
            self._order += 1

    def passed_over(self, path: str) -> None:
        """ld.so looked for a library at `path`, and went on: one that comes there would be found
        instead of the one that was. In installed software the names of the folder tell."""
        if not path.startswith("/") or is_kernel(path):
            return
        end = self.resolve(path)
        folder = end.path.rpartition("/")[0] or "/"
        if end.err == errno.ENOENT and self.coverage.covers(end.path) and not self.software(folder):
            self._absent(end.path)

    def wrote(self, path: str) -> None:
        """The trial made, changed, renamed or removed `path`."""
        if not path.startswith("/") or is_kernel(path) or is_bytecode(path):
            return
        for follow in (False, True):
            end = self.resolve(path, follow)
            if self.coverage.covers(end.path):
                self._doubt(end.path, "written during the trial")

    def wrote_below(self, folder: str) -> None:
        """Names in a canonical directory may change at any time."""
        self._restless.add(folder)

    def _doubt(self, path: str, why: str) -> None:
        self._unsure.setdefault(path, why)
        self._restless.add(path.rpartition("/")[0] or "/")

    def list_folder(self, path: str, err: int) -> None:
        """The trial listed a directory."""
        self.look_up(path, err)
        if err == 0 and not is_kernel(path):
            end = self.resolve(path)
            if end.err == 0 and self.software(end.path):
                self.snapshot.names(end.path)
            elif end.err == 0:
                self._listed_own.add(end.path)

    def add_beside(self, path: str) -> None:
        """Take a file in with its bytes if it exists; its absence says nothing."""
        end = self.resolve(path)
        entry = self._entries.get(end.path)
        if end.err == 0 and entry is not None and entry.kind == FILE:
            entry.content = True

    def entries(self) -> Iterable[Entry]:
        """Entries so far, in no order."""
        return self._entries.values()

    def content_paths(self) -> list[str]:
        return [entry.path for entry in self._entries.values() if entry.content]

    def finish(self, max_file: int | None, max_data_file: int | None) -> list[Entry]:
        """The entries of the image, sorted by path."""
        self._doubt_what_is_new()
        self._add_listings()
        kept = [entry for entry in self._entries.values() if not self._silent(entry.path)]
        kept += self._stepping_stones()
        for entry in kept:
            if entry.content:
                self._weigh(entry, max_file, max_data_file)
        self.left_out += [LeftOut(path, why) for path, why in sorted(self._unsure.items())]
        return sorted(kept, key=lambda entry: entry.path)

    def _doubt_what_is_new(self) -> None:
        """What changed while the trial ran, by the file server's clock, may be what a program that
        is not seen writes: the next one writes it again. (Folders change with their names.) A clock
        of the server's that is behind is not allowed for: what the user has saved a moment before
        the start would be left out, too."""
        if self.trial_ns is None:
            return
        began, ended = self.trial_ns
        for entry in self._entries.values():
            changes = entry.kind in (FILE, SYMLINK) and not is_bytecode(entry.path)
            if changes and entry.stat and began <= entry.stat.st_ctime_ns <= ended + _CLOCKS_NS:
                self._doubt(entry.path, UNSEEN)

    def _add_listings(self) -> None:
        for entry in list(self._entries.values()):
            if entry.kind != DIR or entry.path in self._restless or self._silent(entry.path):
                continue
            if self.software(entry.path) and self.snapshot.listed(entry.path):
                entry.listed = True
            elif entry.path in self._listed_own and self._is_small(entry.path):
                entry.snapshot = True
            else:
                continue
            names = self.snapshot.names(entry.path)
            assert not isinstance(names, int)
            for name, metadata in names.items():
                path = f"{entry.path.rstrip('/')}/{name}"
                if path not in self._entries:
                    self._entries[path] = self._entry(path, metadata)

    def _is_small(self, folder: str) -> bool:
        """Whether a directory of the user's own has few enough names to keep them."""
        names = self.snapshot.bare_names(folder)
        if names is None or len(names) > MAX_OWN_NAMES:
            return False
        return not isinstance(self.snapshot.names(folder), int)

    def _stepping_stones(self) -> list[Entry]:
        """Links outside that lead under a covered root (a `/home/u` that is a link to a shared
        disk), and the directories they lie in."""
        stones: dict[str, Entry] = {}
        for link in sorted(self._links_outside):
            end = self.resolve(link)
            if end.err or not self.coverage.covers(end.path):
                continue
            path = link
            while path and path not in stones:
                stones[path] = self._entry(path, self.snapshot.lstat(path))
                path = path.rpartition("/")[0]
        return list(stones.values())

    def _silent(self, path: str) -> bool:
        if not self._unsure:
            return False
        while path and path not in self._unsure:
            path = path.rpartition("/")[0]
        return bool(path)

    def _weigh(self, entry: Entry, max_file: int | None, max_data_file: int | None) -> None:
        assert entry.stat is not None
        size = entry.stat.st_size
        too_big = max_file is not None and size > max_file
        if not too_big and max_data_file is not None and size > max_data_file:
            too_big = not _is_program(entry.path)
        if too_big:
            entry.content = False
            self.left_out.append(LeftOut(entry.path, f"large data ({size} bytes)"))


def _is_program(path: str) -> bool:
    """True for what is loaded or imported: ELF files and Python source or byte code."""
    if path.endswith((".py", ".pyc")):
        return True
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == b"\x7fELF"
    except OSError:
        return False
