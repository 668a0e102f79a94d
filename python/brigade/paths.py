"""Where Brigade's own native parts and its caches are."""

from __future__ import annotations

import os
from pathlib import Path

from brigade.errors import BrigadeError

_PACKAGE = Path(__file__).resolve().parent


def native_dir() -> Path:
    """The folder of libraries and helper programs: the wheel's `_native`, or a build tree.

    `BRIGADE_NATIVE` names it explicitly; otherwise the installed folder, then
    `build/native` of the working tree that this module lies in.
    """
    chosen = os.environ.get("BRIGADE_NATIVE")
    installed = [_PACKAGE / "_native", _PACKAGE.parents[1] / "build" / "native"]
    candidates = [Path(chosen)] if chosen else installed
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise BrigadeError(
        f"Brigade's native parts are not in {candidates[0]}",
        hint="install with `pip install .`, or build with `make build`",
    )


def native(name: str) -> Path:
    """The path of one native part, for instance ``libbrigade.so`` or ``brigade-stage``."""
    path = native_dir() / name
    if not path.exists():
        raise BrigadeError(f"{path} is missing", hint="build with `make build`")
    return path


def cache_dir() -> Path:
    """Where images are kept: `BRIGADE_CACHE`, or `brigade` in `XDG_CACHE_HOME` or ~/.cache; an
    absolute path. Raises BrigadeError if the user has no home."""
    chosen = os.environ.get("BRIGADE_CACHE")
    if chosen:
        return Path(os.path.abspath(chosen))
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if base.startswith("~"):
        raise BrigadeError(
            "there is no home folder to keep an image in",
            hint="BRIGADE_CACHE names a folder for images",
        )
    return Path(os.path.abspath(base)) / "brigade"
