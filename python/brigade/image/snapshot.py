"""What the file system says while an image is built: one process, each thing asked once.

A directory whose names matter as a whole is read with one `scandir`, and its names are
asked for their metadata while it is still open (network file systems then answer most of
them from what the listing brought). Everything else is one `lstat` a path. All answers
are kept: the image shows one moment, and a file system that charges for each question is
asked as few as possible.

What must stay true: nothing is asked twice; an answer that is an error is an answer too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Union

Answer = Union[os.stat_result, int]  # metadata, or the errno


class Snapshot:
    """Metadata of paths as first seen. `requests` counts the calls that were made."""

    def __init__(self) -> None:
        self._lstat: dict[str, Answer] = {}
        self._names: dict[str, dict[str, os.stat_result] | int] = {}
        self._bare: dict[str, frozenset[str] | None] = {}
        self._links: dict[str, str] = {}
        self._capabilities: dict[str, bool] = {}
        self.requests = 0

    def lstat(self, path: str) -> Answer:
        """Metadata of a canonical path, its last component not followed; or an errno."""
        answer = self._lstat.get(path)
        if answer is None:
            self.requests += 1
            try:
                answer = os.lstat(path)
            except OSError as error:
                answer = error.errno or 5
            self._lstat[path] = answer
        return answer

    def names(self, folder: str) -> dict[str, os.stat_result] | int:
        """All names in a directory with their metadata, or the errno of reading it."""
        known = self._names.get(folder)
        if known is None:
            known = self._names[folder] = _list(folder)
            self.requests += 1
            if not isinstance(known, int):
                self.requests += len(known)
                prefix = folder.rstrip("/") + "/"
                for name, metadata in known.items():
                    self._lstat.setdefault(prefix + name, metadata)
        return known

    def bare_names(self, folder: str) -> frozenset[str] | None:
        """All names in a directory without their metadata, or None if it cannot be read."""
        known = self._names.get(folder)
        if known is None and folder not in self._bare:
            self.requests += 1
            try:
                self._bare[folder] = frozenset(os.listdir(folder))
            except OSError:
                self._bare[folder] = None
        if isinstance(known, dict):
            return frozenset(known)
        return self._bare.get(folder)

    def listed(self, folder: str) -> bool:
        """True if the directory was read as a whole."""
        return isinstance(self._names.get(folder), dict)

    def lookup(self, folder: str, name: str, whole: bool) -> Answer:
        """Metadata of one name; with `whole`, by reading the directory it is in."""
        if whole:
            names = self.names(folder)
            if not isinstance(names, int):
                return names.get(name, 2)
        return self.lstat(f"{folder.rstrip('/')}/{name}")

    def readlink(self, path: str) -> str:
        """Target of a symbolic link; "" if it can no longer be read."""
        target = self._links.get(path)
        if target is None:
            self.requests += 1
            try:
                target = os.readlink(path)
            except OSError:
                target = ""
            self._links[path] = target
        return target

    def has_capabilities(self, path: str) -> bool:
        """Whether a file gives capabilities to who executes it; no, where files cannot have any."""
        known = self._capabilities.get(path)
        if known is None:
            self.requests += 1
            try:
                known = bool(os.getxattr(path, "security.capability", follow_symlinks=False))
            except OSError:
                known = False
            self._capabilities[path] = known
        return known

    def read_ahead(self, folders: Iterable[str], jobs: int) -> None:
        """Read many directories, a few at a time."""
        wanted = [folder for folder in folders if folder not in self._names]
        with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
            for folder, names in zip(wanted, pool.map(_list, wanted)):
                self._names[folder] = names
                self.requests += 1
                if not isinstance(names, int):
                    self.requests += len(names)
                    for name, metadata in names.items():
                        self._lstat.setdefault(f"{folder.rstrip('/')}/{name}", metadata)


def _list(folder: str) -> dict[str, os.stat_result] | int:
    found: dict[str, os.stat_result] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    found[entry.name] = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # removed since its name was read
    except OSError as error:
        return error.errno or 5
    return found


def is_dir(answer: Answer) -> bool:
    return not isinstance(answer, int) and stat.S_ISDIR(answer.st_mode)


def is_file(answer: Answer) -> bool:
    return not isinstance(answer, int) and stat.S_ISREG(answer.st_mode)


def is_link(answer: Answer) -> bool:
    return not isinstance(answer, int) and stat.S_ISLNK(answer.st_mode)
