"""The file system itself as a tree to make import tables of (`brigade.imports.table.Tree`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any


class DiskTree:
    """Everything under `roots` is in the image.

    `listed` names the folders below which every folder is LISTED; `content` says, by path,
    whether a file's bytes are in the image.
    """

    def __init__(
        self, roots: Iterable[str], listed: Iterable[str] = (), content: Any = lambda path: True
    ) -> None:
        self._roots = [os.path.realpath(root) for root in roots]
        self._listed = [os.path.realpath(root) for root in listed]
        self._content = content

    @staticmethod
    def _below(path: str, roots: Iterable[str]) -> bool:
        return any(path == root or path.startswith(root + "/") for root in roots)

    def canonical(self, path: str) -> str | None:
        try:
            real = os.path.realpath(path)
            os.stat(real)
        except OSError:
            return None
        return real if self._below(real, self._roots) else None

    def is_dir(self, path: str) -> bool | None:
        real = self.canonical(path)
        if real is None:
            return None
        mode = os.stat(real).st_mode
        return True if stat.S_ISDIR(mode) else False if stat.S_ISREG(mode) else None

    def names(self, folder: str) -> Collection[str] | None:
        real = self.canonical(folder)
        return frozenset(os.listdir(real)) if real is not None else None

    def listed(self, folder: str) -> bool:
        real = self.canonical(folder)
        return real is not None and self._below(real, self._listed)

    def stat(self, path: str) -> tuple[int, int]:
        st = os.stat(path)
        return st.st_mtime_ns, st.st_size

    def has_content(self, path: str) -> bool:
        real = self.canonical(path)
        return real is not None and self._content(real)

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()
