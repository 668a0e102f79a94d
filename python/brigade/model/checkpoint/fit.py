"""Distributions fitted to measured writes by maximum likelihood, and how well they fit.

Kolmogorov and Smirnov's distance says how far the fitted distribution function is from the
samples'. Its usual table does not hold for a distribution fitted to the same samples, so p is the
share of drawn sample sets of that distribution, each fitted anew, that lie as far off (a seeded
parametric bootstrap). Below 0.05: the writes are not of this kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from brigade.errors import BrigadeError
from brigade.model.checkpoint.spread import EULER, Spread

LEAST = 8  # samples
DRAWS = 200
Vector = Any


@dataclass(frozen=True)
class Fit:
    spread: Spread
    mean_s: float
    parameters: dict[str, float]
    distance: float  # of Kolmogorov and Smirnov
    p: float
    aic: float  # Akaike's criterion: less is better


def fits(samples: Sequence[float], of: int = 1, seed: int = 1) -> list[Fit]:
    """Each kind's fit, the one of least AIC first. BrigadeError if the samples cannot be fitted."""
    x = np.sort(np.array(samples, dtype=float))
    if len(x) < LEAST or not np.all(np.isfinite(x)) or x[0] <= 0:
        raise BrigadeError(
            f"{len(x)} samples of which the least is {x[0] if len(x) else 'none'} give no "
            "distribution",
            hint=f"at least {LEAST} are needed, in seconds, all above 0",
        )
    if x[0] == x[-1]:
        raise BrigadeError("all samples are alike", hint="leave out --samples: there is no spread")
    rng = np.random.default_rng(seed)
    return sorted((_fit(kind, x, of, rng) for kind in _KINDS), key=lambda one: one.aic)


def _fit(kind: str, x: Vector, of: int, rng: np.random.Generator) -> Fit:
    estimate, cumulative, density, draw, spread = _KINDS[kind]
    a, b = estimate(x)
    distance = _distance(cumulative(x, a, b))
    worse = 0
    for _ in range(DRAWS):
        y = np.sort(draw(rng, a, b, len(x)))
        worse += _distance(cumulative(y, *estimate(y))) >= distance
    shape, mean, names = spread(a, b)
    likelihood = float(np.sum(density(x, a, b)))
    return Fit(
        Spread(kind, shape, (), of), mean, dict(zip(names, (a, b))), distance,
        (1 + worse) / (1 + DRAWS), 4 - 2 * likelihood,
    )  # fmt: skip


def _distance(at: Vector) -> float:
    n = len(at)
    steps = np.arange(n + 1) / n
    return float(max(np.max(steps[1:] - at), np.max(at - steps[:-1])))


def _lognormal(x: Vector) -> tuple[float, float]:
    logs = np.log(x)
    return float(logs.mean()), float(logs.std())


def _weibull(x: Vector) -> tuple[float, float]:
    """(scale, shape): the shape where the likelihood's slope is 0, by bisection."""
    logs = np.log(x / x[-1])

    def slope(k: float) -> float:
        powers = np.exp(k * logs)
        return float((powers @ logs) / powers.sum() - 1 / k - logs.mean())

    k = _root(slope, 1e-3, 1e4)
    return float(x[-1] * np.mean(np.exp(k * logs)) ** (1 / k)), k


def _gumbel(x: Vector) -> tuple[float, float]:
    """(location, scale)."""
    mean, least = x.mean(), x[0]

    def slope(scale: float) -> float:
        powers = np.exp(-(x - least) / scale)
        return float(scale - mean + (x @ powers) / powers.sum())

    scale = _root(slope, 1e-6 * float(x.std()), 10 * float(x.std()) + 1e-300)
    powers = np.exp(-(x - least) / scale)
    return float(least - scale * math.log(powers.mean())), scale


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a growing function is 0, to 12 digits."""
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return math.sqrt(low * high)


def _normal_cumulative(z: Vector) -> Vector:
    return np.array([0.5 * math.erfc(-one / math.sqrt(2)) for one in z])


_KINDS: dict[str, tuple[Any, ...]] = {
    "lognormal": (
        _lognormal,
        lambda x, m, s: _normal_cumulative((np.log(x) - m) / s),
        lambda x, m, s: -np.log(x * s) - 0.5 * math.log(2 * math.pi)
        - ((np.log(x) - m) / s) ** 2 / 2,
        lambda rng, m, s, n: rng.lognormal(m, s, n),
        lambda m, s: (s, math.exp(m + s * s / 2), ("mu", "sigma")),
    ),
    "weibull": (
        _weibull,
        lambda x, c, k: -np.expm1(-((x / c) ** k)),
        lambda x, c, k: np.log(k / c) + (k - 1) * np.log(x / c) - (x / c) ** k,
        lambda rng, c, k, n: c * rng.weibull(k, n),
        lambda c, k: (k, c * math.gamma(1 + 1 / k), ("scale", "shape")),
    ),
    "gumbel": (
        _gumbel,
        lambda x, m, b: np.exp(-np.exp(-(x - m) / b)),
        lambda x, m, b: -np.log(b) - (x - m) / b - np.exp(-(x - m) / b),
        lambda rng, m, b, n: rng.gumbel(m, b, n),
        lambda m, b: (b / (m + EULER * b), m + EULER * b, ("location", "scale")),
    ),
}  # fmt: skip
