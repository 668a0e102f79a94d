"""The table that `brigade bench` prints: one phase a line."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from brigade.console import make_console

EXPLAINED = {
    "launch": "from the command to main, launcher included",
    "startup": "from the process's start to main",
    "import": "every module imported",
    "load": "every library opened",
    "visit": "every function called once",
}


def print_table(report: dict[str, Any]) -> None:
    """One report of brigade.bench.run, on standard output."""
    console = make_console()
    ranks = len(report["ranks"])
    console.print(
        f"{report['benchmark']}: {report['objects']} shared objects, "
        f"{report['bytes'] / 2**20:,.1f} MiB, layout {report['settings']['layout']}; "
        f"{ranks} {'rank' if ranks == 1 else 'ranks'} on {report['hosts']} "
        f"{'node' if report['hosts'] == 1 else 'nodes'}, {report['seconds']:.2f} s in all",
        highlight=False,
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("seconds")
    for title in ("min", "median", "max"):
        table.add_column(title, justify="right")
    table.add_column("")
    for phase, values in report["phases"].items():
        table.add_row(
            phase, *(f"{values[key]:.3f}" for key in ("min", "median", "max")), EXPLAINED[phase]
        )
    console.print(table)
    console.print(
        f"checksum {report['checksum']} of {report['calls']:,} calls: as planned on every rank",
        highlight=False,
        soft_wrap=True,
    )
