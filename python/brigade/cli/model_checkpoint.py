"""`brigade model checkpoint`: when to checkpoint, how, through how many writers, at what rate."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any, Callable

import click

from brigade.cli.completing import FILE
from brigade.cli.counting import counted
from brigade.cli.duration import Duration, duration
from brigade.cli.number import Number
from brigade.cli.size import Size, size
from brigade.errors import BrigadeError, UsageError

EPILOG = """\b
Examples:
  brigade model checkpoint --nodes 1024 --node-size 64G --rate 500G
  brigade model checkpoint --nodes 1024 --node-size 64G --rate 500G --mtbf 24h --survive 0.8
  brigade model checkpoint --nodes 64 --size 2T --rate 20G --samples writes.json --interval 1h
  brigade model checkpoint --nodes 1024 --node-size 64G --rate 500G \\
      --sweep nodes=256,1024,4096,16384 --figure checkpoints.png
  brigade model checkpoint --nodes 16 --size 1T --rate 10G --simulate 100 --json
"""
NODE_MTBF = 5 * 365.25 * 86400
SWEPT = ("nodes", "mtbf", "writers", "rate", "slowdown", "interval")


@click.command(epilog=EPILOG)
@click.option("--nodes", type=click.IntRange(1), required=True, help="Nodes of the job.")
@click.option("--cores", type=click.IntRange(1), default=64, show_default=True, help="Of a node.")
@click.option("--size", "bytes_", type=Size(positive=True), help="Of a checkpoint, all ranks.")
@click.option("--node-size", type=Size(positive=True), help="What each node adds to a checkpoint.")
@click.option(
    "--rate", type=Size(positive=True), required=True, help="Bytes a second of the shared storage."
)
@click.option("--writers", type=click.IntRange(1), help="Ranks that write.  [default: one a node]")
@click.option(
    "--writer-rate", type=Size(positive=True), help="Bytes a second that one writer can send."
)
@click.option(
    "--copy-rate",
    type=Size(positive=True),
    default="2G",
    show_default=True,
    help="Bytes a second that a node copies to its own memory or disk.",
)
@click.option(
    "--slowdown",
    type=Number(1),
    default=1.1,
    show_default=True,
    help="Of computing, while something is written behind it.",
)
@click.option(
    "--mtbf", type=Duration(positive=True), help="Time between failures of the whole job."
)
@click.option(
    "--node-mtbf",
    type=Duration(positive=True),
    help="Time between failures of a node.  [default: 5y]",
)
@click.option(
    "--survive",
    type=Number(0, 1),
    default=0.0,
    show_default=True,
    help="Share of failures that copies on the nodes survive.",
)
@click.option(
    "--start",
    type=Duration(),
    default="60s",
    show_default=True,
    help="Of a restart, before anything is read.",
)
@click.option(
    "--work",
    type=Duration(positive=True),
    default="7d",
    show_default=True,
    help="Of computing, alone.",
)
@click.option(
    "--interval",
    type=Duration(positive=True),
    help="What is done today: its cost is shown as well.",
)
@click.option("--every", type=click.IntRange(1, 64), help="So many checkpoints, one is shared.")
@click.option(
    "--spread",
    metavar="KIND[:SHAPE]",
    help="How writers differ: lognormal:0.3, weibull:4, gumbel:0.1; with --samples the kind alone, "
    "or empirical.  [default: none; of samples, the one that fits best]",
)
@click.option("--samples", type=FILE, help="Measured writes: seconds, or a benchmark's JSON.")
@click.option("--variant", default="brigade", show_default=True, help="Whose writes of that JSON.")
@click.option("--slowest-of", type=click.IntRange(1), help="Ranks of which a sample is the last.")
@click.option(
    "--budget",
    type=Number(0, min_open=True),
    default=10.0,
    show_default=True,
    help="Percent of computing that checkpoints and failures may cost.",
)
@click.option("--sweep", metavar="NAME=LIST", help=f"One of {', '.join(SWEPT)}, at each value.")
@click.option("--simulate", type=click.IntRange(2), metavar="RUNS", help="Check by simulation.")
@click.option("--figure", type=FILE, help="Draw it: .png, .svg or .pdf (needs Matplotlib).")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of everything drawn.")
def command(**given: Any) -> None:
    """Say when a job should checkpoint, in which way, through how many writers, at what rate.

    Three ways: all ranks wait for the slowest write (sync); they wait for a copy on their nodes
    (partial); or for nothing (full). Of each, the best interval, the processor hours of the whole
    job with its failures, and the rate that storage must have. With --survive, copies stay on the
    nodes and only each n-th goes to shared storage. Nothing is started, and no file is written.
    """
    _needs_numpy()
    from brigade.model.checkpoint import advise, optimum, show

    if given["figure"]:
        from brigade.model import figure

        figure.check(given["figure"])
    sweep, values = _sweep(given["sweep"])
    found, what = _fits(given)
    job = _job(given, found)
    costs = optimum.all_ways(job, given["every"])
    if not any(math.isfinite(one.wall_s) for one in costs):
        raise BrigadeError(
            f"this job would not end: a restart takes {advise.span(job.restart_s)} and a "
            f"checkpoint {advise.span(job.write_s)}, a failure comes each "
            f"{advise.span(job.mtbf_s)}",
            hint="less to write, a higher --rate, or fewer nodes; are the values meant so?",
        )
    costs = [one for one in costs if math.isfinite(one.wall_s)]
    advice = advise.advise(job, costs, given["budget"] / 100, job.nodes * job.cores)
    today = _today(job, costs, given["interval"])
    rows = [(value, _costs(job, sweep, value, costs, given)) for value in values]
    checks = _checks(job, costs, given)
    if given["figure"]:
        from brigade.model.checkpoint import figure as drawing

        drawing.draw(job, costs, given["figure"], sweep, rows)
    if given["as_json"]:
        more = {
            "fits": show.fit_json(found),
            "today": [dataclasses.asdict(one) for one in today],
            "sweep": {
                "name": sweep,
                "rows": [
                    {"value": value, "ways": [dataclasses.asdict(one) for one in ways]}
                    for value, ways in rows
                ],
            },
            "simulated": [dataclasses.asdict(one) | {"agrees": one.agrees} for one in checks],
        }
        text = json.dumps(show.as_json(job, costs, advice, **more), indent=1, default=float)
        click.echo(text.replace("Infinity", "null"))
        return
    if found:
        show.print_fits(found, what, job.spread.kind)
    show.print_costs(job, costs)
    if today:
        show.print_today(today, costs)
    show.print_published(job)
    show.print_advice(advice)
    if rows and sweep:
        show.print_sweep(sweep, rows)
    if checks:
        show.print_checks(checks)
    if given["mtbf"] is None and given["node_mtbf"] is None:
        click.echo("\nASSUMED: a node fails once in 5 years; --mtbf says what yours do.")
    if given["figure"]:
        click.echo(f"\nfigure: {given['figure']}")


def _needs_numpy() -> None:
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        raise BrigadeError(
            "this model needs NumPy, which this Python does not have",
            hint="pip install numpy, or 'brigade[plot]', which draws its figures too",
        ) from error


def _job(given: dict[str, Any], found: list[Any]) -> Any:
    from brigade.model.checkpoint.job import Job

    if (given["bytes_"] is None) == (given["node_size"] is None):
        raise UsageError(
            "how large is a checkpoint?", hint="say --size of all, or --node-size of each node"
        )
    if given["mtbf"] is not None and given["node_mtbf"] is not None:
        raise UsageError("--mtbf and --node-mtbf say the same", hint="give one of them")
    nodes = given["nodes"]
    each = NODE_MTBF if given["node_mtbf"] is None else given["node_mtbf"]
    bytes_ = given["bytes_"] if given["bytes_"] is not None else nodes * given["node_size"]
    return Job(
        work_s=given["work"],
        nodes=nodes,
        cores=given["cores"],
        bytes=float(bytes_),
        rate=float(given["rate"]),
        writers=given["writers"] or nodes,
        writer_rate=float(given["writer_rate"] or math.inf),
        copy_rate=float(given["copy_rate"]),
        mtbf_s=given["mtbf"] if given["mtbf"] is not None else each / nodes,
        start_s=given["start"],
        slowdown=given["slowdown"],
        survive=given["survive"],
        spread=_spread(given, found),
    )


def _fits(given: dict[str, Any]) -> tuple[list[Any], str]:
    """What fits the samples of --samples, best first; and what they are."""
    from brigade.model.checkpoint import fit, measured

    path = given["samples"]
    if not path:
        return [], ""
    try:
        text = Path(path).read_text(encoding="utf-8")
        found = measured.parse(text, given["variant"])
        of = given["slowest_of"] or found.of
        given["measured"] = dataclasses.replace(found, of=of)
        return fit.fits(found.seconds, of, given["seed"]), found.what
    except OSError as error:
        raise BrigadeError(f"{path}: {error.strerror}", hint=measured.HINT) from error
    except UnicodeDecodeError as error:
        raise BrigadeError(f"{path} is not text", hint=measured.HINT) from error
    except BrigadeError as error:
        raise BrigadeError(f"{path}: {error.message}", hint=error.hint) from error


def _spread(given: dict[str, Any], found: list[Any]) -> Any:
    from brigade.model.checkpoint import spread

    text = given["spread"]
    if not text:
        return found[0].spread if found else spread.Spread()
    kind, _, shape = text.partition(":")
    if found and not shape:
        if kind == "empirical":
            return spread.of_samples(given["measured"].seconds, given["measured"].of)
        fitted = [one.spread for one in found if one.spread.kind == kind]
        if fitted:
            return fitted[0]
    elif kind in ("lognormal", "weibull", "gumbel"):
        try:
            value = float(shape)
        except ValueError:
            value = 0.0
        if value > 0 and math.isfinite(value):
            return spread.Spread(kind, value, (), given["slowest_of"] or 1)
    elif text == "none":
        return spread.Spread()
    raise UsageError(
        f"{text!r} is no spread",
        hint="lognormal:0.3, weibull:4, gumbel:0.1 or none; with --samples also empirical, or a "
        "kind without a number",
    )


def _sweep(text: str | None) -> tuple[str | None, list[float]]:
    if not text:
        return None, []
    name, _, listed = text.partition("=")
    if name not in SWEPT:
        raise UsageError(f"nothing called {name!r} is swept", hint=f"one of {', '.join(SWEPT)}")
    words = [word for word in listed.replace(" ", "").split(",") if word]
    try:
        if name == "rate":
            values = [float(size(word) or 0) for word in words]
        elif name in ("mtbf", "interval"):
            values = [duration(word) for word in words]
        else:
            values = [float(word) for word in words]
    except ValueError:
        values = []
    if name in ("nodes", "writers") and any(value != round(value) for value in values):
        values = []
    if not values or not all(math.isfinite(one) and one > 0 for one in values):
        raise UsageError(
            f"{text!r} is no list of values", hint="write nodes=256,1024 or mtbf=1h,1d"
        )
    if name == "slowdown" and min(values) < 1:
        raise UsageError("computing cannot be slowed below 1")
    return name, sorted(set(values))


def _costs(
    job: Any, sweep: str | None, value: float, costs: list[Any], given: dict[str, Any]
) -> list[Any]:
    from brigade.model.checkpoint import optimum

    if sweep == "interval":
        return _today(job, costs, value)
    assert sweep
    changed = optimum.changed(job, sweep, value, writers_grow=given["writers"] is None)
    return optimum.all_ways(changed, given["every"])


def _today(job: Any, costs: list[Any], interval: float | None) -> list[Any]:
    """Each way's cost at one interval."""
    from brigade.model.checkpoint.job import cost

    if interval is None:
        return []
    for one in costs:
        if interval * one.plan.every > job.work_s:
            raise UsageError(
                f"no checkpoint on shared storage within {job.work_s:g} s of computing",
                hint="a longer --work, or a shorter interval",
            )
    return [
        cost(job, dataclasses.replace(one.plan, interval_s=interval)) for one in costs
    ]  # fmt: skip


def _checks(job: Any, costs: list[Any], given: dict[str, Any]) -> list[Any]:
    from brigade.model.checkpoint.check import check

    runs = given["simulate"]
    if not runs:
        return []
    found = []
    with counted("simulating") as progress:
        for number, one in enumerate(costs):
            heard = _further(progress, number * runs, runs * len(costs)) if progress else None
            found.append(check(job, one.plan, runs, given["seed"], heard))
    return found


def _further(progress: Callable[[int, int], None], before: int, total: int) -> Any:
    """Progress of a part, as one of the whole."""
    return lambda done, _: progress(before + done, total)
