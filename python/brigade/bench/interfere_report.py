"""The tables and the figure of `brigade bench interfere`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from brigade.bench.interfere import (
    CALLS,
    MOST_LOST,
    MOST_TIMES,
    PHASES,
    SHARES,
    VARIANTS,
    calls,
)
from brigade.console import make_console

_COLORS = {"before": "#8c8c8c", "during": "#c44e52", "after": "#4c72b0"}
_NAMES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}


def print_report(report: dict[str, Any]) -> None:
    console = make_console(highlight=False, markup=False, soft_wrap=True)
    for cell in report["cells"]:
        for call in CALLS:
            console.print(_table(cell, call))
        console.print(_verdict(cell))
    console.print(
        "MiB/s: until the file is there; of plain that is not known. times: p99 during the write "
        "by p99 before it; all rounds together"
    )
    for name in {one["variant"]: None for cell in report["cells"] for one in cell["variants"]}:
        console.print(f"{name}: {VARIANTS[name]}")
    for name, why in report.get("absent", {}).items():
        console.print(f"absent: {name}: {why}")


def _table(cell: dict[str, Any], call: str) -> Table:
    table = Table(
        title=f"\n{call}, ms: {cell['ranks']} ranks write {cell['bytes'] / 2**20:g} MiB each",
        box=None,
        title_justify="left",
        pad_edge=False,
    )
    table.add_column("", no_wrap=True)
    for text in ("phase", *_NAMES.values(), "MiB/s", "times"):
        table.add_column(text, justify="left" if text == "phase" else "right", no_wrap=True)
    for one in cell["variants"]:
        for phase in PHASES:
            values = one[call][phase]
            rate = f"{one['mib_s']:.1f}" if one["variant"] != "plain" else "?"
            times = f"{one[call]['times']:.1f}"
            table.add_row(
                one["variant"] if phase == "before" else "",
                phase,
                *(_ms(values[key]) for key in SHARES),
                *((rate, times) if phase == "during" else ("", "")),
            )
    return table


def _verdict(cell: dict[str, Any]) -> str:
    if "yielding" not in cell:
        return ""
    found = cell["yielding"]
    return (
        f"yielding: barriers' p99 {found['times']:.1f} times the quiet one (wanted: at most "
        f"{MOST_TIMES:g}), {found['lost']:.0%} of async's rate lost (at most {MOST_LOST:.0%}): "
        f"{'reached' if found['reached'] else 'NOT reached'}"
    )


def _ms(us: float) -> str:
    value = us / 1e3
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def draw(samples: Sequence[dict[str, Any]], path: Path) -> None:
    """Shares of barriers that take longer than so long, of each phase: a panel a cell and variant.

    Matplotlib must be there."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cells = sorted({(one["ranks"], one["bytes"]) for one in samples})
    names = [name for name in VARIANTS if any(one["variant"] == name for one in samples)]
    figure, axes = plt.subplots(
        len(cells), len(names), figsize=(2.5 * len(names), 2.4 * len(cells) + 0.5),
        layout="constrained", sharex=True, sharey=True, squeeze=False,
    )  # fmt: skip
    for row, (ranks, size) in zip(axes, cells):
        here = [one for one in samples if (one["ranks"], one["bytes"]) == (ranks, size)]
        for axis, name in zip(row, names):
            _tails(axis, [one for one in here if one["variant"] == name])
            axis.set_title(f"{name}, {ranks} x {size / 2**20:g} MiB", fontsize=9)
        row[0].set_ylabel("share that takes longer", fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("ms of a barrier", fontsize=8)
    axes[0][0].legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _tails(axis: Any, samples: Sequence[dict[str, Any]]) -> None:
    for phase in PHASES:
        values = sorted(us / 1e3 for one in samples for us in calls(one, "barrier", phase))
        shares = [(len(values) - i) / len(values) for i in range(len(values))]
        axis.plot(values, shares, color=_COLORS[phase], label=phase, linewidth=1.3)
    axis.set(xscale="log", yscale="log")
    axis.axhline(0.01, color="black", linewidth=0.6, linestyle=":")
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
