"""Whose a file in the cache is: what images and their records hold is run, and where a group shares
a cache others may put files there. Only one's own and root's count; any other is as if it were
not there."""

from __future__ import annotations

import errno
import os
from typing import BinaryIO


def stranger(file: str | int) -> int | None:
    """The user whom a file (a path, or a descriptor) belongs to; None if that is us or root.
    Raises OSError."""
    owner = os.stat(file).st_uid
    return None if owner in (0, os.geteuid()) else owner


def open_ours(path: str) -> BinaryIO:
    """Open a file to read. Raises OSError, a PermissionError if it belongs to somebody else."""
    stream = open(path, "rb")
    user = stranger(stream.fileno())
    if user is not None:
        stream.close()
        raise PermissionError(errno.EPERM, f"it belongs to user {user}", path)
    return stream
