"""A folder of our own on a file system that the user names, gone again whatever happens."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from brigade.errors import BrigadeError


@contextmanager
def scratch(base: str, what: str, mode: int, hint: str) -> Iterator[Path]:
    """`brigade-<what>-<host>-<pid>` below `base`. Raises BrigadeError, with the hint, if it cannot
    be made."""
    folder = Path(base) / f"brigade-{what}-{socket.gethostname()}-{os.getpid()}"
    try:
        folder.mkdir(mode=mode)
    except OSError as error:
        raise BrigadeError(f"{base}: {error.strerror}", hint=hint) from error
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a tree, folders without write permission and all."""

    def unlock(_call: object, path: str, _why: object) -> None:
        for name in (os.path.dirname(path), path):
            if not os.path.islink(name):
                with suppress(OSError):
                    os.chmod(name, 0o700)
        with suppress(OSError):
            os.unlink(path)

    for _ in range(3):  # what was just ended may still write
        shutil.rmtree(folder, onerror=unlock)
        if not folder.exists():
            return
        time.sleep(0.3)
