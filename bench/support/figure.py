"""Figures of the start-up benchmark: seconds and file-system requests against the number of
ranks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.samples import median

FAR_APART = 200  # times; then a logarithmic axis shows more
STYLE = {
    "direct": ("shared file system", "#c44e52", "o"),
    "local": ("warm local disk", "#8c8c8c", "s"),
    "brigade": ("brigade run", "#4c72b0", "D"),
    "fork": ("brigade run --fork", "#55a868", "^"),
}
LABELS = {variant: label for variant, (label, _, _) in STYLE.items()}


def draw(samples: list[dict[str, Any]], path: Path, title: str) -> None:
    """Two panels side by side, written as PNG."""
    seconds = "seconds from launch to the first line\nafter the imports (slowest rank)"
    requests = "metadata requests to the shared file system,\nwhole job"
    panels = [(samples, "seconds", seconds, False), (samples, "requests", requests, True)]
    draw_panels(panels, path, title)


def draw_panels(
    panels: list[tuple[list[dict[str, Any]], str, str, bool]], path: Path, title: str
) -> None:
    """Panels side by side, each (samples, key, what the axis says, whether it counts requests):
    `key` against the number of ranks. Requests, which the local disk has none of, and what is far
    apart are on a logarithmic axis.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(panels), figsize=(5 * len(panels), 4.2), layout="constrained"
    )
    for one, (samples, key, label, counts) in zip(axes, panels):
        _panel(one, samples, key, counts)
        one.set_ylabel(label)
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _panel(axes: Any, samples: list[dict[str, Any]], key: str, counts: bool) -> None:
    widths = sorted({sample["ranks"] for sample in samples})
    for variant, (label, color, marker) in STYLE.items():
        if (counts and variant == "local") or all(s["variant"] != variant for s in samples):
            continue
        look = {"label": label, "color": color, "marker": marker, "linewidth": 2}
        axes.plot(widths, _curve(samples, key, variant, widths), **look)
    values = [sample[key] for sample in samples if sample.get(key)]
    if counts or max(values) > FAR_APART * min(values):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel("ranks")
    axes.set_xticks(widths)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def _curve(
    samples: list[dict[str, Any]], key: str, variant: str, widths: list[int]
) -> list[float | None]:
    return [median(samples, key, variant=variant, ranks=ranks) for ranks in widths]
