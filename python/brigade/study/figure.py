"""The figure of a study: seconds against ranks, every start as a point, and calls of one rank."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from brigade.model.figure import write
from brigade.study.samples import Study

# colours that differ for colour-blind eyes too, and a marker each
LOOKS = [
    ("#4c4c4c", "o"), ("#0072b2", "D"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "v"),
    ("#e69f00", "P"), ("#56b4e9", "X"),
]  # fmt: skip

_LABEL = 24  # characters a line beside a bar


def draw(study: Study, path: Path, title: str) -> None:
    """Write the figure, after `brigade.model.figure.check`. BrigadeError if it cannot be."""
    import matplotlib.pyplot as plt

    panels = 2 if study.operations else 1
    figure, axes = plt.subplots(
        1, panels, figsize=(5.4 * panels, 4.2), layout="constrained", squeeze=False
    )
    _seconds(axes[0][0], study)
    if study.operations:
        _calls(axes[0][1], study)
    handles, labels = axes[0][0].get_legend_handles_labels()
    columns = 2 if max(map(len, labels)) > _LABEL else 5
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )
    figure.suptitle(title, fontsize=11)
    write(figure, str(path))


def _look(study: Study, name: str) -> tuple[str, str]:
    return LOOKS[list(study.labels).index(name) % len(LOOKS)]


def _seconds(axes: Any, study: Study) -> None:
    widths = study.widths
    for number, name in enumerate(study.variants):
        color, marker = _look(study, name)
        medians = [study.median(name, ranks) for ranks in widths]
        axes.plot(widths, medians, color=color, marker=marker, label=study.labels[name])
        shift = 1 + 0.012 * (number - (len(study.variants) - 1) / 2)  # points side by side
        for ranks in widths:
            values = study.seconds(name, ranks)
            axes.plot(
                [ranks * shift] * len(values), values, "o", color=color, alpha=0.35, markersize=3
            )
    axes.set_xscale("log", base=2)
    axes.set_xticks(widths, [str(ranks) for ranks in widths])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("ranks")
    over = f"to a line with {study.until!r}" if study.until else "to the end"
    axes.set_ylabel(f"seconds {over} (line: median)")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _calls(axes: Any, study: Study) -> None:
    names = [name for name in study.labels if name in study.operations]
    for at, name in enumerate(names):
        counts = study.operations[name]
        worked = counts["calls"] - counts["failed"]
        color, _ = _look(study, name)
        axes.barh(at, worked, 0.5, color=color)
        axes.barh(at, counts["failed"], 0.5, left=worked, color=color, alpha=0.35, hatch="//")
        axes.text(counts["calls"], at, f" {counts['calls']:,}", va="center", fontsize=9)
    labels = [textwrap.fill(study.labels[name], _LABEL) for name in names]
    axes.set_yticks(range(len(names)), labels, fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("calls by path of one rank (pale: in vain)")
    axes.spines[["top", "right"]].set_visible(False)
