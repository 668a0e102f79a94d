"""Text of anybody's, safe for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """What would move the cursor, or cannot be shown, is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
