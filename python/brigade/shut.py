"""Which folder keeps a user from a path: "Permission denied" does not say, and what looks for a
file there takes it for absent."""

from __future__ import annotations

import os
import pwd
from pathlib import Path


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether there is anything. Raises PermissionError where a folder is shut, which Path.exists
    calls absent from Python 3.14 on."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def shut_folder(path: str | os.PathLike[str]) -> Path | None:
    """The first folder on the way to `path`, past links, that this user may not enter."""
    for folder in reversed(Path(os.path.realpath(path)).parents):
        if not folder.is_dir():
            return None
        if not os.access(folder, os.X_OK):
            return folder
    return None


def advice(path: str | os.PathLike[str] | None) -> str | None:
    """What to do about it; None if each folder may be entered."""
    folder = None if path is None else shut_folder(path)
    if folder is None:
        return None
    uid = folder.stat().st_uid
    if uid == os.geteuid():
        return f"the folder {folder} is shut; it is yours: chmod u+x"
    try:
        owner = pwd.getpwuid(uid).pw_name
    except KeyError:
        owner = f"user {uid}"
    return f"you may not enter the folder {folder}; its owner, {owner}, can allow it: chmod o+x"
