"""The numbers of an image's index, as src/image/index.h defines them, and its records as tuples."""

from __future__ import annotations

import stat as _stat
import struct
from typing import NamedTuple

FILE, DIR, SYMLINK, ABSENT, OTHER = 1, 2, 3, 4, 5
KIND_NAMES = {FILE: "file", DIR: "dir", SYMLINK: "symlink", ABSENT: "absent", OTHER: "other"}

HAS_CONTENT, LISTED, COVERED, SNAPSHOT, MOUNT_DEV, OWN_RIGHTS = 1, 2, 4, 8, 16, 32

UNKNOWN, EXISTS, MISSING, OUTSIDE = 0, 1, 2, 3

NONE = 0xFFFFFFFF

OWN_PARTS = "/.brigade"  #: reserved folder of Brigade's own parts; under no covered root

HEADER = struct.Struct("<Q2I2Q6I12Q32x")
ENTRY = struct.Struct("<4I2BH9I5Q3q2I16x")
ANSWER = struct.Struct("<Q6II4x")
STRING = struct.Struct("<2I")
CONTENT = struct.Struct("<4Q")


class Entry(NamedTuple):
    """What an image knows about one path."""

    number: int
    path: str
    kind: int
    flags: int
    err: int  #: errno of an absence
    target: str  #: of a symbolic link, "" for others
    mode: int
    uid: int
    gid: int
    nlink: int
    size: int
    blocks: int
    blksize: int
    dev: int
    ino: int
    rdev: int
    atime_ns: int
    mtime_ns: int
    ctime_ns: int
    order: int | None  #: rank of first use in the trial, None if never used
    content: int | None  #: number of its content, None if the image has none
    parent: int | None
    first_child: int
    n_children: int

    @property
    def kind_name(self) -> str:
        return KIND_NAMES[self.kind]

    @property
    def listed(self) -> bool:
        """All names of this directory are known."""
        return bool(self.flags & LISTED)

    @property
    def snapshot(self) -> bool:
        """All names of this directory were known when the image was made, but may change."""
        return bool(self.flags & SNAPSHOT)

    @property
    def mount_dev(self) -> bool:
        """`dev` is what the host where the image was made called the mount that it lies on."""
        return bool(self.flags & MOUNT_DEV)

    @property
    def own_rights(self) -> bool:
        """It gives rights to whoever executes it, besides by its mode."""
        return bool(self.flags & OWN_RIGHTS)

    @property
    def covered(self) -> bool:
        """Under a covered root: the image answers for it."""
        return bool(self.flags & COVERED)


class Answer(NamedTuple):
    """What ld.so found for a name; `path` is "" if it found nothing."""

    context: int
    requester: str
    name: str
    path: str
    entry: int | None


class Content(NamedTuple):
    """Bytes that one or more files share."""

    hash: str  #: XXH3-128, 32 hex digits
    raw_off: int
    size: int


class Found(NamedTuple):
    """What a look-up says: `status` is UNKNOWN, EXISTS, MISSING or OUTSIDE."""

    status: int
    entry: Entry | None
    err: int  #: of MISSING
    path: str  #: of UNKNOWN and OUTSIDE: where to go on


def kind_of(mode: int) -> int:
    """The kind of a file from its st_mode."""
    if _stat.S_ISREG(mode):
        return FILE
    if _stat.S_ISDIR(mode):
        return DIR
    if _stat.S_ISLNK(mode):
        return SYMLINK
    return OTHER
