#!/usr/bin/env python3
"""Lay the model over published start-up times: fit on the smallest points, predict the others.

    python bench/published.py --out out/published

Three programs (bench/published/README.md). What is fitted is one number for each: the service time
of the metadata server. For Pynamic, of which one point is known, nothing is fitted at all.
Writes OUT/published.json and OUT/published.png, and prints a table with the error of each point.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from brigade.model import demand, fit, startup
from brigade.model.demand import Demand
from brigade.model.fit import Sample
from brigade.model.predict import steady_seconds
from brigade.model.system import System

DATA = Path(__file__).parent / "published"
FORGETFUL = {"caches_names": False, "caches_absent": False}


@dataclass
class Case:
    """A published curve, and the model fitted to its smallest points."""

    name: str
    demand: Demand
    system: System
    each: int  # ranks a node
    points: list[tuple[int, float, str]]  # ranks, seconds, where it is from
    fitted_to: int  # ranks of the widest point that the fit sees
    fitted: list[str]

    def nodes(self, ranks: int) -> int:
        return max(1, -(-ranks // self.each))

    def seconds(self, ranks: int) -> float:
        return steady_seconds(startup.direct(self.demand, self.system, ranks, self.nodes(ranks)))

    def fit(self, start: dict[str, float]) -> None:
        small = [point for point in self.points if point[0] <= self.fitted_to]
        known = [Sample(self.nodes(ranks), ranks, seconds) for ranks, seconds, _ in small]
        self.demand, self.system, _ = fit.fit(
            known, startup.direct, self.demand, self.system, start, seconds=steady_seconds
        )
        self.fitted = list(start)

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "program": self.name, "ranks": ranks, "published": seconds, "source": source,
                "fitted_on": ranks <= self.fitted_to, "model": self.seconds(ranks),
                "error": self.seconds(ranks) / seconds - 1,
            }
            for ranks, seconds, source in self.points
        ]  # fmt: skip


def rows_of(name: str) -> list[dict[str, str]]:
    with open(DATA / name, newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def cloadtest() -> Case:
    """710 libraries, each opened once by each rank: a look-up and an open, as in the other two;
    fitted up to 576 ranks."""
    system = System(name="JUROPA", servers=1, cores=8, **FORGETFUL)
    wanted = demand.from_counts(
        system, lookups=710, opens=710, node_bytes=32 * 2**20, cpu_s=0.0, image_bytes=0.0,
        name="CLoadtest",
    )  # fmt: skip
    points = [
        (int(row["ranks"]), float(row["seconds"]), "printed")
        for row in rows_of("cloadtest_juropa.csv")
    ]
    case = Case("CLoadtest on JUROPA", wanted, system, 8, points, 576, [])
    case.fit({"service_s": 1e-4})
    return case


def warp() -> Case:
    """3,388 opens (495 succeed), 1,632 stats (848 succeed), 500 reads of each rank; fitted on the
    one measured point. The last is what the text says of 36,000 ranks: 42 times of 7 minutes."""
    system = System(name="Hopper", servers=1, cores=24, **FORGETFUL)
    wanted = demand.from_counts(
        system, lookups=495 + 848, absent=(3388 - 495) + (1632 - 848), opens=495, reads=500,
        cpu_s=0.0, image_bytes=0.0, name="Warp",
    )  # fmt: skip
    home = [row for row in rows_of("startup_points.csv") if row["file_system"] == "home (GPFS)"]
    points = [(int(r["ranks"]), float(r["seconds"]), r["note"].partition(" 3388")[0]) for r in home]
    points[0] = (*points[0][:2], "measured")
    points.append((36_000, 42 * 420.0, "42 times 7 minutes"))
    case = Case("Warp on Hopper, home", wanted, system, 24, points, 1024, [])
    case.fit({"service_s": 1e-4})
    return case


def pynamic(service_s: float) -> list[Case]:
    """495 libraries, 5,671 opens and stats of each rank, on 512 nodes; nothing is fitted to its one
    point: the service time is that of CLoadtest's Lustre, once with nodes that remember names and
    once with nodes that do not."""
    found = []
    for remembers in (True, False):
        system = System(
            name="Sierra", servers=1, cores=12, service_s=service_s,
            caches_names=remembers, caches_absent=remembers,
        )  # fmt: skip
        wanted = demand.from_counts(
            system, absent=5671 - 495, lookups=495, opens=495, node_bytes=1.1 * 2**30,
            cpu_s=0.0, image_bytes=0.0, name="Pynamic",
        )  # fmt: skip
        sierra = [r for r in rows_of("startup_points.csv") if r["system"] == "sierra"]
        points = [(int(r["ranks"]), float(r["seconds"]), "measured") for r in sierra]
        how = "remember" if remembers else "forget"
        found.append(Case(f"Pynamic on Sierra, nodes {how}", wanted, system, 12, points, 0, []))
    return found


def main() -> int:
    options = arguments()
    cases = [cloadtest(), warp()]
    cases += pynamic(cases[0].system.service_s)
    rows = [row for case in cases for row in case.rows()]
    show(cases, rows)
    options.out.mkdir(parents=True, exist_ok=True)
    fitted = {case.name: {"service_s": case.system.service_s} for case in cases}
    content = {"benchmark": "published", "fitted": fitted, "rows": rows}
    (options.out / "published.json").write_text(json.dumps(content, indent=1) + "\n")
    draw(cases, options.out / "published.png")
    print(f"\nfigure: {options.out / 'published.png'}")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("out/published"))
    return parser.parse_args()


def show(cases: list[Case], rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, title="seconds: published, and the model")
    for name in ("program", "ranks", "", "published", "model", "error", "source"):
        table.add_column(name, justify="left" if name in ("program", "source") else "right")
    for row in rows:
        table.add_row(
            row["program"], f"{row['ranks']:,}", "fitted" if row["fitted_on"] else "predicted",
            f"{row['published']:,.1f}", f"{row['model']:,.1f}", f"{100 * row['error']:+.1f}%",
            row["source"],
        )  # fmt: skip
    Console(width=120).print(table)
    for case in cases:
        print(
            f"{case.name}: {1e6 * case.system.service_s:.1f} us a request"
            + f" (fitted: {', '.join(case.fitted) or 'nothing'})"
        )


def draw(cases: list[Case], path: Path) -> None:
    """One panel a program: published points over the model."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    groups = [[cases[0]], [cases[1]], cases[2:]]
    tops = (4096, 40_000, 23_328)
    for axes, group, top in zip(panels, groups, tops):
        ranks = [max(1, round(64 * (top / 64) ** (i / 19))) for i in range(20)]
        for case, style in zip(group, ("-", "--")):
            label = "model" if len(group) == 1 else f"model, {case.name.partition(', ')[2]}"
            axes.plot(ranks, [case.seconds(n) for n in ranks], style, color="#4c72b0", label=label)
        one = group[0]
        for known, face, label in ((True, "#c44e52", "fitted"), (False, "none", "not seen by it")):
            points = [p for p in one.points if (p[0] <= one.fitted_to) == known]
            look = {"color": "#c44e52", "marker": "o", "linestyle": "", "markerfacecolor": face}
            if points:
                axes.plot([p[0] for p in points], [p[1] for p in points], label=label, **look)
        axes.set(xscale="log", yscale="log", xlabel="ranks", ylabel="seconds")
        axes.set_title(one.name.partition(", nodes")[0], fontsize=10)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
