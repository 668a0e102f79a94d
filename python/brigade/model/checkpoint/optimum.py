"""Which interval, how many levels, and how many writers make a job's time least; the least rate
with which a way is good enough."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brigade.model.checkpoint.job import WAYS, Cost, Job, Plan, cost, wall_s
from brigade.model.checkpoint.spread import factor

EVERY = (
    1,
    2,
    3,
    4,
    6,
    8,
    12,
    16,
    24,
    32,
    48,
    64,
)  # which are tried where level 1 survives something
GRID = 28
NEAR = 1.01  # an interval whose time is within this of the least is as good


@dataclass(frozen=True)
class Flat:
    """Intervals that are as good as the best one, in seconds."""

    low_s: float
    high_s: float


def interval(job: Job, way: str, every: int = 1) -> float:
    """The interval of least time, by search: on a grid of logarithms, then between neighbours."""
    points = _grid(job, every)
    times = [wall_s(job, Plan(way, one, every)) for one in points]
    least = min(range(len(points)), key=times.__getitem__)
    low, high = points[max(least - 1, 0)], points[min(least + 1, len(points) - 1)]
    return _golden(lambda one: wall_s(job, Plan(way, one, every)), low, high)


def best(job: Job, way: str, every: int | None = None) -> Cost:
    """The plan of least time of a way; `every` None: the best of EVERY."""
    tried: Sequence[int] = (every,) if every else EVERY
    if way == "full" or not job.survive and not every:
        tried = (1,)
    least: tuple[float, Plan] | None = None
    for count in tried:
        plan = Plan(way, interval(job, way, count), count)
        time = wall_s(job, plan)
        if least is not None and time > NEAR * least[0]:
            break  # one valley: more copies between two on shared storage only lose more
        least = min(least or (time, plan), (time, plan), key=lambda one: one[0])
    assert least is not None
    return cost(job, least[1])


def flat(job: Job, plan: Plan, near: float = NEAR) -> Flat:
    """How far the interval may go from the best one before the job takes `near` times as long."""
    bound = near * wall_s(job, plan)
    ends = _grid(job, plan.every)
    within = lambda one: wall_s(job, Plan(plan.way, one, plan.every)) <= bound  # noqa: E731
    return Flat(_edge(within, plan.interval_s, ends[0]), _edge(within, plan.interval_s, ends[-1]))


def _grid(job: Job, every: int) -> list[float]:
    high = job.work_s / every  # at least one pattern
    low = min(high / 2, 1e-3 * math.sqrt(2 * (job.write_s + job.copy_s) * job.mtbf_s))
    step = (high / low) ** (1 / (GRID - 1))
    return [low * step**i for i in range(GRID - 1)] + [high]


def _golden(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is least, to 4 digits of the argument."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = math.log(low), math.log(high)
    x, y = b - ratio * (b - a), a + ratio * (b - a)
    at_x, at_y = function(math.exp(x)), function(math.exp(y))
    while b - a > 1e-4:
        if at_x <= at_y:
            b, y, at_y = y, x, at_x
            x = b - ratio * (b - a)
            at_x = function(math.exp(x))
        else:
            a, x, at_x = x, y, at_y
            y = a + ratio * (b - a)
            at_y = function(math.exp(y))
    return math.exp((a + b) / 2)


def _edge(within: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last argument from `inside` towards `outside` for which it holds."""
    if within(outside):
        return outside
    while abs(math.log(outside / inside)) > 1e-3:
        middle = math.sqrt(inside * outside)
        inside, outside = (middle, outside) if within(middle) else (inside, middle)
    return inside


def writers(job: Job, most: int) -> int:
    """How many write a checkpoint in the least time: more fill the storage's rate, but the slowest
    of more is slower. Of powers of 2, of what fills the rate, and of as many as the job has; the
    fewest within 1 %. Of fewer than a sample is the slowest of, nothing was measured: none but the
    job's own number is tried there."""
    least_count = min(job.spread.of, most)
    tried = {2**i for i in range(most.bit_length())} | {least_count, most}
    if math.isfinite(job.writer_rate):
        tried.add(min(most, max(1, math.ceil(job.rate / job.writer_rate))))
    tried = {one for one in tried if one >= least_count} | {job.writers}
    ordered = sorted(one for one in tried if one <= most)

    def seconds(count: int) -> float:
        rate = min(job.rate, count * job.writer_rate)
        return job.bytes / rate * factor(job.spread, count)

    least = min(seconds(one) for one in ordered)
    return next(one for one in ordered if seconds(one) <= NEAR * least)


def all_ways(job: Job, every: int | None = None) -> list[Cost]:
    """The best plan of each way."""
    return [best(job, way, every) for way in WAYS]


def changed(job: Job, name: str, value: float, writers_grow: bool = False) -> Job:
    """The job with another number of nodes or writers, mtbf, rate or slowdown. More nodes have more
    to write, and fail more often; the time between failures is that of the whole job. Where
    `writers_grow` there are more of them, too."""
    if name == "nodes":
        more = value / job.nodes
        count = round(job.writers * more) if writers_grow else job.writers
        return dataclasses.replace(
            job, nodes=round(value), bytes=job.bytes * more, mtbf_s=job.mtbf_s / more,
            writers=max(1, count),
        )  # fmt: skip
    if name == "writers":
        return dataclasses.replace(job, writers=round(value))
    if name == "mtbf":
        return dataclasses.replace(job, mtbf_s=value)
    if name == "rate":
        return dataclasses.replace(job, rate=value)
    return dataclasses.replace(job, slowdown=value)


def smallest(job: Job, plan: Plan, overhead: float, most: float = 1e16) -> float | None:
    """The least rate of shared storage, in bytes a second, with which the plan's way at its best
    interval costs no more than `overhead` of computing; None if no rate does."""

    def costs(rate: float) -> float:
        asked = dataclasses.replace(job, rate=rate, writer_rate=math.inf)
        return best(asked, plan.way, plan.every).overhead

    low, high = 1.0, most
    if costs(high) > overhead:
        return None
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if costs(middle) <= overhead else (middle, high)
    return high
