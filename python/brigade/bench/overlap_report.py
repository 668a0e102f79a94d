"""The table and the figure of `brigade bench overlap`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from brigade.bench.overlap import VARIANTS, factor
from brigade.bench.wide import console_for

_COLORS = {"plain": "#8c8c8c", "sync": "#c44e52", "async": "#dd8452", "yielding": "#4c72b0"}


def print_report(report: dict[str, Any]) -> None:
    """A report of `brigade bench overlap`, on standard output."""
    settings = report["settings"]
    mib = settings["bytes"] / 2**20
    table = Table(
        title=f"{settings['ranks']} ranks write {mib:g} MiB each; barriers in milliseconds",
        box=None,
        title_justify="left",
        pad_edge=False,
    )
    table.add_column("variant", no_wrap=True)
    for text in ("write s", "all s", "before", "first", "mean", "p99", "factor"):
        table.add_column(text, justify="right", no_wrap=True)
    for one in report["variants"]:
        table.add_row(
            one["variant"],
            f"{one['returned_s']:.2f}",
            f"{one['done_s']:.2f}" if one["variant"] != "plain" else "?",
            *(_number(one[f"{key}_ms"]) for key in ("before", "first", "within", "p99")),
            "{} [{}, {}]".format(
                *(_number(one[key]) for key in ("factor", "factor_low", "factor_high"))
            ),
        )
    console = console_for(table)
    console.print(table)
    console.print(
        "factor: mean barrier until the file is there, by the mean before; median of "
        f"{settings['rounds']} rounds [least, most]",
        highlight=False,
        soft_wrap=True,
    )
    for one in report["variants"]:
        text = f"{one['variant']}: {VARIANTS[one['variant']]}"
        console.print(text, highlight=False, soft_wrap=True)


def _number(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def draw(samples: Sequence[dict[str, Any]], path: Path) -> None:
    """Barriers over time in each variant's middle round, and the factors of all rounds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = [name for name in VARIANTS if any(s["variant"] == name for s in samples)]
    figure, axes = plt.subplots(
        1, len(names) + 1, figsize=(2.6 * len(names) + 3, 3.8), layout="constrained"
    )
    for axis, name in zip(axes, names):
        same = sorted((s for s in samples if s["variant"] == name), key=factor)
        _series(axis, same[len(same) // 2], _COLORS[name])
        axis.set_title(name)
        axis.set_ylim(1e-3, max(max(s["within_us"]) for s in samples) / 500)
    axes[0].set_ylabel("milliseconds of a barrier, slowest rank")
    _factors(axes[-1], samples, names)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _series(axis: Any, sample: dict[str, Any], color: str) -> None:
    axis.axvspan(0, sample["returned"], color="#dddddd", label="the write")
    if sample["done"] > sample["returned"]:
        axis.axvline(sample["done"], color="black", linewidth=0.8, label="the file is there")
    at = [us / 1e6 for us in sample["at_us"]]
    axis.plot(at, [us / 1e3 for us in sample["within_us"]], ".", color=color, markersize=2)
    before = sum(sample["before_us"]) / len(sample["before_us"]) / 1e3
    axis.axhline(before, color=color, linewidth=0.8, linestyle="--", label="mean before")
    axis.set_yscale("log")
    axis.set_xlabel("seconds from the write")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=7)
    axis.spines[["top", "right"]].set_visible(False)


def _factors(axis: Any, samples: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        values = [factor(s) for s in samples if s["variant"] == name]
        axis.plot(values, [place] * len(values), "o", color=_COLORS[name], alpha=0.6)
    axis.axvline(1, color="black", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set_title("times as long as before")
    axis.grid(alpha=0.3, axis="x")
    axis.spines[["top", "right"]].set_visible(False)
