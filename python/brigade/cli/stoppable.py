"""How a command ends that a signal asks to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP are heard in the block (brigade/interrupt.py: at once where it is
    `promptly`); when it has taken back what was begun, the command ends with the signal's code."""
    from brigade import interrupt

    with interrupt.listening():
        try:
            yield
        except interrupt.Interrupted as stop:
            sys.exit(128 + stop.signum)
