"""Lengths of time as people write them: 0.5ms, 80us, 2s, 1.5, 24h, 30d, 5y."""

from __future__ import annotations

from typing import Any

import click

from brigade.cli.number import above_zero
from brigade.errors import UsageError

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_UNITS |= {"d": 86400.0, "y": 365.25 * 86400.0}
_LONGEST = 1e15  #: seconds, 30 million years: products of a few are still numbers


def duration(text: str) -> float:
    """Seconds of a length of time, which without a unit are seconds. Else UsageError."""
    word = text.strip().lower()
    unit = max((u for u in _UNITS if word.endswith(u)), key=len, default="")
    try:
        seconds = float(word.removesuffix(unit)) * _UNITS.get(unit, 1.0)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST:
        raise UsageError(f"{text!r} is not a length of time", hint="write 80us, 2s, 1.5, 24h or 5y")
    return seconds


class Duration(click.ParamType):  # type: ignore[type-arg]  # not generic in older click
    """An option's value that is a length of time, above 0 if `positive`; seconds afterwards."""

    name = "time"

    def __init__(self, positive: bool = False) -> None:
        self.positive = positive

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds = value if isinstance(value, float) else duration(str(value))
        if self.positive:
            above_zero(seconds, param)
        return seconds
