"""What the name of a path says of it: whether it is byte code, or holds installed packages.

Apart from those who ask, because the check before every job asks, and must not wait for the
modules that build an image.
"""

from __future__ import annotations

import re

PACKAGES = frozenset({"site-packages", "dist-packages"})
_BYTECODE = re.compile(r"/__pycache__(/[^/]*\.pyc(\.\d+)?)?$")


def is_bytecode(path: str) -> bool:
    """True for a `__pycache__` folder and for Python's byte code in it, finished or not; not for
    what others keep there (Numba its machine code)."""
    return _BYTECODE.search(path) is not None
