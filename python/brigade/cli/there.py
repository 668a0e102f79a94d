"""Paths on the command line that must be there."""

from __future__ import annotations

import os
from typing import Any

import click


class There(click.Path):
    """A path that is there. What lies in a folder that may not be entered is not called absent."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(exists=True, **settings)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            os.stat(value)
        except PermissionError:
            from brigade import shut

            why = shut.advice(value) or "permission denied"
            self.fail(f"{os.fsdecode(value)!r} cannot be looked at: {why}", param, ctx)
        except (OSError, ValueError):
            pass
        return super().convert(value, param, ctx)
