"""Tables whole: a number that is cut is none, so lines may be longer than the terminal, or the 80
columns that a file or a pipe is taken for."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.table import Table

from brigade.console import make_console

_WIDTH = 1 << 14  #: no table is wider


def console_for(*tables: Table) -> Console:
    """Standard output, wide enough for each of these."""
    usual = make_console()
    options: ConsoleOptions = usual.options.update(width=_WIDTH)
    widths = (Measurement.get(usual, options, table).maximum for table in tables)
    return make_console(width=max(usual.width, *widths)) if tables else usual
