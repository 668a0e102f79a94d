"""The same job, simulated event by event: a clock, failures drawn, writes drawn rank by rank.

This shares no formula with pattern.py: it steps from one event to the next (computing done, copy
done, checkpoint on shared storage, failure) and draws each writer's seconds by itself, so that what
both agree on is right in both.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from brigade.model.checkpoint.spread import EULER, Spread, tail_quantile
from brigade.model.simulate import Band

Draw = Callable[[], float]
_LEAST = 1e-9  # of the mean: a write of no time would be none


@dataclass(frozen=True)
class Job:
    """What is simulated; seconds, as of pattern.Timing."""

    patterns: int
    every: int
    work_s: float
    copy_s: float
    write: Draw
    behind: bool
    slowdown: float
    mtbf_s: float
    survive: float
    restart_s: float
    restart_local_s: float


@dataclass
class Outcome:
    wall_s: float = 0.0
    failures: int = 0
    written: int = 0  # checkpoints on shared storage
    by_activity: dict[str, float] = field(default_factory=dict)


def writer(spread: Spread, mean_s: float, count: int, rng: np.random.Generator) -> Draw:
    """Seconds of the slowest of `count` writers, drawn as many at a time as a sample is of."""
    whole, rest = divmod(count, spread.of)

    def draw() -> float:
        drawn = list(_drawn(spread, whole, rng)) if whole else []
        if rest:
            drawn.append(_slowest_of_fewer(spread, rest / spread.of, rng))
        return max(float(max(drawn)), _LEAST) * mean_s

    return draw


def _slowest_of_fewer(spread: Spread, share: float, rng: np.random.Generator) -> float:
    """Of so large a share of the writers that a sample is of: what is below x with probability
    F(x)^share."""
    above = -np.expm1(np.log1p(-rng.random()) / share)
    if spread.kind == "empirical":
        return spread.values[min(int((1 - above) * len(spread.values)), len(spread.values) - 1)]
    return float(tail_quantile(spread, [above])[0])


def _drawn(spread: Spread, count: int, rng: np.random.Generator) -> Any:
    shape = spread.shape
    if spread.kind == "lognormal":
        return rng.lognormal(-(shape**2) / 2, shape, count)
    if spread.kind == "weibull":
        return rng.weibull(shape, count) / math.gamma(1 + 1 / shape)
    if spread.kind == "gumbel":
        return np.maximum(rng.gumbel(1 - EULER * shape, shape, count), 0.0)
    if spread.kind == "empirical":
        return rng.choice(spread.values, count)
    return np.ones(1)


def simulate(job: Job, rng: np.random.Generator) -> Outcome:
    """One run of the job."""
    run = _Run(job, rng)
    while not run.step():
        pass
    return run.outcome


class _Run:
    def __init__(self, job: Job, rng: np.random.Generator) -> None:
        self._job, self._rng = job, rng
        self.outcome = Outcome()
        self._done = 0  # segments computed and copied
        self._durable = 0  # segments on shared storage
        self._target = 0  # segments that what is on its way holds
        self._way = 0.0  # seconds of it to go; 0: nothing is on its way
        self._fails_in = rng.exponential(job.mtbf_s)
        self._now, self._left = "compute", job.work_s

    def step(self) -> bool:
        """Up to the next event. True when the job has ended."""
        job = self._job
        restarting = self._now.startswith("restart")
        pace = job.slowdown if self._way and self._now == "compute" else 1.0
        until = math.inf if self._now == "wait" else self._left * pace
        way = self._way if self._way and not restarting else math.inf
        passed = min(self._fails_in, until, way)
        spent = self.outcome.by_activity
        spent[self._now] = spent.get(self._now, 0.0) + passed
        self.outcome.wall_s += passed
        self._fails_in -= passed
        if until < math.inf:
            self._left -= passed / pace
        if way < math.inf:
            self._way -= passed
        if passed == way:
            self._way, self._durable = 0.0, self._target
            self.outcome.written += 1
            return self._now == "wait" and self._arrived()
        if passed == until:
            return self._ended()
        self._failed()
        return False

    def _ended(self) -> bool:
        """What the program was at is over; on to what comes next."""
        job = self._job
        if self._now == "compute":
            if self._way and (self._done + 1) % job.every == 0:
                self._begin("wait", 0.0)  # the copy that comes would be the second on its way
            else:
                self._begin("copy", job.copy_s)
        elif self._now == "copy":
            self._done += 1
            if self._done % job.every == 0:
                self._target, self._way = self._done, job.write()
            self._go_on()
        else:
            if self._now == "restart":
                self._done = self._durable
            elif self._target > self._durable:  # what was on its way begins anew
                self._way = job.write()
            self._go_on()
        return False

    def _go_on(self) -> None:
        over = self._done == self._job.patterns * self._job.every
        wait = self._way and (over or not self._job.behind)
        self._begin("wait" if wait else "compute", self._job.work_s)

    def _arrived(self) -> bool:
        """What the program has waited for is on shared storage."""
        job = self._job
        if self._durable == job.patterns * job.every:
            return True
        if job.behind:
            self._begin("copy", job.copy_s)
        else:
            self._begin("compute", job.work_s)
        return False

    def _failed(self) -> None:
        job = self._job
        self.outcome.failures += 1
        self._fails_in = self._rng.exponential(job.mtbf_s)
        local = self._rng.random() < job.survive and self._now != "restart"
        if local:
            self._begin("restart-local", job.restart_local_s)
        else:
            self._target, self._way = self._durable, 0.0
            self._begin("restart", job.restart_s)

    def _begin(self, what: str, seconds: float) -> None:
        self._now, self._left = what, seconds


def band(values: list[float], deviations: float = 3.0) -> Band:
    """Mean and so many standard errors about it: 3 hold it 997 times of 1000."""
    mean = statistics.fmean(values)
    width = deviations * statistics.stdev(values) / math.sqrt(len(values))
    return Band(mean, mean - width, mean + width)
