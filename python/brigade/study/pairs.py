"""Do two variants differ? From pairs of starts that stood next to each other. Pure.

Each pair gives one ratio; a machine that was slow for a while was so for both. From the logarithms
of the ratios: Wilcoxon's signed-rank test, exact, and the Hodges-Lehmann estimate with the interval
that belongs to the test. Nothing is assumed but that a ratio is as likely above as below its
middle; so few pairs cannot show much, and that is then what is said.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

LEVEL = 0.05
ALIKE = 1.05  # an interval within this factor of 1 shows that there is no difference worth a word


@dataclass(frozen=True)
class Comparison:
    """Seconds of one variant to those of another."""

    pairs: int
    quicker: int  # pairs in which the one took less than the other
    ratio: float
    low: float  # interval of the ratio at the level that was asked for; the whole range if there
    high: float  # are too few pairs for that level
    p: float  # how often such pairs come about if there is no difference
    level: float

    @property
    def differs(self) -> bool:
        return self.p <= self.level and not self.low <= 1 <= self.high  # ties can part the two

    @property
    def alike(self) -> bool:
        """Shown to be no more apart than ALIKE."""
        enough = self.pairs >= needed(self.level)
        return enough and self.low > 1 / ALIKE and self.high < ALIKE


def needed(level: float = LEVEL) -> int:
    """With fewer pairs not even pairs that all agree would show a difference."""
    return 1 + math.ceil(math.log2(1 / level))


def compare(ones: list[float], others: list[float], level: float = LEVEL) -> Comparison:
    """`ones` to `others`, pair by pair."""
    logs = [round(math.log(a / b), 12) for a, b in zip(ones, others)]  # equal ones stay equal
    n = len(logs)
    walsh = sorted((logs[i] + logs[j]) / 2 for i in range(n) for j in range(i, n))
    counts = _signed_rank_counts(n)
    cut = _cut(counts, level)
    return Comparison(
        n,
        sum(log < 0 for log in logs),
        math.exp(statistics.median(walsh)),
        math.exp(walsh[cut]),
        math.exp(walsh[len(walsh) - 1 - cut]),
        _p(logs, counts),
        level,
    )


def _signed_rank_counts(n: int) -> list[int]:
    """How many of the 2^n choices of signs give each sum of positive ranks."""
    counts = [1] + [0] * (n * (n + 1) // 2)
    for rank in range(1, n + 1):
        for total in range(len(counts) - 1, rank - 1, -1):
            counts[total] += counts[total - rank]
    return counts


def _p(logs: list[float], counts: list[int]) -> float:
    """Two-sided. Equal absolute values get the mean of their ranks, rounded against a finding."""
    order = sorted(range(len(logs)), key=lambda i: abs(logs[i]))
    ranks = [0.0] * len(logs)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and abs(logs[order[end + 1]]) == abs(logs[order[at]]):
            end += 1
        for i in range(at, end + 1):
            ranks[order[i]] = (at + end) / 2 + 1
        at = end + 1
    up = sum(rank for rank, log in zip(ranks, logs) if log > 0)
    down = sum(rank for rank, log in zip(ranks, logs) if log < 0)
    total = len(counts) - 1
    smaller = min(total, math.ceil(min(up, down) + (total - up - down) / 2))
    return min(1.0, 2 * sum(counts[: smaller + 1]) / (1 << len(logs)))


def _cut(counts: list[int], level: float) -> int:
    """How many of the Walsh averages lie outside the interval on each side."""
    everything, outside = sum(counts), 0
    for cut, number in enumerate(counts):
        outside += number
        if 2 * outside > level * everything:
            return max(0, cut - 1)
    return 0
