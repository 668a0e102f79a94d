"""What a profile is written as: a page, JSON, a report in the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from brigade.errors import BrigadeError
from brigade.profile.profile import Profile, save


@dataclass
class Outputs:
    """Files that are wanted; None: not."""

    html: str | None = None
    json: str | None = None

    def check(self) -> None:
        """Raise BrigadeError now if a file could not be written after the run."""
        for path in (self.html, self.json):
            folder = os.path.dirname(os.path.abspath(path)) if path else ""
            if path and (not os.path.isdir(folder) or os.path.isdir(path)):
                raise BrigadeError(
                    f"{path} cannot be written", hint=f"is {folder} a folder that is yours?"
                )

    def write(self, profile: Profile) -> list[str]:
        """Write all that is wanted; returns the files. Raises BrigadeError."""
        wanted: list[tuple[str | None, Callable[[str], object]]] = [
            (self.html, lambda path: _page(profile, path)),
            (self.json, lambda path: save(profile, path)),
        ]
        written = []
        for path, write in wanted:
            if path is None:
                continue
            try:
                write(path)
            except OSError as error:
                raise BrigadeError(f"{path}: {error.strerror}") from error
            written.append(path)
        return written


def _page(profile: Profile, path: str) -> None:
    from brigade.page import html

    html.write(profile, path)


def show(profile: Profile) -> None:
    """The report on standard error."""
    from rich.console import Console

    from brigade.page import terminal

    terminal.show(profile, Console(file=sys.stderr))
