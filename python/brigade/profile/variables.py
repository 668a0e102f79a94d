"""The folders that PATH and LD_LIBRARY_PATH name, as the process that has them means it."""

from __future__ import annotations

import os
import re
from functools import lru_cache

_SEPARATORS = {"PATH": ":", "LD_LIBRARY_PATH": "[:;]"}


@lru_cache(maxsize=512)
def folders(variable: str, value: str, cwd: str) -> dict[str, bool]:
    """Plain absolute folder -> whether only a relative or empty entry names it, from `cwd` on. A
    variable that is empty names none."""
    found: dict[str, bool] = {}
    for word in re.split(_SEPARATORS[variable], value) if value else ():
        relative = not word.startswith("/")
        if relative and not cwd:
            continue
        folder = os.path.normpath(os.path.join(cwd, word))
        found[folder] = relative and found.get(folder, True)
    return found
