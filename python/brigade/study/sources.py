"""What a start-up uses, and must be copied to move it: the prefixes of its program."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from brigade.errors import UsageError
from brigade.trial.mounts import NOT_A_PREFIX, is_under


def prefix_of(program: str) -> str | None:
    """The folder in which a program is installed: a virtual environment, or what has its `bin`.

    Links are not followed: `venv/bin/python` is a link out of the environment it belongs to.
    """
    path = shutil.which(program)
    if path is None:
        return None
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.basename(folder) in ("bin", "sbin", "libexec"):
        folder = os.path.dirname(folder)
    return None if folder in NOT_A_PREFIX else folder


def sources(program: list[str], asked: Iterable[str]) -> list[str]:
    """The folders to copy, none inside another: those asked for, else the program's prefix.

    Raises UsageError if there is none that could be copied.
    """
    chosen = [os.path.abspath(folder) for folder in asked]
    for folder in chosen:
        if not os.path.isdir(folder):
            raise UsageError(f"--copy {folder}: no such folder")
    if not chosen:
        found = prefix_of(program[0])
        if found is None:
            known = shutil.which(program[0])
            raise UsageError(
                f"{program[0]} is the system's own ({known})" if known
                else f"{program[0]} is not in PATH",
                hint="name with --copy what the start-up uses and shall be moved",
            )  # fmt: skip
        chosen = [found]
    return [
        folder
        for folder in sorted(set(chosen))
        if not any(other != folder and is_under(folder, other) for other in chosen)
    ]
