"""The image that is being built, as the import tables need to see it.

Implements `brigade.imports.table.Tree` over the entries that were decided on and the
snapshot they came from: nothing is said about a path that the image will keep silent on.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Callable

from brigade.image.layout import DIR, FILE
from brigade.image.plan import Entry
from brigade.image.snapshot import Snapshot
from brigade.image.walk import Reached


class EntryTree:
    """`entries`: those of the image; `resolve`: walks a path over the same snapshot."""

    def __init__(
        self,
        entries: Iterable[Entry],
        resolve: Callable[[str], Reached],
        snapshot: Snapshot,
    ) -> None:
        self._entries = {entry.path: entry for entry in entries}
        self._resolve = resolve
        self._snapshot = snapshot

    def _entry(self, path: str) -> Entry | None:
        """What `path` leads to, if it exists and the image has it."""
        end = self._resolve(path)
        return self._entries.get(end.path) if end.err == 0 else None

    def canonical(self, path: str) -> str | None:
        entry = self._entry(path)
        return entry.path if entry is not None else None

    def is_dir(self, path: str) -> bool | None:
        entry = self._entry(path)
        if entry is None or entry.kind not in (FILE, DIR):
            return None
        return entry.kind == DIR

    def names(self, folder: str) -> Collection[str] | None:
        entry = self._entry(folder)
        if entry is None or entry.kind != DIR:
            return None
        if entry.listed:
            names = self._snapshot.names(entry.path)
            return None if isinstance(names, int) else names.keys()
        return self._snapshot.bare_names(entry.path)

    def listed(self, folder: str) -> bool:
        entry = self._entry(folder)
        return entry is not None and entry.listed

    def stat(self, path: str) -> tuple[int, int]:
        entry = self._entry(path)
        if entry is None or entry.stat is None:
            raise FileNotFoundError(path)
        return entry.stat.st_mtime_ns, entry.stat.st_size

    def has_content(self, path: str) -> bool:
        entry = self._entry(path)
        return entry is not None and entry.content

    def read(self, path: str) -> bytes:
        entry = self._entry(path)
        source = entry.source or entry.path if entry is not None else path
        with open(os.fspath(source), "rb") as stream:
            return stream.read()
