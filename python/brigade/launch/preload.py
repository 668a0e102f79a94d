"""A library of Brigade's, put before a program."""

from __future__ import annotations

import os

from brigade.errors import LauncherError
from brigade.paths import native


def preloaded(name: str) -> str:
    """What LD_PRELOAD says with this native part before all that it says already."""
    library = str(native(name).absolute())
    if any(c.isspace() or c == ":" for c in library):
        raise LauncherError(
            f"{library} cannot be preloaded: LD_PRELOAD ends a name at a blank or a colon",
            hint="install Brigade in a folder whose path has neither",
        )
    given = os.environ.get("LD_PRELOAD")
    return f"{library}:{given}" if given else library
