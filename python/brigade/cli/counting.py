"""A bar of things done, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable

from brigade.printable import is_terminal


@contextmanager
def counted(text: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error if that is a terminal; yields progress(done, in all), or None."""
    if not is_terminal(sys.stderr):
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from brigade.console import make_console

    columns = (TextColumn(text), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=make_console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
