"""Figures of the checkpoint benchmark: seconds by record size, and distributions under load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from brigade.bench.checkpoint.plan import size_name
from brigade.bench.checkpoint.summary import seconds

COLORS = {
    "brigade": "#4c72b0",
    "ompio": "#c44e52",
    "romio": "#dd8452",
    "mpiio": "#dd8452",
    "hdf5": "#937860",
    "adios2": "#8172b3",
    "posix-shared": "#ccb974",
    "posix-fpp": "#8c8c8c",
}


def draw_cells(cells: Sequence[dict[str, Any]], direction: str, path: Path, title: str) -> None:
    """A panel for each pattern: bars of medians with quartiles, for each record size and width."""
    plt = _pyplot()
    patterns = list(dict.fromkeys(cell["pattern"] for cell in cells))
    counts = [sum(cell["pattern"] == pattern for cell in cells) for pattern in patterns]
    figure, axes = plt.subplots(
        1,
        len(patterns),
        figsize=(2 + 0.9 * len(cells), 4.4),
        layout="constrained",
        squeeze=False,
        width_ratios=counts,
    )
    for axis, pattern in zip(axes[0], patterns):
        _bars(axis, [cell for cell in cells if cell["pattern"] == pattern], direction)
        axis.set_title(pattern)
    axes[0][0].set_ylabel(f"seconds to {direction}, all ranks")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=8, frameon=False)
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _bars(axis: Any, cells: Sequence[dict[str, Any]], direction: str) -> None:
    names = list(dict.fromkeys(name for cell in cells for name in cell["variants"]))
    width = 0.85 / len(names)
    for place, name in enumerate(names):
        at, middles, low, high = [], [], [], []
        for number, cell in enumerate(cells):
            one = cell["variants"].get(name, {}).get(direction)
            if one:
                at.append(number + (place - (len(names) - 1) / 2) * width)
                middles.append(one["median"])
                low.append(one["median"] - one["q1"])
                high.append(one["q3"] - one["median"])
        axis.bar(
            at,
            middles,
            width,
            yerr=[low, high],
            label=name,
            color=COLORS.get(name.partition(":")[0]),
            error_kw={"linewidth": 0.8},
        )
    axis.set_yscale("log")
    axis.set_xticks(
        range(len(cells)), [f"{size_name(c['record'])}\n{c['ranks']} ranks" for c in cells]
    )
    axis.tick_params(axis="x", labelsize=8)
    axis.grid(alpha=0.3, axis="y")
    axis.spines[["top", "right"]].set_visible(False)


def draw_steadiness(samples: Sequence[dict[str, Any]], path: Path, title: str) -> None:
    """Distributions of the time to write beside another job, for each cell: curves, and boxes."""
    plt = _pyplot()
    kinds = list(dict.fromkeys((s["pattern"], s["record"]) for s in samples))
    figure, axes = plt.subplots(
        len(kinds), 2, figsize=(10, 3.6 * len(kinds)), layout="constrained", squeeze=False
    )
    for (pattern, record), (curves, boxes) in zip(kinds, axes):
        same = [s for s in samples if (s["pattern"], s["record"]) == (pattern, record)]
        _distributions(curves, boxes, same)
        curves.set_title(f"{pattern} {size_name(record)}, {same[0]['ranks']} ranks")
    axes[0][0].legend(frameon=False)
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _distributions(curves: Any, boxes: Any, samples: Sequence[dict[str, Any]]) -> None:
    names = sorted({s["variant"] for s in samples})
    values = {n: seconds([s for s in samples if s["variant"] == n], "write") for n in names}
    for name in names:
        ordered = sorted(values[name])
        shares = [(i + 1) / len(ordered) for i in range(len(ordered))]
        color = COLORS.get(name.partition(":")[0])
        curves.step(ordered, shares, where="post", label=name, color=color, linewidth=2)
    curves.set_ylabel("share of the writes")
    boxes.boxplot([values[name] for name in names], vert=False, whis=(10, 90))
    boxes.set_yticks(range(1, len(names) + 1), names)
    for axis in (curves, boxes):
        axis.set_xlabel("seconds to write, all ranks")
        axis.set_xlim(left=0)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
