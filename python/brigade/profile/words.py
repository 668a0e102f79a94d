"""Numbers as people read them, the same in every report."""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def count(number: float) -> str:
    """12,345; one decimal below ten, if there is one: 2.5."""
    if number < 10 and abs(number - round(number)) > 0.05:
        return f"{number:.1f}"
    return f"{number:,.0f}"


def big(number: float) -> str:
    """Three figures: 5.4 million, 231 thousand; exact below 10,000."""
    if number < 10_000:
        return count(number)
    for unit, word in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if number >= 0.9995 * unit:
            value = number / unit
            digits = 2 if value < 10 and unit > 1e3 else 1 if value < 100 else 0
            text = f"{value:,.{digits}f}"
            return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {word}"
    raise AssertionError("unreachable")


def seconds(number: float) -> str:
    """In the unit that suits: 1.25 s, 340 ms, 12 µs."""
    if number >= 0.9995:
        return f"{number:.2f} s" if number < 100 else f"{number:,.0f} s"
    if number >= 0.0009995:
        return f"{number * 1e3:.0f} ms" if number >= 0.01 else f"{number * 1e3:.1f} ms"
    return f"{number * 1e6:.0f} µs"


def percent(part: float, whole: float) -> str:
    """Whole per cents; never 0% of something nor 100% of less than all."""
    if not whole or not part:
        return "0%"
    share = 100 * part / whole
    if share < 0.95:
        return "under 1%"
    return "99%" if 99 < share < 100 else f"{share:.0f}%"


def many(number: float, one: str, more: str = "") -> str:
    """1 file, 2 files."""
    return f"{count(number)} {one if round(number) == 1 else more or one + 's'}"


def listed(names: Iterable[str], most: int = 3) -> str:
    """a, b, c and 4 more."""
    all_names = list(names)
    rest = len(all_names) - most
    shown = ", ".join(all_names[:most])
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def shell(words: Iterable[str]) -> str:
    return shlex.join(words)


def printable(text: str) -> str:
    """With bytes that are no UTF-8, and what moves a terminal's cursor, written out: \\xff."""
    return "".join(
        f"\\x{ord(one) & 0xFF:02x}"
        if 0xDC80 <= ord(one) <= 0xDCFF or ord(one) < 32 or 127 <= ord(one) < 160
        else one
        if not 0xD800 <= ord(one) <= 0xDFFF
        else "\ufffd"
        for one in text
    )
