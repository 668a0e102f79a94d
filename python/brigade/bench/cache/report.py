"""Table and figure of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brigade.bench.cache.conclude import curve, knee, perceived
from brigade.bench.cache.plan import PATTERNS
from brigade.model.cache.figure import save
from brigade.page.figure import COLOURS
from brigade.printable import size


def series(report: dict[str, Any], pattern: str) -> list[dict[str, Any]]:
    """The series of one pattern, by size of their writes."""
    found = [
        one
        for one in report["results"]
        if one["name"].startswith(f"{pattern}-") and "samples" in one
    ]
    return sorted(found, key=lambda one: int(one["size"]))


def print_report(report: dict[str, Any]) -> None:
    """A report, on standard output."""
    from rich.table import Table

    from brigade.console import make_console

    console = make_console(highlight=False)
    about = report["kernel"]
    console.print(
        f"{about['filesystem']} on {about['source']}, {size(report['room']['bytes'])} of memory",
        markup=False,
    )
    table = Table(
        title="MiB/s: as the calls saw it; and where it fell to less than half",
        box=None, pad_edge=False, title_justify="left",
    )  # fmt: skip
    for text in ("pattern", "writes of", "MiB", "seen", "first", "until MiB", "last", "longest ms"):
        table.add_column(text, justify="left" if text == "pattern" else "right", no_wrap=True)
    for pattern in PATTERNS:
        for step in series(report, pattern):
            fell = knee(step) if pattern == "back" else None
            shown = [
                f"{one / 2**20:,.0f}" for one in (step["bytes"], perceived(step), *(fell or ()))
            ]
            longest = max(one[3] for one in step["samples"])
            table.add_row(
                pattern,
                size(step["size"]),
                *shown,
                *[""] * (5 - len(shown)),
                f"{1e3 * longest:.1f}",
            )
    console.print(table)
    for sentence in report["conclusions"]:
        console.print(f"- {sentence}", markup=False, highlight=False)


def draw(report: dict[str, Any], path: str) -> None:
    """Perceived rates over time, by pattern, and what is cached. Call model.figure.check first."""
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
    axes = list(grid.flat)
    for axis, pattern in zip(axes, PATTERNS):
        _rates(axis, series(report, pattern), report["rates"]["write"])
        axis.set_title(f"{pattern}: {PATTERNS[pattern]}", fontsize=9)
    named = {one["name"]: one for one in report["results"]}
    _cached(axes[4], named)
    _pages(axes[5], named)
    figure.suptitle(
        f"{report['kernel']['filesystem']}, {size(report['room']['bytes'])} of memory", fontsize=10
    )
    save(figure, axes, path)


def _rates(axis: Any, steps: Sequence[dict[str, Any]], device: float) -> None:
    for colour, step in zip(COLOURS, steps):
        points = curve(step)
        axis.plot(
            [one[0] for one in points],
            [one[2] / 2**20 for one in points],
            ".-" if len(points) < 64 else ",-",
            linewidth=0.6,
            color=colour,
            label=size(step["size"]),
        )
    axis.axhline(device / 2**20, color="black", linewidth=0.8, linestyle="--", label="device")
    axis.set(yscale="log", xlabel="seconds", ylabel="MiB/s of each write")


def _cached(axis: Any, named: dict[str, dict[str, Any]]) -> None:
    looks = ["large after write", "large after read", "small after other", "other after write"]
    for colour, name in zip(COLOURS, (one for one in looks if one in named)):
        step = named[name]
        parts = step["parts"]
        each = step["pages"] / len(parts)
        axis.plot(
            [100 * (i + 0.5) / len(parts) for i in range(len(parts))],
            [100 * part / each for part in parts],
            linewidth=1,
            color=colour,
            label=f"{name} ({size(step['bytes'])})",
        )
    axis.set(xlabel="place in the file, %", ylabel="cached, % of the pages there")
    axis.set_title("what is cached (mincore)", fontsize=9)


def _pages(axis: Any, named: dict[str, dict[str, Any]]) -> None:
    if "large pages" in named:
        step = named["large pages"]
        for cached, colour in ((1, COLOURS[2]), (0, COLOURS[1])):
            pages = [one for one in step["pages"] if one[2] == cached]
            axis.plot(
                [100 * one[0] / step["bytes"] for one in pages],
                [one[1] / 1e3 for one in pages],
                ".",
                color=colour,
                label=f"mincore: {'cached' if cached else 'not cached'}",
            )
        axis.set(yscale="log", xlabel="place in the file, %", ylabel="microseconds of a page")
    axis.set_title("timed reads of single pages, after the write", fontsize=9)
