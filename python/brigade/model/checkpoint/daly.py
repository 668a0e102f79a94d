"""The published formulas: when to write restart dumps that stop the program while they are written.

J. W. Young: A first order approximation to the optimum checkpoint interval, CACM 17(9), 1974.
J. T. Daly: A higher order estimate of the optimum checkpoint interval for restart dumps, Future
Generation Computer Systems 22(3), 2006 (online 2004).

`delta` is the time of a dump, `mtbf` between failures (exponential), `tau` the time of computing
between two dumps. All in the same unit.
"""

from __future__ import annotations

import math


def young(delta: float, mtbf: float) -> float:
    """First order."""
    return math.sqrt(2 * delta * mtbf)


def daly(delta: float, mtbf: float) -> float:
    """Higher order; from a dump of twice the time between failures on, that time."""
    if delta >= 2 * mtbf:
        return mtbf
    ratio = delta / (2 * mtbf)
    return math.sqrt(2 * delta * mtbf) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - delta


def exact(delta: float, mtbf: float) -> float:
    """Where Daly's total time is least: M (1 + W(-exp(-delta/M - 1))), W Lambert's function."""
    return mtbf * (1 + lambert_w(-math.exp(-delta / mtbf - 1)))


def total(work: float, tau: float, delta: float, mtbf: float, restart: float) -> float:
    """Expected time of the whole job; restarts fail as well. math.inf where it does not end."""
    try:
        each = mtbf * math.exp(restart / mtbf) * math.expm1((tau + delta) / mtbf)
    except OverflowError:
        return math.inf
    return each * work / tau


def lambert_w(x: float) -> float:
    """The upper real branch of w exp(w) = x, for x of -1/e to 0 (Halley's iteration)."""
    if not -1 / math.e <= x <= 0:
        raise ValueError(f"{x} has no value on this branch")
    branch = math.sqrt(max(0.0, 2 * (1 + math.e * x)))
    w = -1 + branch - branch**2 / 3 + 11 * branch**3 / 72
    for _ in range(50):
        if w <= -1:
            return -1.0
        e = math.exp(w)
        miss = w * e - x
        step = miss / (e * (w + 1) - (w + 2) * miss / (2 * w + 2))
        w -= step
        if abs(step) <= 1e-15 * abs(w):
            break
    return w
