"""Requests over time as a picture, for documents: one panel a timeline, all on the same axes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from brigade.errors import BrigadeError
from brigade.page.chart import SERIES
from brigade.profile.profile import Timeline

# those of the page, in its order
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8a939d")


def draw(
    panels: Sequence[tuple[str, Timeline]], path: str | os.PathLike[str], title: str = ""
) -> None:
    """Write .png, .svg or .pdf. Raises BrigadeError without Matplotlib, or if it cannot write."""
    try:
        import matplotlib
    except ImportError as error:
        raise BrigadeError("figures need Matplotlib", hint="pip install matplotlib") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = _colours([line for _, line in panels])
    figure, axes = plt.subplots(
        len(panels),
        1,
        figsize=(9, 1.0 + 2.0 * len(panels)),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axis, (label, line) in zip(axes[:, 0], panels):
        _panel(axis, label, line, colours)
    axes[-1, 0].set_xlabel("seconds")
    figure.suptitle(title)
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BrigadeError(
            f"the figure cannot be written to {os.fspath(path)}: {reason}"
        ) from error
    finally:
        plt.close(figure)


def _colours(lines: Sequence[Timeline]) -> dict[str, str]:
    """One for each of the most frequent kinds of all panels; the others share the last."""
    sums: dict[str, int] = {}
    for line in lines:
        for kind, values in line.kinds.items():
            sums[kind] = sums.get(kind, 0) + sum(values)
    order = sorted(sums, key=lambda kind: -sums[kind])
    return {kind: COLOURS[i] if i < SERIES else COLOURS[-1] for i, kind in enumerate(order)}


def _panel(axis: Any, label: str, line: Timeline, colours: dict[str, str]) -> None:
    steps = max((len(values) for values in line.kinds.values()), default=1)
    edges = [i * line.step_s for i in range(steps + 1)]
    base = [0.0] * steps
    for kind in sorted(line.kinds, key=list(colours).index):
        rate = [n / line.step_s for n in line.kinds[kind]] + [0.0] * steps
        upper = [low + value for low, value in zip(base, rate)]
        axis.stairs(upper, edges, baseline=base, fill=True, color=colours[kind], label=kind)
        base = upper
    total = sum(sum(values) for values in line.kinds.values())
    axis.set_title(f"{label}: {total:,} requests", loc="left", fontsize=10)
    axis.set_ylabel("requests a second")
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_ylim(bottom=0)
    axis.set_xlim(left=0)
    named = dict(list(zip(*axis.get_legend_handles_labels()[::-1]))[:SERIES])
    if named:
        axis.legend(named.values(), named.keys(), frameon=False, fontsize=8, loc="upper right")
