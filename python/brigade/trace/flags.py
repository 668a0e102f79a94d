"""Words of strace for flags, as the kernel's numbers."""

from __future__ import annotations

import os
import re

AT_SYMLINK_NOFOLLOW = 0x100  # of newfstatat and statx
_OPEN = {name: getattr(os, name) for name in dir(os) if name.startswith("O_")}
_ACCESS = {"F_OK": os.F_OK, "R_OK": os.R_OK, "W_OK": os.W_OK, "X_OK": os.X_OK}
_AT = {
    "AT_SYMLINK_NOFOLLOW": AT_SYMLINK_NOFOLLOW,
    "AT_NO_AUTOMOUNT": 0x800,
    "AT_EMPTY_PATH": 0x1000,
    "AT_STATX_FORCE_SYNC": 0x2000,
    "AT_STATX_DONT_SYNC": 0x4000,
}
_HOW = re.compile(r"flags=([^,}]*)")
_COMMENT = re.compile(r"/\*.*?\*/")  # as after a number for which strace has no name


def open_flags(word: str) -> int:
    """Of "O_RDONLY|O_CLOEXEC", or of openat2's struct; unknown words count nothing."""
    how = _HOW.search(word)
    return _sum(how[1] if how else word, _OPEN)


def access_mode(word: str) -> int:
    """Of "R_OK|X_OK"."""
    return _sum(word, _ACCESS)


def at_flags(word: str) -> int:
    """Of "AT_SYMLINK_NOFOLLOW|AT_EMPTY_PATH"."""
    return _sum(word, _AT)


def _sum(word: str, names: dict[str, int]) -> int:
    total = 0
    for part in _COMMENT.sub("", word).split("|"):
        name = part.strip()
        if name[:1].isdigit():
            total |= int(name, 8 if name.startswith("0") and name[1:].isdigit() else 0)
        else:
            total |= names.get(name, 0)
    return total
