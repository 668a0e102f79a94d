"""Figures: overhead against the interval with each way's room, and against what is swept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from brigade.model.checkpoint import optimum
from brigade.model.checkpoint.advise import count_of
from brigade.model.checkpoint.job import Cost, Job, Plan, wall_s
from brigade.model.figure import write

COLORS = {"sync": "#c44e52", "partial": "#4c72b0", "full": "#55a868"}
POINTS = 60
MOST = 1000.0  # percent: above it nothing is drawn
SCALES = {"mtbf": 3600.0, "rate": float(1 << 30), "interval": 60.0}
LABELS = {
    "nodes": "nodes", "mtbf": "hours between failures", "writers": "writers",
    "rate": "GiB a second of shared storage", "slowdown": "slowdown of computing",
    "interval": "minutes of computing between checkpoints",
}  # fmt: skip


def draw(
    job: Job,
    costs: Sequence[Cost],
    path: str,
    sweep: str | None,
    rows: Sequence[tuple[float, Sequence[Cost]]],
) -> None:
    """Write the figure, after `brigade.model.figure.check`. BrigadeError if it cannot be."""
    import matplotlib.pyplot as plt

    parts = 2 + (sweep is not None)
    figure, axes = plt.subplots(1, parts, figsize=(4.4 * parts, 3.9), layout="constrained")
    _intervals(axes[0], job, costs)
    _shares(axes[1], costs)
    if sweep:
        _swept(axes[2], sweep, rows)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    write(figure, path)


def _intervals(axis: Any, job: Job, costs: Sequence[Cost]) -> None:
    for one in costs:
        plan, color = one.plan, COLORS[one.plan.way]
        room = optimum.flat(job, plan)
        low, high = room.low_s / 6, min(room.high_s * 6, job.work_s / plan.every)
        at = [low * (high / low) ** (i / (POINTS - 1)) for i in range(POINTS)]
        over = [
            100 * (wall_s(job, Plan(plan.way, each, plan.every)) / job.work_s - 1) for each in at
        ]
        label = plan.way + (f", shared 1 of {plan.every}" if plan.every > 1 else "")
        shown = [value if value <= 100 else math.nan for value in over]
        axis.plot([each / 60 for each in at], shown, color=color, label=label)
        axis.axvspan(room.low_s / 60, room.high_s / 60, color=color, alpha=0.08)
        axis.plot(plan.interval_s / 60, 100 * one.overhead, "o", color=color, markersize=5)
    top = 100 * max(one.overhead for one in costs)
    axis.set(xscale="log", xlabel="minutes of computing between checkpoints",
             ylabel="% more than computing alone", ylim=(0, min(100, 4 * top)))  # fmt: skip
    axis.set_title("overhead; shaded: at most 1% longer", fontsize=10)
    axis.grid(alpha=0.3, which="both")
    axis.legend(frameon=False, fontsize=8)


def _shares(axis: Any, costs: Sequence[Cost]) -> None:
    ways = [one.plan.way for one in costs]
    waits = [100 * one.checkpoints_s / one.compute_s for one in costs]
    fails = [100 * one.failures_s / one.compute_s for one in costs]
    axis.barh(ways, waits, color="#8172b3", label="checkpoints")
    axis.barh(ways, fails, left=waits, color="#ccb974", label="failures: done again, restarts")
    for place, one in enumerate(costs):
        text = f" {count_of(one.processor_hours)} h"
        axis.text(waits[place] + fails[place], place, text, va="center", fontsize=8)
    axis.set_xlim(0, 1.4 * max(a + b for a, b in zip(waits, fails)) or 1)
    axis.invert_yaxis()
    axis.set_xlabel("% of computing; at the bar: processor hours")
    axis.set_title("each way at its best interval", fontsize=10)
    axis.legend(frameon=False, fontsize=8, loc="lower right")


def _swept(axis: Any, name: str, rows: Sequence[tuple[float, Sequence[Cost]]]) -> None:
    scale = SCALES.get(name, 1.0)
    at = [value / scale for value, _ in rows]
    for number, first in enumerate(rows[0][1]):
        over = [100 * costs[number].overhead for _, costs in rows]
        shown = [value if value <= MOST else math.nan for value in over]
        way = first.plan.way
        axis.plot(at, shown, "o-", color=COLORS[way], label=way, markersize=4)
    axis.set(xscale="log", yscale="log", xlabel=LABELS[name], ylabel="% more than computing alone")
    axis.set_title(f"against {LABELS[name]}", fontsize=10)
    axis.grid(alpha=0.3, which="both")
    axis.legend(frameon=False, fontsize=8)
