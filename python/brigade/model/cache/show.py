"""A simulation for people: a table, and beside what was measured the errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brigade.model.cache.compare import Look, Phase, busy, cached
from brigade.printable import size


def print_steps(results: Sequence[dict[str, Any]]) -> None:
    """What came of each step of a workload."""
    from rich.table import Table

    from brigade.console import make_console

    table = Table(box=None, pad_edge=False)
    for text in ("step", "begins", "takes", "bytes", "rate", "longest call"):
        table.add_column(text, justify="left" if text == "step" else "right", no_wrap=True)
    for one in results:
        begin, took = f"{one['begin']:.2f} s", ""
        if "seconds" in one:
            took = f"{one['seconds']:.3f} s"
        if one["operation"] == "look":
            table.add_row(one["name"], begin, f"{100 * cached(one):.0f}% cached", "", "", "")
        elif one["operation"] == "probe":
            hits = sum(page[2] for page in one["pages"])
            table.add_row(one["name"], begin, f"{hits} of {len(one['pages'])} cached", "", "", "")
        elif one.get("samples"):
            longest = max(sample[3] for sample in one["samples"])
            rate = one["bytes"] / max(busy(one), 1e-12)
            table.add_row(
                one["name"], begin, took, size(one["bytes"]), f"{size(rate)}/s",
                f"{1e3 * longest:.2f} ms",
            )  # fmt: skip
        else:
            table.add_row(one["name"], begin, took, "", "", "")
    make_console(highlight=False).print(table)


def print_comparison(
    policy: str,
    found: Sequence[Phase],
    looks: Sequence[Look],
    summaries: dict[str, dict[str, dict[str, float]]],
) -> None:
    """Measured beside simulated. `summaries`: of each policy, what compare.summary gives."""
    from rich.table import Table

    from brigade.console import make_console

    console = make_console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for text in ("phase", "kind", "measured", "simulated", "error"):
        left = text in ("phase", "kind")
        table.add_column(text, justify="left" if left else "right", no_wrap=True)
    for one in found:
        table.add_row(
            one.name, one.kind, f"{one.measured:.3f} s", f"{one.simulated:.3f} s",
            f"{100 * one.error:+.0f}%",
        )  # fmt: skip
    for look in looks:
        shares = (f"{100 * one[0]:.0f}%" for one in (look.measured, look.simulated))
        points = 100 * (look.simulated[0] - look.measured[0])
        table.add_row(look.name, "cached", *shares, f"{points:+.0f} points")
    console.print(table)
    for name, summary in summaries.items():
        parts = [
            f"{kind} {100 * one['mean']:.0f}% (at most {100 * one['max']:.0f}%)"
            for kind, one in summary.items()
        ]
        chosen = " (the table)" if name == policy else ""
        console.print(f"mean error, policy {name}{chosen}: {', '.join(parts)}", markup=False)
