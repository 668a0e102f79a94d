"""What import tables claim of folders whose names the image does not know: for the freshness check.

A table of the user's own folder says of each name that the trial searched what is found there, or
that nothing is. The files that it found are entries of the image, and checked as such. That
nothing else is found stands nowhere but in the table: a name that is new in the folder may show
that it is not so any more.

What must stay true: nothing here touches a file system.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from dataclasses import dataclass, field

from brigade.imports.table import (
    ABSENT,
    EXTENSION_MODULE,
    KIND_BITS,
    NAMESPACE,
    SOURCE_MODULE,
    SOURCELESS_MODULE,
    UNKNOWN,
)

_KEY_FIELDS = 4  # of Interpreter.key, before its suffixes


@dataclass(frozen=True)
class _Table:
    names: Mapping[str, int]
    extensions: list[str]

    def is_contradicted_by(self, file_name: str) -> bool:
        stem, dot, rest = file_name.partition(".")
        known = self.names.get(stem, UNKNOWN)
        order = ["", *self.extensions, ".py", ".pyc"]  # in which FileFinder looks
        if dot + rest not in order:
            return False
        kind, place = known & ((1 << KIND_BITS) - 1), order.index(dot + rest)
        if kind in (ABSENT, NAMESPACE):  # a namespace is what is found last of all
            return True
        if kind == EXTENSION_MODULE:
            return place < 1 + (known >> KIND_BITS >> 1)
        if kind in (SOURCE_MODULE, SOURCELESS_MODULE):
            return place < order.index(".py" if kind == SOURCE_MODULE else ".pyc")
        return False  # a package is found first, and of what is unknown the rank asks


@dataclass
class Claims:
    """What the tables of one folder say."""

    tables: list[_Table] = field(default_factory=list)

    def are_contradicted_by(self, file_name: str) -> bool:
        """Whether a file or folder of this name, new there, may be found instead of what they
        say."""
        return any(table.is_contradicted_by(file_name) for table in self.tables)


def claims_of(section: bytes) -> dict[str, Claims]:
    """By folder (canonical), from the Python section of an index."""
    found: dict[str, Claims] = {}
    for key, blobs in (marshal.loads(section) if section else {}).items():
        extensions = key.split("|")[_KEY_FIELDS:]
        for blob in blobs.values():
            folder, listed, _, names = marshal.loads(blob)
            if not listed:
                found.setdefault(folder, Claims()).tables.append(_Table(names, extensions))
    return found
