"""Operations over time as stacked steps, in the coordinates of an SVG of 1000 by 240.

The page stretches the drawing to its width, so that only the shapes are SVG; what is to be read
(axes, legend) stands beside it as text, in the size of all other text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from brigade.profile.profile import Timeline

WIDTH, HEIGHT = 1000, 240
SERIES = 5  # kinds with a colour of their own; the rest is drawn as one
_NICE: tuple[float, ...] = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
STEPS = 300  # finer than that nobody sees


class Series(NamedTuple):
    kind: str
    total: int
    values: list[int]  # operations in each step
    shape: str  # of an SVG path


class Mark(NamedTuple):
    at: float  # share of the width, 0 to 1
    text: str


@dataclass
class Chart:
    of: str
    step_s: float
    length_s: float
    top: float  # operations a second at the upper edge
    peak: float  # operations a second in the busiest step
    peak_s: float
    total: int
    series: list[Series]
    across: list[Mark] = field(default_factory=list)  # seconds
    up: list[Mark] = field(default_factory=list)  # operations a second


def chart(timeline: Timeline, length_s: float | None = None, top: float | None = None) -> Chart:
    """The drawing of a timeline; on another's axes, if its length and top are given."""
    kinds = _merged(timeline)
    steps = max((len(values) for values in kinds.values()), default=0)
    used = max((i + 1 for v in kinds.values() for i, n in enumerate(v) if n), default=1)
    steps = min(steps, used + 1)
    join = max(1, math.ceil(steps / STEPS))
    step_s = timeline.step_s * join
    joined = {
        kind: [sum(values[i : i + join]) for i in range(0, steps, join)]
        for kind, values in kinds.items()
    }
    sums = [sum(column) for column in zip(*joined.values())] or [0]
    length = length_s or max(len(sums), 1) * step_s
    peak = max(sums) / step_s
    height = top or nice(peak)
    base = [0] * len(sums)
    series = []
    for kind, values in joined.items():
        upper = [low + value for low, value in zip(base, values)]
        shape = _shape(base, upper, step_s, length, height)
        series.append(Series(kind, sum(values), values, shape))
        base = upper
    return Chart(
        *(timeline.of, step_s, length, height, peak, sums.index(max(sums)) * step_s, sum(sums)),
        series,
        [Mark(at / length, _second(at)) for at in _ticks(length)],
        [Mark(at / height, f"{at:,.0f}" if height >= 4 else f"{at:g}") for at in _ticks(height)],
    )


def _merged(timeline: Timeline) -> dict[str, list[int]]:
    """The most frequent kinds, and all others as one, each as long as the longest."""
    steps = max((len(values) for values in timeline.kinds.values()), default=0)
    order = sorted(timeline.kinds, key=lambda kind: (-sum(timeline.kinds[kind]), kind))
    order = [kind for kind in order if any(timeline.kinds[kind])]
    kept = {kind: _padded(timeline.kinds[kind], steps) for kind in order[:SERIES]}
    rest = [_padded(timeline.kinds[kind], steps) for kind in order[SERIES:]]
    if rest:
        kept["others"] = [sum(column) for column in zip(*rest)]
    return kept


def _padded(values: list[int], steps: int) -> list[int]:
    return values + [0] * (steps - len(values))


def _shape(low: list[int], high: list[int], step_s: float, length: float, top: float) -> str:
    """The area between two step lines, as the path of an SVG."""
    wide, tall = WIDTH * step_s / length, HEIGHT / (top * step_s)

    def y(value: int) -> str:
        return f"{HEIGHT - value * tall:.1f}".rstrip("0").rstrip(".")

    parts = [f"M0 {y(high[0]) if high else HEIGHT}"]
    for i, value in enumerate(high):
        parts.append(f"V{y(value)}H{(i + 1) * wide:.4g}")
    for i in range(len(low) - 1, -1, -1):
        parts.append(f"V{y(low[i])}H{i * wide:.4g}")
    return "".join(parts) + "Z"


def nice(value: float) -> float:
    """The next of 1, 2, 2.5, 5, 10 … at or above `value`."""
    if value <= 0:
        return 1.0
    power = float(10.0 ** math.floor(math.log10(value)))
    return next(f * power for f in _NICE if value <= f * power * 1.0001)


def _ticks(length: float) -> list[float]:
    """Four to eight round values from 0 to at most `length`."""
    step = next(
        f * 10.0**power
        for power in range(-6, 12)
        for f in (1, 2, 2.5, 5)
        if length / (f * 10.0**power) <= 6
    )
    return [i * step for i in range(int(length / step + 1e-9) + 1)]


def _second(value: float) -> str:
    return f"{value:g} s"
