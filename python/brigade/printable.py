"""Text of anybody's, safe for a terminal, and what is one; bytes in words people use."""

from __future__ import annotations

from typing import Any


def printable(text: str) -> str:
    """What would move the cursor, or cannot be shown, is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def size(number: float) -> str:
    """84.1 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    raise AssertionError("unreachable")


def is_terminal(stream: Any) -> bool:
    """Whether a program's sys.stdout or sys.stderr is one. It may have none, one that is closed, or
    an object of its own that can only write."""
    try:
        return bool(stream.isatty())
    except (AttributeError, OSError, TypeError, ValueError):
        return False
