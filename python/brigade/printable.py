"""Text of anybody's, safe for a terminal; bytes in words people use."""

from __future__ import annotations


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
