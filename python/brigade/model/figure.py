"""Seconds against ranks, both ways: simulation with its band, the exact steady state, bounds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from brigade.errors import BrigadeError
from brigade.model.demand import Demand
from brigade.model.predict import Prediction, nodes_of, predict
from brigade.model.system import System

COLORS = {"direct": "#c44e52", "brigade": "#4c72b0"}
LABELS = {"direct": "shared file system", "brigade": "Brigade"}
POINTS = 13
FORMATS = (".png", ".svg", ".pdf")


def widths(found: list[Prediction]) -> list[tuple[int, int]]:
    """Widths to draw, evenly spaced on a logarithmic axis, ending at the widest predicted."""
    widest = found[-1]
    top = math.log(max(widest.ranks, 2))
    steps = {round(math.exp(top * i / (POINTS - 1))) for i in range(POINTS)} | {widest.ranks}
    return [(one, nodes_of(one, widest.ranks, widest.nodes)) for one in sorted(steps)]


def write(figure: Any, path: str) -> None:
    """Write a finished figure and let go of it. Raises BrigadeError if it cannot be written."""
    import matplotlib.pyplot as plt

    try:
        figure.savefig(path, dpi=140)
    except OSError as error:
        raise BrigadeError(f"{path}: {error.strerror}", hint="choose another place") from error
    finally:
        plt.close(figure)


def check(path: str) -> None:
    """Raise BrigadeError if a figure cannot be drawn there; to be asked before any computing."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise BrigadeError(
            f"{path}: no figure of that kind", hint=f"end its name with {', '.join(FORMATS)}"
        )
    try:
        import matplotlib
    except ImportError as error:
        raise BrigadeError(
            "a figure needs Matplotlib, which this Python does not have",
            hint="pip install 'brigade[plot]', or leave out --figure",
        ) from error
    if not target.parent.is_dir():
        raise BrigadeError(f"{path}: no such folder", hint="make it, or choose another place")
    matplotlib.use("Agg")


def draw(demand: Demand, system: System, found: list[Prediction], path: str, seed: int) -> None:
    """Write the figure, after `check`. Raises BrigadeError if it cannot be written."""
    import matplotlib.pyplot as plt

    curve = [predict(demand, system, ranks, nodes, seed) for ranks, nodes in widths(found)]
    figure, axes = plt.subplots(figsize=(7, 4.8), layout="constrained")
    for way in ("direct", "brigade"):
        _draw_way(axes, curve, found, way)
    axes.set(xscale="log", yscale="log", xlabel="ranks", ylabel="seconds of start-up")
    axes.set_title(f"{demand.name} on {system.name}", fontsize=10)
    axes.grid(alpha=0.3, which="both")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    write(figure, path)


def _draw_way(axes: Any, curve: list[Prediction], found: list[Prediction], way: str) -> None:
    ranks = [one.ranks for one in curve]
    ways = [getattr(one, way) for one in curve]
    color = COLORS[way]
    axes.fill_between(
        ranks, [one.low for one in ways], [one.high for one in ways], color=color, alpha=0.15,
        linewidth=0, label=f"{LABELS[way]}: 9 of 10 simulations",
    )  # fmt: skip
    axes.plot(ranks, [one.seconds for one in ways], color=color, linewidth=2, label=LABELS[way])
    steady = {"color": "black", "linestyle": "--", "linewidth": 1}
    label = "steady state, exact" if way == "direct" else None
    axes.plot(ranks, [one.steady_s for one in ways], label=label, **steady)
    for index in (0, 1):
        label = "bounds" if way == "direct" and index == 0 else None
        bound = [one.bounds[index] for one in ways]
        axes.plot(ranks, bound, color="grey", linestyle=":", linewidth=1, label=label)
    marked = [(one.ranks, getattr(one, way).seconds) for one in found]
    axes.plot(*zip(*marked), color=color, linestyle="", marker="o", markersize=4)
