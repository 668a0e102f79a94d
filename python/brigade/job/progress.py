"""Progress of the steps before a job, on standard error: one line that redraws itself on a
terminal, nothing but warnings elsewhere. Kept free of rich, because it is there at every start."""

from __future__ import annotations

import os
import sys

from brigade.printable import is_terminal

_BAR = 24
_LABELS = {"trial": "trial run", "image": "writing the image", "stage": "staging"}


def redraws() -> bool:
    """Whether standard error is a terminal on which a line can be written anew."""
    return is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"


class Progress:
    """At most one line at a time; `close` wipes it."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._live = not quiet and redraws()
        self._shown = False

    def show(self, step: str, done: float, total: float | None) -> None:
        """How far `step` is: `done` of `total`, or seconds passed if the total is unknown."""
        if not self._live:
            return
        label = _LABELS.get(step, step)
        if total:
            filled = int(_BAR * min(1.0, done / total))
            text = f"{label} [{'#' * filled}{'.' * (_BAR - filled)}] {100 * done / total:3.0f}%"
        else:
            text = f"{label} {done:.0f} s"
        sys.stderr.write(f"\r\033[Kbrigade: {text}")
        sys.stderr.flush()
        self._shown = True

    def note(self, text: str) -> None:
        """A line that stays, unless the user asked for quiet."""
        if not self._quiet:
            self._print(text)

    def warn(self, text: str) -> None:
        """A line that always stays."""
        self._print(text)

    def close(self) -> None:
        """Wipe the progress line."""
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._shown = False

    def _print(self, text: str) -> None:
        self.close()
        print(f"brigade: {text}", file=sys.stderr, flush=True)
