"""The model fitted on a few widths of bench/predict.py, and compared with all of them."""

from __future__ import annotations

import dataclasses
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from brigade.model import fit, startup
from brigade.model.demand import Demand
from brigade.model.fit import Sample
from brigade.model.system import System

DECODE_BANDWIDTH = 0.9e9
Middle = Callable[[list[float]], float]
NAMES = {"direct": "direct", "brigade": "Brigade"}
Widths = list[tuple[int, int]]
UNKNOWN_BACKGROUND = ("keep-alive", "register", "held-inodes", "held-inodes-old", "access-times")


def widths_of(
    samples: list[dict[str, Any]], variant: str, wanted: Widths, middle: Middle
) -> list[Sample]:
    """The middle (median, or least) of the repeats of each width that was measured."""
    found = []
    for nodes, ranks in wanted:
        same = [
            s for s in samples if (s["variant"], s["nodes"], s["ranks"]) == (variant, nodes, ranks)
        ]
        if not same:
            continue
        names = {name for s in same for name in s["request_kinds"]}
        kinds = {
            name: statistics.median(s["request_kinds"].get(name, 0) for s in same)
            for name in names
            if name not in UNKNOWN_BACKGROUND
        }
        seconds = middle([s["seconds"] for s in same])
        requests = statistics.median(s["requests"] for s in same)
        found.append(Sample(nodes, ranks, seconds, requests, kinds))
    return found


def machine(fs: str) -> System:
    """The lab before it is fitted: all nodes share this machine's processors, and nothing is far.
    The slow file system answers in a constant time, one request after the other; MooseFS' server
    and clients take processors instead, which are in the ranks' seconds."""
    return System(
        name=f"lab, {fs}", service_s=1e-3 if fs.startswith("slow") else 0.0, service_cv=0.0,
        servers=1, round_trip_s=0.0, caches_names=False, caches_absent=False, attribute_life_s=1.0,
        cores=os.cpu_count() or 1, shared_cores=True, decode_workers=1,
        link_bandwidth=1e12, data_bandwidth=1e12, network_bandwidth=1e12, hop_s=0.0,
    )  # fmt: skip


def fit_direct(samples: list[Sample], demand: Demand, system: System) -> tuple[Demand, System]:
    """Requests from the counters; processor seconds, and the service time, from the seconds."""
    first, further = fit.first_and_further(samples)
    known = dataclasses.replace(demand, first=first, further=further)
    if system.service_s:
        start = {"cpu_s": 0.7, "service_s": 1e-3}
    else:
        start = {"cpu_s": 0.7, "node_cpu_s": 0.3, "fixed_s": 0.5}
    demand, system, _ = fit.fit(samples, startup.direct, known, system, start)
    return demand, system


def fit_staging(
    samples: list[dict[str, Any]], fitted: Widths, system: System, middle: Middle
) -> System:
    """What staging takes beside unpacking, from staging's own seconds. On one and two nodes each
    has a processor to itself, so that the two cannot be told apart: the speed of unpacking is that
    of docs/explanation/staging.md."""
    nodes = {nodes for nodes, _ in fitted}
    staged = [s for s in samples if s["staging_seconds"] and s["nodes"] in nodes]
    rest = [s["staging_seconds"] - s["unpacked_bytes"] / DECODE_BANDWIDTH for s in staged]
    fixed = max(0.0, middle(rest))
    return dataclasses.replace(system, decode_bandwidth=DECODE_BANDWIDTH, stage_fixed_s=fixed)


def fit_brigade(
    samples: list[Sample], raw: list[dict[str, Any]], demand: Demand, system: System
) -> Demand:
    """Processor seconds of a rank out of memory, and what does not depend on the width. A node's
    own work is staging, which is known."""
    staged = next(s for s in raw if s["image_bytes"])
    known = dataclasses.replace(
        demand, image_bytes=staged["image_bytes"],
        unpacked_bytes=staged["unpacked_bytes"],
        brigade_requests=statistics.median(one.requests for one in samples),
    )  # fmt: skip
    start = {"brigade_cpu_s": 0.6, "brigade_fixed_s": 0.5}
    return fit.fit(samples, startup.brigade, known, system, start)[0]


def compare(
    raw: list[dict[str, Any]], fs: str, widths: dict[str, list[Widths]], middle: Middle
) -> dict[str, Any]:
    """Fit on some widths, predict all; rows of measured and predicted, and the values fitted.

    `widths`: of each variant, those to fit on and those to predict.
    """
    demand, system = Demand(name="bench/apps/science.py", source="lab"), machine(fs)
    out_of_memory = widths_of(raw, "brigade", widths["brigade"][0], middle)
    if out_of_memory:
        system = fit_staging(raw, widths["brigade"][0], system, middle)
        demand = fit_brigade(out_of_memory, raw, demand, system)
    demand, system = fit_direct(
        widths_of(raw, "direct", widths["direct"][0], middle), demand, system
    )
    rows = []
    for variant, build in (("direct", startup.direct), ("brigade", startup.brigade)):
        fitted, predicted = widths[variant]
        for one in widths_of(raw, variant, fitted + predicted, middle):
            phase = build(demand, system, one.ranks, one.nodes)
            seconds = fit.simulated(phase, seed=2, events=20_000)
            same = [s["seconds"] for s in raw if _is(s, variant, one)]
            rows.append({
                "variant": variant, "nodes": one.nodes, "ranks": one.ranks,
                "fitted_on": (one.nodes, one.ranks) in fitted,
                "measured": one.seconds, "least": min(same), "most": max(same),
                "predicted": seconds, "error": seconds / one.seconds - 1,
                "requests": one.requests, "requests_predicted": phase.requests,
            })  # fmt: skip
    return {
        "rows": rows,
        "demand": dataclasses.asdict(demand),
        "system": dataclasses.asdict(system),
    }


def _is(sample: dict[str, Any], variant: str, one: Sample) -> bool:
    return (sample["variant"], sample["nodes"], sample["ranks"]) == (variant, one.nodes, one.ranks)


def print_comparison(result: dict[str, Any]) -> None:
    """The table of middles with the least and the most, and what was fitted."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="seconds to the first line: measured, and the model", box=None)
    for name in ("", "nodes", "ranks", "", "measured", "from", "to", "model", "error", "requests"):
        table.add_column(name, justify="right")
    for row in result["rows"]:
        table.add_row(
            row["variant"], str(row["nodes"]), str(row["ranks"]),
            "fitted" if row["fitted_on"] else "PREDICTED",
            *(f"{row[name]:.2f}" for name in ("measured", "least", "most", "predicted")),
            f"{100 * row['error']:+.1f}%",
            f"{row['requests']:,.0f} ({row['requests_predicted']:,.0f})",
        )  # fmt: skip
    Console(width=110).print(table)
    worst = max((abs(row["error"]) for row in result["rows"] if not row["fitted_on"]), default=None)
    if worst is not None:
        print(f"largest error of a prediction: {100 * worst:.1f}% (aim: 15%)")
    demand, system = result["demand"], result["system"]
    print(
        f"fitted: processor seconds of a rank {demand['cpu_s']:.3f}, under Brigade "
        f"{demand['brigade_cpu_s'] or 0:.3f}; of a node {demand['node_cpu_s']:.3f}; "
        f"a request {1e3 * system['service_s']:.4f} ms"
    )


def markdown(result: dict[str, Any]) -> str:
    """The predicted rows as a table for docs/explanation/model.md."""
    lines = [
        "| | nodes | ranks | measured s | from, to | model s | error |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in result["rows"]:
        if not row["fitted_on"]:
            lines.append(
                f"| {NAMES[row['variant']]} | {row['nodes']} | {row['ranks']} "
                f"| {row['measured']:.2f} | {row['least']:.2f}, {row['most']:.2f} "
                f"| {row['predicted']:.2f} | {100 * row['error']:+.1f}% |"
            )
    return "\n".join(lines) + "\n"


def draw(result: dict[str, Any], path: Path, title: str) -> None:
    """Predicted against measured, both ways; on the line they are equal."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib import ticker

    figure, axes = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
    every = [row[name] for row in result["rows"] for name in ("measured", "predicted")]
    ends = [0.8 * min(every), 1.25 * max(every)]
    axes.plot(ends, ends, color="grey", linewidth=1)
    shades = [[0.85 * end for end in ends], [1.15 * end for end in ends]]
    axes.fill_between(ends, *shades, color="grey", alpha=0.15, linewidth=0, label="within 15%")
    looks = {"direct": ("#c44e52", "o", "direct"), "brigade": ("#4c72b0", "D", "Brigade")}
    for variant, (color, marker, label) in looks.items():
        for known, face, how in ((True, "none", "fitted"), (False, color, "predicted")):
            rows = [r for r in result["rows"] if (r["variant"], r["fitted_on"]) == (variant, known)]
            axes.plot(
                [r["measured"] for r in rows], [r["predicted"] for r in rows], color=color,
                marker=marker, markerfacecolor=face, linestyle="", label=f"{label}, {how}",
            )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="measured seconds", ylabel="seconds of the model")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(ticker.NullFormatter())
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
