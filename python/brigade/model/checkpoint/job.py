"""A job, its storage and its failures; and what they come to for each way of checkpointing."""

from __future__ import annotations

from dataclasses import dataclass

from brigade.model.checkpoint import pattern
from brigade.model.checkpoint.spread import Spread, factor, largest

#: way -> what the program waits for
WAYS = {
    "sync": "all ranks wait until the slowest has written",
    "partial": "all wait for the copy to node memory or disk; the rest is written behind them",
    "full": "nobody waits: the program's own memory is written while it goes on",
}


@dataclass(frozen=True)
class Job:
    work_s: float  # of computing, if nothing else took time
    nodes: int
    cores: int  # processors of a node
    bytes: float  # of a checkpoint, all ranks
    rate: float  # bytes a second that shared storage takes
    writers: int
    writer_rate: float  # bytes a second that one writer can send; math.inf: never the limit
    copy_rate: float  # bytes a second of one node, to level 1
    mtbf_s: float  # between failures of the job
    start_s: float  # of a restart, before anything is read
    slowdown: float = 1.0  # of computing while something is written behind
    survive: float = 0.0  # share of failures that level 1 survives
    spread: Spread = Spread()

    @property
    def together_rate(self) -> float:
        """Bytes a second of all writers, were all alike."""
        return min(self.rate, self.writers * self.writer_rate)

    @property
    def write_s(self) -> float:
        """One checkpoint to shared storage, until the slowest writer is done, in the mean."""
        return self.bytes / self.together_rate * factor(self.spread, self.writers)

    @property
    def copy_s(self) -> float:
        return self.bytes / self.nodes / self.copy_rate

    @property
    def restart_s(self) -> float:
        return self.start_s + self.bytes / self.together_rate


@dataclass(frozen=True)
class Plan:
    """How a job checkpoints."""

    way: str  # of WAYS
    interval_s: float  # computing between two checkpoints of any level
    every: int = 1  # so many of them are one on shared storage


def timing(job: Job, plan: Plan) -> pattern.Timing:
    """Seconds of each part. Level 1 is there where the way copies first, or has more than one."""
    values, weights = largest(job.spread, job.writers)
    local = plan.way == "partial" or plan.every > 1
    return pattern.Timing(
        work_s=plan.interval_s,
        copy_s=job.copy_s if local else 0.0,
        write_s=values * (job.bytes / job.together_rate),
        weights=weights,
        behind=plan.way != "sync",
        mtbf_s=job.mtbf_s,
        restart_s=job.restart_s,
        every=plan.every,
        slowdown=job.slowdown if plan.way != "sync" else 1.0,
        survive=job.survive if local else 0.0,
        restart_local_s=job.start_s + job.copy_s if local else 0.0,
    )


def wall_s(job: Job, plan: Plan) -> float:
    """Expected time of the whole job; math.inf where it would not end."""
    return pattern.total_s(timing(job, plan), job.work_s)


@dataclass(frozen=True)
class Cost:
    """What a plan comes to; seconds of wall time unless said otherwise."""

    plan: Plan
    wall_s: float
    compute_s: float
    checkpoints_s: float  # more than computing if nothing failed: waiting, slower computing
    failures_s: float  # done again, and restarts
    overhead: float  # of the time of computing
    processor_hours: float
    checkpoints: float  # on shared storage, in all
    failures: float
    write_s: float  # of one
    peak_rate: float  # bytes a second while one is written
    mean_rate: float  # over the job
    least_rate: float  # with which each is there before the next; of sync: none, 0


def cost(job: Job, plan: Plan) -> Cost:
    parts = timing(job, plan)
    patterns = job.work_s / (plan.every * plan.interval_s)
    wall = wall_s(job, plan)
    quiet = patterns * pattern.quiet_s(parts)
    if parts.behind:  # of the last one, nobody computes: it is waited for; the first has no other
        quiet += job.write_s - (pattern.quiet_s(parts) - _unhindered(parts))
    slowest = factor(job.spread, job.writers)
    full = plan.every * (parts.slowdown * plan.interval_s + parts.copy_s) - parts.copy_s
    return Cost(
        plan=plan,
        wall_s=wall,
        compute_s=job.work_s,
        checkpoints_s=quiet - job.work_s,
        failures_s=wall - quiet,
        overhead=wall / job.work_s - 1,
        processor_hours=wall * job.nodes * job.cores / 3600,
        checkpoints=patterns,
        failures=wall / job.mtbf_s,
        write_s=job.write_s,
        peak_rate=job.together_rate,
        mean_rate=patterns * job.bytes / wall,
        least_rate=job.bytes * slowest / full if parts.behind else 0.0,
    )


def _unhindered(parts: pattern.Timing) -> float:
    return parts.every * (parts.work_s + parts.copy_s)
