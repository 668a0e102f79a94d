"""A command, its environment and its installed files, told that they live elsewhere now. Pure.

A folder is replaced where it stands as a whole path or the beginning of one: after nothing, or one
of `:=,;'" ` and before a slash, one of those, or the end. `/opt/app2` is not below `/opt/app`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_BEFORE = r"(?:(?<=[:=,;'\"\s!])|(?<=-[ILR])|^)"
_AFTER = r"(?=[/:=,;'\"\s]|$)"


def moved(text: str, folders: Mapping[str, str]) -> str:
    """`text` with each folder (old -> new) replaced; longer ones first."""
    for old in sorted(folders, key=len, reverse=True):
        pattern = _BEFORE + re.escape(old) + _AFTER
        text = re.sub(pattern, lambda _, new=folders[old]: new, text)  # type: ignore[misc]
    return text


def moved_bytes(content: bytes, folders: Mapping[str, str]) -> bytes:
    """The same for the content of a file."""
    return os.fsencode(moved(os.fsdecode(content), folders))


def moved_environment(env: Mapping[str, str], folders: Mapping[str, str]) -> dict[str, str]:
    """Only the variables that change, as they shall be."""
    found = {}
    for name, value in env.items():
        if name in ("PWD", "OLDPWD", "_"):
            continue
        text = moved(value, folders)
        if text != value:
            found[name] = text
    return found


def mentions(text: str, folder: str) -> bool:
    """Whether the text names the folder or something below it."""
    return re.search(_BEFORE + re.escape(folder) + _AFTER, text) is not None
