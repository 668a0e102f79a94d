"""Costs, fits and advice, for people and for machines."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Callable

from rich.console import Console
from rich.table import Table

from brigade.console import make_console
from brigade.model.checkpoint import daly
from brigade.model.checkpoint.advise import Advice, count_of, rate_of, span
from brigade.model.checkpoint.check import Check
from brigade.model.checkpoint.fit import Fit
from brigade.model.checkpoint.job import WAYS, Cost, Job, Plan, wall_s


def as_json(job: Job, costs: Sequence[Cost], advice: Advice, **more: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "job": {**dataclasses.asdict(job), "write_s": job.write_s, "restart_s": job.restart_s},
        "ways": [dataclasses.asdict(one) for one in costs],
        "published": published(job),
        "advice": {
            "way": advice.chosen.plan.way,
            "interval_s": advice.chosen.plan.interval_s,
            "every": advice.chosen.plan.every,
            "as_good": dataclasses.asdict(advice.flat),
            "writers": advice.writers,
            "rate": advice.rate,
            "words": list(advice.lines),
        },
        **more,
    }


def published(job: Job) -> dict[str, float]:
    """Intervals of the published formulas, for checkpoints that the program waits for."""
    return {
        "young_s": daly.young(job.write_s, job.mtbf_s),
        "daly_s": daly.daly(job.write_s, job.mtbf_s),
        "exact_s": daly.exact(job.write_s, job.mtbf_s),
    }


def fit_json(found: Sequence[Fit]) -> list[dict[str, Any]]:
    return [
        {
            "kind": one.spread.kind, "parameters": one.parameters, "mean_s": one.mean_s,
            "of": one.spread.of, "ks": one.distance, "p": one.p, "aic": one.aic,
        }
        for one in found
    ]  # fmt: skip


def print_fits(found: Sequence[Fit], what: str, chosen: str) -> None:
    table = _table("distribution", "parameters", "KS distance", "p", "AIC")
    for one in found:
        parameters = ", ".join(f"{name} {value:.4g}" for name, value in one.parameters.items())
        table.add_row(
            one.spread.kind, parameters, f"{one.distance:.3f}", f"{one.p:.2f}", f"{one.aic:.1f}"
        )
    console = _console()
    console.print(f"Slow ranks: {what}; used: {chosen}")
    console.print(table)
    if chosen != "empirical" and all(one.p < 0.05 for one in found):
        console.print(
            "None fits (p below 0.05): take widths beyond the measured one as rough, or take the "
            "samples themselves: --spread empirical."
        )
    console.print()


def print_costs(job: Job, costs: Sequence[Cost]) -> None:
    console = _console()
    console.print(
        f"{span(job.work_s)} of computing on {job.nodes:,} nodes of {job.cores}; a failure each "
        f"{span(job.mtbf_s)}; a checkpoint is {rate_of(job.bytes)[:-2]}"
    )
    table = _table("", *(one.plan.way for one in costs))
    for name, text in _QUANTITIES.items():
        table.add_row(name, *(text(one) for one in costs))
    console.print(table)
    for way, meaning in WAYS.items():
        console.print(f"{way}: {meaning}")


def _at_least(one: Cost) -> str:
    return rate_of(one.least_rate) if one.least_rate else "-"


_QUANTITIES: dict[str, Callable[[Cost], str]] = {
    "best interval, of computing": lambda one: span(one.plan.interval_s),
    "of which to shared storage": lambda one: (
        "each" if one.plan.every == 1 else f"1 of {one.plan.every}"
    ),
    "the job takes": lambda one: span(one.wall_s),
    "more than computing": lambda one: f"{one.overhead:.1%}",
    "  checkpoints": lambda one: f"{one.checkpoints_s / one.compute_s:.1%}",
    "  failures: done again, restarts": lambda one: f"{one.failures_s / one.compute_s:.1%}",
    "processor hours": lambda one: count_of(one.processor_hours),
    "one write to shared storage": lambda one: span(one.write_s),
    "rate of storage, peak": lambda one: rate_of(one.peak_rate),
    "  mean": lambda one: rate_of(one.mean_rate),
    "  or it is not done in time": _at_least,
}


def print_today(today: Sequence[Cost], best: Sequence[Cost]) -> None:
    parts = [
        f"{one.plan.way} {_overhead(one)} ({one.processor_hours - least.processor_hours:+,.0f} "
        "processor hours)"
        if math.isfinite(one.wall_s)
        else f"{one.plan.way} {_overhead(one)}"
        for one, least in zip(today, best)
    ]
    where = span(today[0].plan.interval_s)
    _console().print(f"\nAt an interval of {where}: {', '.join(parts)} against the best of each.")


def print_published(job: Job) -> None:
    found = published(job)
    exact = wall_s(job, Plan("sync", found["exact_s"]))
    parts = [
        f"{name} {span(found[key])} ({wall_s(job, Plan('sync', found[key])) / exact - 1:+.2%})"
        for name, key in (("Young", "young_s"), ("Daly", "daly_s"))
    ]
    _console().print(
        f"\nPublished formulas, for sync to shared storage: {', '.join(parts)}; exact "
        f"{span(found['exact_s'])}. In brackets: how much longer the job takes."
    )


def print_advice(advice: Advice) -> None:
    console = _console()
    console.print()
    for line in advice.lines:
        console.print(line)


def print_checks(checks: Sequence[Check]) -> None:
    console = _console()
    console.print(f"\nSimulated, {checks[0].runs} runs of each; mean and 3 standard errors:")
    for one in checks:
        band = one.band
        verdict = {True: "agrees", False: "DISAGREES", None: "too few failures to tell"}[one.agrees]
        console.print(
            f"{one.plan.way}: {one.predicted_s:,.0f} s predicted, {band.mean:,.0f} s simulated "
            f"[{band.low:,.0f}, {band.high:,.0f}]: {verdict}"
        )


def print_sweep(name: str, rows: Sequence[tuple[float, Sequence[Cost]]]) -> None:
    table = _table(name, *(one.plan.way for one in rows[0][1]))
    for value, costs in rows:
        table.add_row(swept(name, value), *map(_swept_cell, costs))
    console = _console()
    console.print()
    console.print(table)
    if any(one.plan.every > 1 for _, costs in rows for one in costs):
        console.print("interval, overhead; /n: each n-th goes to shared storage")


def _swept_cell(one: Cost) -> str:
    every = f" /{one.plan.every}" if one.plan.every > 1 else ""
    return f"{span(one.plan.interval_s)}{every}  {_overhead(one):>6}"


def _overhead(one: Cost) -> str:
    return f"{one.overhead:.1%}" if one.overhead < 100 else "never ends"


def swept(name: str, value: float) -> str:
    """A value of what is swept, as people read it."""
    if name == "rate":
        return rate_of(value)
    if name in ("mtbf", "interval"):
        return span(value)
    return f"{value:,g}"


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for number, name in enumerate(names):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    return table


def _console() -> Console:
    return make_console(highlight=False, markup=False, soft_wrap=True)
