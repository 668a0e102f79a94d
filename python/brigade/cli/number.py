"""Numbers of the command line: each is one that can be reckoned with."""

from __future__ import annotations

import math
from typing import Any

import click

from brigade.errors import UsageError

LARGEST = 1e9  #: as seconds 30 years, which a process can still wait; nothing counted is more


class Number(click.FloatRange):
    """An option's value that is a number in a range, as click's, and never `nan`, which no range
    refuses, or one without an end."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no number to reckon with.", param, ctx)
        if abs(number) > LARGEST:
            self.fail(f"{value!r} is more than {LARGEST:,.0f}.", param, ctx)
        return number


def above_zero(value: float, param: click.Parameter | None) -> None:
    """Raises UsageError of an option whose value is 0, by the option's name."""
    if value == 0:
        raise UsageError(f"{param.opts[0] if param else 'a value'} must be above 0")
