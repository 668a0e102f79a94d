"""Sizes as people write them: 300, 20k, 500M, 2G."""

from __future__ import annotations

from typing import Any

import click

from brigade.cli.number import above_zero
from brigade.errors import UsageError

_SHIFTS = {"k": 10, "m": 20, "g": 30, "t": 40}
_LARGEST = (1 << 63) - 1  #: what the system has numbers for


def size(text: str | None) -> int | None:
    """Bytes of a size as people write it (units are powers of 1024); None of None."""
    if text is None:
        return None
    bytes_ = number(text)
    if bytes_ > _LARGEST:
        raise UsageError(f"{text!r} is too much", hint="no file and no memory has 8 EiB")
    return bytes_


def number(text: str) -> int:
    """The same, of what may be as large as it likes."""
    digits, shift = text.strip().lower().removesuffix("b").removesuffix("i"), 0
    if digits[-1:] in _SHIFTS:
        digits, shift = digits[:-1], _SHIFTS[digits[-1]]
    if not (digits.isascii() and digits.isdigit()):
        raise UsageError(f"{text!r} is not a size", hint="write it as 300, 20k, 500M or 2G")
    most = len(str(_LARGEST))
    return int(digits if len(digits) <= most else "9" * (most + 1)) << shift


class Size(click.ParamType):  # type: ignore[type-arg]  # not generic in older click
    """An option's value that is a size, above 0 if `positive`; an int afterwards."""

    name = "size"

    def __init__(self, positive: bool = False) -> None:
        self.positive = positive

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        bytes_ = value if isinstance(value, int) else size(value)
        assert bytes_ is not None
        if self.positive:
            above_zero(bytes_, param)
        return bytes_
