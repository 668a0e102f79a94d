"""Search paths without the entries in which nothing was found. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable

from brigade.trial.mounts import is_under

_HWCAPS = "glibc-hwcaps"
_ARCHIVES = (".zip", ".egg", ".whl", ".pyz")


def of_libraries(path: str, found: Iterable[str]) -> str:
    """LD_LIBRARY_PATH: entries that have a library that was opened, in hardware's folders too."""
    folders = set()
    for file in found:
        if ".so" in os.path.basename(file):
            folder = os.path.dirname(file)
            folders.add(folder)
            if f"/{_HWCAPS}/" in folder + "/":
                folders.add(folder.partition(f"/{_HWCAPS}")[0])
    return ":".join(one for one in path.split(":") if _plain(one) in folders)


def of_modules(path: str, found: Iterable[str]) -> str:
    """PYTHONPATH: entries below which a file was found, not only the entry itself; of an archive
    the entry is all that is found."""
    files = {file for file in found if not _is_folder(file)}

    def used(entry: str) -> bool:
        archive = entry.endswith(_ARCHIVES)
        return any(is_under(file, entry) and (archive or file != entry) for file in files)

    return ":".join(one for one in path.split(":") if used(_plain(one)))


def _plain(entry: str) -> str:
    """As paths of a trace are: absolute, without a slash at the end."""
    return os.path.abspath(entry).rstrip("/") or "/"


def _is_folder(path: str) -> bool:
    """A folder that was looked at has not given a module by that."""
    return not os.path.splitext(path)[1]
