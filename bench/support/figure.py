"""Figures of the start-up benchmark: seconds and file-system requests against the number of
ranks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.samples import median

STYLE = {
    "direct": ("shared file system", "#c44e52", "o"),
    "local": ("warm local disk", "#8c8c8c", "s"),
    "brigade": ("Brigade", "#4c72b0", "D"),
}


def draw(samples: list[dict[str, Any]], path: Path, title: str) -> None:
    """Two panels side by side, written as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    widths = sorted({sample["ranks"] for sample in samples})
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for variant, (label, color, marker) in STYLE.items():
        if not any(sample["variant"] == variant for sample in samples):
            continue
        look = {"label": label, "color": color, "marker": marker, "linewidth": 2}
        left.plot(widths, _curve(samples, "seconds", variant, widths), **look)
        if variant != "local":
            right.plot(widths, _curve(samples, "requests", variant, widths), **look)
    left.set_ylabel("seconds from launch to the first line\nafter the imports (slowest rank)")
    left.set_ylim(bottom=0)
    right.set_ylabel("metadata requests to the shared file system,\nwhole job")
    right.set_yscale("log")
    for axes in (left, right):
        axes.set_xlabel("ranks")
        axes.set_xticks(widths)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _curve(
    samples: list[dict[str, Any]], key: str, variant: str, widths: list[int]
) -> list[float | None]:
    return [median(samples, key, variant=variant, ranks=ranks) for ranks in widths]
