"""What to do, in words: interval, writers, rate, each with its reason."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from brigade.model.checkpoint import optimum
from brigade.model.checkpoint.job import WAYS, Cost, Job
from brigade.model.checkpoint.optimum import Flat
from brigade.model.checkpoint.spread import factor

GOOD = 0.005  # of computing: what a simpler way may cost more
SIMPLEST = ("sync", "partial", "full")


@dataclass(frozen=True)
class Advice:
    chosen: Cost
    flat: Flat
    writers: int | None  # None: what one can send is not known
    rate: float | None  # least with which the overhead stays within the budget
    lines: tuple[str, ...]


def advise(job: Job, costs: Sequence[Cost], budget: float, ranks: int) -> Advice:
    """`budget`: the share of computing that checkpoints and failures may cost."""
    chosen = choose(costs)
    room = optimum.flat(job, chosen.plan)
    count = optimum.writers(job, ranks) if math.isfinite(job.writer_rate) else None
    rate = optimum.smallest(job, chosen.plan, budget)
    lines = (
        _interval(job, chosen, room),
        _way(costs, chosen),
        _writers(job, count),
        _rate(job, chosen, rate, budget),
    )
    return Advice(chosen, room, count, rate, lines)


def choose(costs: Sequence[Cost]) -> Cost:
    """The simplest way that costs at most GOOD of computing more than the best."""
    least = min(one.overhead for one in costs)
    near = [one for one in costs if one.overhead <= least + GOOD]
    return min(near or costs, key=lambda one: SIMPLEST.index(one.plan.way))


def _interval(job: Job, chosen: Cost, room: Flat) -> str:
    plan = chosen.plan
    levels = ""
    if plan.every > 1:
        levels = f", every {_nth(plan.every)} one to shared storage, the others to the nodes"
        if plan.every == max(optimum.EVERY):
            levels += " (fewer on shared storage were not tried)"
    return (
        f"Interval: checkpoint after every {span(plan.interval_s)} of computing{levels}. Anything "
        f"from {span(room.low_s)} to {span(room.high_s)} takes at most "
        f"{optimum.NEAR - 1:.0%} longer: do not tune further. Why: a failure comes each "
        f"{span(job.mtbf_s)}, a checkpoint takes {span(chosen.write_s)} to write."
    )


def _way(costs: Sequence[Cost], chosen: Cost) -> str:
    others = [one for one in costs if one is not chosen]
    text = (
        f"Way: {chosen.plan.way} ({WAYS[chosen.plan.way]}): {chosen.overhead:.1%} more than "
        "computing alone"
    )
    for one in others:
        text += f"; {one.plan.way} {one.overhead:.1%}"
    saved = max(costs, key=lambda one: one.processor_hours).processor_hours
    saved -= chosen.processor_hours
    if saved > 0:
        text += f". It saves {count_of(saved)} processor hours against the dearest"
    return text + "."


def _writers(job: Job, count: int | None) -> str:
    if count is None:
        return (
            "Writers: what one can send is not known (--writer-rate; `brigade bench checkpoint` "
            f"with one rank measures it). With {job.writers:,} each must send "
            f"{rate_of(job.rate / job.writers)}."
        )
    rate = min(job.rate, count * job.writer_rate)
    text = f"Writers: {count:,}, which give {rate_of(rate)}"
    if job.spread.kind != "none":
        one = f"the slowest of {job.spread.of:,}" if job.spread.of > 1 else "one"
        slow = factor(job.spread, count)
        text += f"; the slowest of them takes {slow:.2f} times as long as {one} does in the mean"
    if count != job.writers:
        asked = dataclasses.replace(job, writers=count)
        change = asked.write_s / job.write_s
        text += f" (a checkpoint takes {change:.2f} times as long as with {job.writers:,})"
    return text + "."


def _rate(job: Job, chosen: Cost, rate: float | None, budget: float) -> str:
    if rate is None:
        return (
            f"Rate: no storage is fast enough for {budget:.0%} of overhead: failures and restarts "
            "alone cost more. A shorter restart, or a level 1 that survives them, would help."
        )
    text = (
        f"Rate: {rate_of(rate)} while checkpoints are written keep the overhead within "
        f"{budget:.0%}; you have {rate_of(chosen.peak_rate)}, of which "
        f"{rate_of(chosen.mean_rate)} are used in the mean"
    )
    if rate > chosen.peak_rate:
        text += ". That is too little"
    if chosen.least_rate:
        text += f". Below {rate_of(chosen.least_rate)} one is not there before the next"
    return text + "."


def _nth(number: int) -> str:
    teen = number // 10 % 10 == 1
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def span(seconds: float) -> str:
    """A length of time with about two digits, in the unit that people use for it."""
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            value = seconds / length
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def rate_of(value: float) -> str:
    """Bytes a second with three digits, powers of 1024."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1000 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.3g} {unit}/s"


def count_of(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
