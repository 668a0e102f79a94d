"""The tables of `brigade bench checkpoint`: a line for each variant of each cell."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from brigade.bench.checkpoint.plan import size_name
from brigade.bench.checkpoint.summary import subject
from brigade.bench.wide import console_for

DONE = {
    "write": "milliseconds to write (first open to last closed{sync}), medians",
    "read": "milliseconds to read (first open to last closed), medians",
}


def print_report(report: dict[str, Any]) -> None:
    """A report of `brigade bench checkpoint`, on standard output."""
    tables = []
    settings = report["settings"]
    for direction, text in DONE.items():
        cells = [c for c in report["cells"] if any(direction in v for v in c["variants"].values())]
        if cells:
            synced = ", on disk" if settings["sync"] else ", not synced"
            synced += " and published by all" if settings["publish"] else ""
            tables.append(_table(cells, direction, text.format(sync=synced)))
    console = console_for(*tables)
    for table in tables:
        console.print(table)
    console.print(
        "times faster: the peer's median by Brigade's, in jobs that ran both; 95% interval.  "
        "spread: p90 - p10, by the median",
        highlight=False,
        soft_wrap=True,
    )
    for name, why in report["absent"].items():
        console.print(f"absent: {name}: {why}", highlight=False, soft_wrap=True)


def _table(cells: list[dict[str, Any]], direction: str, title: str) -> Table:
    table = Table(title=title, box=None, title_justify="left", pad_edge=False)
    for text in ("ranks", "pattern", "record", "MiB", "variant", *_COLUMNS):
        left = text in ("pattern", "variant")
        table.add_column(text, justify="left" if left else "right", no_wrap=True)
    for cell in cells:
        names = list(cell["variants"])
        mine = subject(names)
        start = [str(cell["ranks"]), cell["pattern"], size_name(cell["record"])]
        start.append(f"{cell['bytes'] / 2**20:.1f}")
        for name in sorted(names, key=lambda name: (name != mine, name)):
            spread = cell["variants"][name].get(direction)
            if spread:
                ratio = cell["ratios"].get(name, {}).get(direction)
                table.add_row(*start, name, *_figures(spread, ratio))
                start = [""] * 4
        table.add_section()
    return table


_COLUMNS = ("median", "quartiles", "spread", "times faster")


def _figures(spread: dict[str, float], ratio: dict[str, float] | None) -> list[str]:
    middle, low, high = (1000 * spread[key] for key in ("median", "q1", "q3"))
    return [
        f"{middle:,.1f}",
        f"{low:,.1f}-{high:,.1f}",
        f"{spread['spread']:.2f}",
        f"{ratio['ratio']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]" if ratio else "",
    ]
