"""The closed form held against the simulation: are both the same job?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional

import numpy as np

from brigade.model.checkpoint import pattern, simulate
from brigade.model.checkpoint.job import Job, Plan, timing
from brigade.model.simulate import Band

EVENTS = 3_000  # of a run: longer jobs are simulated for this many patterns, and scaled
ENOUGH = 30  # failures, below which the band says nothing
Progress = Optional[Callable[[int, int], None]]


@dataclass(frozen=True)
class Check:
    plan: Plan
    predicted_s: float
    band: Band  # of the mean of all runs
    runs: int
    failures: int  # in all runs

    @property
    def agrees(self) -> bool | None:
        """None: too few failures were met to tell."""
        return self.band.holds(self.predicted_s) if self.failures >= ENOUGH else None


def check(job: Job, plan: Plan, runs: int, seed: int, progress: Progress = None) -> Check:
    """The plan's time by both, for as many whole patterns as the job has (EVENTS at most)."""
    rng = np.random.default_rng(seed)
    parts = timing(job, plan)
    each = plan.every * plan.interval_s
    patterns = max(1, min(EVENTS // plan.every, round(job.work_s / each)))
    mean = job.bytes / job.together_rate
    draw = simulate.writer(job.spread, mean, job.writers, rng)
    simulated = simulate.Job(
        patterns, plan.every, plan.interval_s, parts.copy_s, draw, parts.behind, parts.slowdown,
        parts.mtbf_s, parts.survive, parts.restart_s, parts.restart_local_s,
    )  # fmt: skip
    times, failures = [], 0
    for number in range(runs):
        outcome = simulate.simulate(simulated, rng)
        times.append(outcome.wall_s)
        failures += outcome.failures
        if progress:
            progress(number + 1, runs)
    return Check(
        plan, pattern.total_s(parts, patterns * each), simulate.band(times), runs, failures
    )
