"""How differently long the writes of ranks take, and how long the slowest of N takes.

A spread is the distribution of one write's seconds by their mean. A barrier waits for the largest
of N samples: with the distribution function F that largest has F to the power of N, so that its
quantile at u is the quantile of F at u^(1/N). Samples that are themselves the slowest of n ranks
(`of`) have F^n, and N ranks then F^(N/n): nothing about one rank need be known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

KINDS = ("none", "lognormal", "weibull", "gumbel", "empirical")
NODES = 96  # of the quadrature
EULER = 0.5772156649015329
Vector = Any  # a NumPy array of float64


@dataclass(frozen=True)
class Spread:
    """`shape`: lognormal: deviation of the logarithm; weibull: its shape; gumbel: scale by mean."""

    kind: str = "none"
    shape: float = 0.0
    values: tuple[float, ...] = ()  # empirical: in order, of mean 1
    of: int = 1  # ranks of which each sample was the slowest


def tail_quantile(spread: Spread, tail: Vector) -> Vector:
    """What a write takes, by the mean, that is exceeded with probability `tail`."""
    tail = np.clip(np.asarray(tail, dtype=float), 1e-300, 1 - 1e-16)
    shape = spread.shape
    if spread.kind == "lognormal":
        normal = NormalDist()
        z = np.array([-normal.inv_cdf(p) for p in tail])
        return np.exp(shape * z - shape**2 / 2)
    if spread.kind == "weibull":
        return (-np.log(tail)) ** (1 / shape) / math.gamma(1 + 1 / shape)
    if spread.kind == "gumbel":
        centre = 1 - EULER * shape
        return np.maximum(centre - shape * np.log(-np.log1p(-tail)), 0.0)
    return np.ones_like(tail)


@lru_cache(maxsize=256)
def _largest(spread: Spread, count: int) -> tuple[Vector, Vector]:
    times = max(count, 1) / spread.of  # a share of 1 where fewer wait than were measured
    if spread.kind == "none":
        return np.ones(1), np.ones(1)
    if spread.kind == "empirical":
        values = np.array(spread.values)
        at = (np.arange(len(values) + 1) / len(values)) ** times
        weights = np.diff(at)
        kept = weights > 1e-15
        return values[kept], weights[kept] / weights[kept].sum()
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    v, weights = (nodes + 1) / 2, weights / 2
    u = 1 - (1 - v) ** 3  # dense where the largest are
    weights = weights * 3 * (1 - v) ** 2
    tail = -np.expm1(np.log(u) / times)
    return tail_quantile(spread, tail), weights / weights.sum()


def largest(spread: Spread, count: int) -> tuple[Vector, Vector]:
    """(values, weights) that stand for the largest of `count` writes, by the mean of one."""
    return _largest(spread, count)


def factor(spread: Spread, count: int) -> float:
    """How much longer than one write the slowest of `count` takes, in the mean."""
    values, weights = largest(spread, count)
    return float(values @ weights)


def of_samples(samples: Sequence[float], of: int = 1) -> Spread:
    """The empirical spread. The largest of many cannot exceed the largest that was seen."""
    mean = math.fsum(samples) / len(samples)
    return Spread("empirical", 0.0, tuple(sorted(one / mean for one in samples)), of)
