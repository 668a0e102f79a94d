"""The report of `brigade buffer --report`, for people."""

from __future__ import annotations

import sys
from typing import Any

from brigade.buffer.advice import advice, typical
from brigade.printable import printable, size

_MOST = 12


def print_files(files: list[dict[str, Any]], processes: int) -> None:
    """The files that cost most, on standard error."""
    from rich.table import Table
    from rich.text import Text

    from brigade.console import make_console

    console = make_console(file=sys.stderr, highlight=False)
    if not files:
        console.print(
            "brigade buffer: no process has left counters: no file's name fits a pattern, or the "
            "programs are linked statically, or were killed",
            soft_wrap=True,
        )
        return
    table = Table(title=f"Buffered files, {processes} processes", title_justify="left")
    for name in ("file", "calls", "bytes", "typical", "from memory", "seconds", "behind"):
        table.add_column(name, justify="left" if name == "file" else "right")
    for entry in files[:_MOST]:
        for what in ("read", "write"):
            if entry[f"{what}s"]:
                # as Text: in a name, brackets and colons are no markup
                table.add_row(*(Text(cell) for cell in _row(entry, what)))
    console.print(table)
    if len(files) > _MOST:
        console.print(f"and {len(files) - _MOST} files that cost less")
    for entry in files[:_MOST]:
        for line in advice(entry):
            console.print(Text(f"{printable(entry['path'])}: {line}"), soft_wrap=True)


def _row(entry: dict[str, Any], what: str) -> list[str]:
    calls = entry[f"{what}s"]
    at_once = entry["direct_writes"] if what == "write" else calls - entry["read_hits"]
    return [
        f"{printable(entry['path'])} ({what})",
        f"{calls:,}",
        size(entry[f"{what}_bytes"]),
        typical(entry[f"{what}_sizes"]) or "-",
        f"{100 * (calls - at_once) / calls:.0f}%",
        f"{entry[f'{what}_s']:.2f}",
        f"{entry['background_s']:.2f}" if what == "write" else "",
    ]
