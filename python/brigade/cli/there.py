"""Paths on the command line that must be there."""

from __future__ import annotations

import os
import stat
from typing import Any

import click


class There(click.Path):
    """A path that is there. What lies in a folder that may not be entered is not called absent.
    `plain`: no device either, nor a pipe, whose opening waits for somebody who writes."""

    def __init__(self, plain: bool = False, **settings: Any) -> None:
        super().__init__(exists=True, **settings)
        self.plain = plain

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            mode = os.stat(value).st_mode
            if self.plain and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                self.fail(f"{os.fsdecode(value)!r} is no plain file.", param, ctx)
        except PermissionError:
            from brigade import shut

            why = shut.advice(value) or "permission denied"
            self.fail(f"{os.fsdecode(value)!r} cannot be looked at: {why}", param, ctx)
        except (OSError, ValueError):
            pass
        return super().convert(value, param, ctx)
