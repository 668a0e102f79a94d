"""The page cache, measured by `brigade bench cache` and simulated by `brigade model cache`: how far
apart are they, on file systems whose devices write and read at limited rates?

    python bench/cache.py --out bench/results/cache.json           root; a minute a cell and round
    python bench/cache.py --out FILE --again FILE                   simulate anew what was measured
    python bench/cache.py --out FILE --again FILE --cells NAME,…    and measure these, too

A cell is a file system, its rates of writing and reading (MiB/s), and which limit of dirty bytes is
met first: the machine's (vm.dirty_bytes, 64 MiB meanwhile), the device's own (bdi strict_limit),
none before the memory is full, as in cgroups of version 1, or that of the client of a shared file
system: MooseFS in the lab, its node's link limited in each direction. The machine that is simulated
has the kernel's settings and what a study calibrates before it measures anything; nothing is
fitted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from support import limited
from support.options import end_in_order
from support.samples import save

from brigade.bench.cache.plan import MIB
from brigade.lab import Lab
from brigade.model.cache import compare, figure, from_study, simulate, workload
from brigade.model.cache.settings import POLICIES

_KEPT = 24  # samples of a step
_PARTS = 4  # of a file, become one


@dataclass(frozen=True)
class Cell:
    kind: str  # of the file system
    write: int  # MiB/s
    read: int
    limit: str = "machine"  # whose limit of dirty bytes is met first

    @property
    def name(self) -> str:
        return f"{self.kind} {self.write}/{self.read} {self.limit}"


CELLS = [
    Cell("ext4", 80, 80),
    Cell("ext4", 60, 200),
    Cell("xfs", 80, 80),
    Cell("xfs", 60, 200),
    Cell("xfs", 150, 50),
    Cell("ext4", 60, 200, "device"),
    Cell("ext4", 60, 200, "memory"),
    Cell("xfs", 60, 200, "memory"),
    Cell("moosefs", 60, 200, "client"),
]


@contextlib.contextmanager
def place(cell: Cell, base: Path) -> Iterator[Path]:
    with contextlib.ExitStack() as stack:
        if cell.limit == "machine":
            stack.enter_context(limited.dirty_limits(32 * MIB, 64 * MIB))
        strict = 48 * MIB if cell.limit == "device" else 0
        yield stack.enter_context(
            limited.file_system(cell.kind, base, 4 << 30, cell.write * MIB, cell.read * MIB, strict)
        )


def measured(cell: Cell, base: Path, seconds: float) -> dict[str, Any]:
    """A study of the cell."""
    words = ["-m", "brigade", "bench", "cache", "--json", "--seconds", str(seconds)]
    command = [sys.executable, *words, "--sizes", "4k,1M", "--dir"]
    if cell.kind == "moosefs":
        return shortened(json.loads(in_lab(cell, command)))
    with place(cell, base) as folder:
        done = subprocess.run([*command, str(folder)], stdout=subprocess.PIPE, check=True)
    return shortened(json.loads(done.stdout))


def in_lab(cell: Cell, command: list[str]) -> str:
    """What a command prints on a node of a lab with MooseFS and a limited link."""
    lab = Lab.up(name="cache", nodes=1, fs="moosefs")
    try:
        for member, device, rate in (("n0", "eth0", cell.write), ("hub", "v-n0", cell.read)):
            limit = ["rate", f"{8 * rate * MIB}bit", "burst", "256k", "latency", "400ms"]
            words = ["tc", "qdisc", "add", "dev", device, "root", "tbf", *limit]
            lab.exec(member, words, check=True)
        done = lab.exec(
            "n0", [*command, lab.shared], cwd="/", check=True, stdout=subprocess.PIPE, text=True
        )
        return str(done.stdout)
    finally:
        lab.down()


def shortened(study: dict[str, Any]) -> dict[str, Any]:
    """A study with fewer samples: several in a row become one, and so do parts of files."""
    study["room"].pop("folder", None)
    for one in study["results"]:
        one.pop("state", None)
        if "samples" in one:
            one["samples"] = merged(one["samples"])
        if "parts" in one and len(one["parts"]) == simulate.PARTS:
            parts = one["parts"]
            one["parts"] = [sum(parts[i : i + _PARTS]) for i in range(0, len(parts), _PARTS)]
    return {key: value for key, value in study.items() if key not in ("calibration", "host")}


def merged(samples: list[list[float]]) -> list[list[float]]:
    each = -(-len(samples) // _KEPT)
    groups = [samples[at : at + each] for at in range(0, len(samples), each)]
    return [
        [
            group[0][0],
            round(sum(one[1] for one in group), 6),
            sum(one[2] for one in group),
            max(one[3] for one in group),
        ]
        for group in groups
    ]


def judged(studies: list[dict[str, Any]]) -> dict[str, Any]:
    """The medians of a cell's rounds beside the medians of their simulations, by policy."""
    steps = workload.parse("\n".join(studies[0]["steps"]))
    direct = [step.direct for step in steps]
    found: dict[str, Any] = {}
    for policy in POLICIES:
        runs = []
        for study in studies:
            own = workload.parse("\n".join(study["steps"]))
            simulated = simulate.run(own, from_study.machine(study, policy))
            pairs = list(zip(direct, study["results"], simulated))
            runs.append([_phase(*one) for one in pairs])
            looks = compare.looks(study["results"], simulated)
        phases = [_middle([run[at] for run in runs]) for at in range(len(steps))]
        kept = [one for one in phases if one and one.measured >= compare.LEAST_S]
        found[policy] = {
            "phases": [[p.name, p.kind, p.measured, p.simulated, p.error] for p in kept],
            "summary": compare.summary(kept),
            "cached": [[one.name, one.measured[0], one.simulated[0]] for one in looks],
        }
    return found


def _phase(direct: bool, one: dict[str, Any], other: dict[str, Any]) -> compare.Phase | None:
    kind = "direct" if direct else one["operation"]
    if kind not in compare.KINDS:
        return None
    return compare.Phase(one["name"], kind, compare.busy(one), compare.busy(other))


def _middle(same: list[compare.Phase | None]) -> compare.Phase | None:
    there = [one for one in same if one]
    if not there:
        return None
    return compare.Phase(
        there[0].name,
        there[0].kind,
        median(one.measured for one in there),
        median(one.simulated for one in there),
    )


def table(cells: dict[str, Any]) -> None:
    """Markdown: mean (largest) error of the phases that go through the cache, how far all their
    time is off, and which share of a file that was read twice outlives a large write."""
    names = (
        "write",
        "fsync",
        "read",
        "all",
        "without sleeps",
        "fifo, without sleeps",
        "1 s",
        "time",
    )
    print(f"| cell | {' | '.join(names)} | kept: measured, linux, fifo |")
    print("|---|" + "---|" * (len(names) + 1))
    for name, found in cells.items():
        through, queue = (_through(found[policy]) for policy in ("linux", "fifo"))
        awake, queue_awake = (
            [one for one in phases if not one.name.startswith("sleep")]
            for phases in (through, queue)
        )
        kinds = [[one for one in through if one.kind == kind] for kind in compare.KINDS[:3]]
        long = [one for one in through if one.measured >= 1]
        cells_ = [_error(one) for one in (*kinds, through, awake, queue_awake, long)]
        time = sum(one.simulated for one in through) / sum(one.measured for one in through)
        shares = [
            f"{100 * share:.0f}%"
            for (look, a, b), (_, _, c) in zip(found["linux"]["cached"], found["fifo"]["cached"])
            if look == "small after other"
            for share in (a, b, c)
        ]
        print(f"| {name} | {' | '.join(cells_)} | {100 * time - 100:+.0f}% | {', '.join(shares)} |")


def _through(found: dict[str, Any]) -> list[compare.Phase]:
    return [compare.Phase(*one[:4]) for one in found["phases"] if one[1] != "direct"]


def _error(phases: list[compare.Phase]) -> str:
    if not phases:
        return ""
    errors = [abs(one.error) for one in phases]
    return f"{100 * sum(errors) / len(errors):.0f}% ({100 * max(errors):.0f}%)"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where the samples go")
    parser.add_argument("--figure", type=Path, help="draw one cell's first round, and all phases")
    parser.add_argument("--of", default="xfs 60/200 machine", help="the cell that is drawn")
    parser.add_argument("--again", type=Path, help="what was measured already: only simulate")
    parser.add_argument(
        "--study",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="a study from elsewhere, as a cell; several of a name are its rounds",
    )
    parser.add_argument("--base", type=Path, default=Path("/var/tmp"), help="where images lie")
    parser.add_argument("--cells", help="names, with commas between; without: all")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0, help="of a study, about")
    chosen = parser.parse_args()
    end_in_order()
    studies: dict[str, list[dict[str, Any]]] = {}
    if chosen.again:
        kept = json.loads(chosen.again.read_text())["samples"]
        studies = {name: [shortened(one) for one in found] for name, found in kept.items()}
    if chosen.cells or not chosen.again:
        names = chosen.cells.split(",") if chosen.cells else [cell.name for cell in CELLS]
        for number in range(chosen.rounds):
            for cell in (one for one in CELLS if one.name in names):
                print(f"round {number + 1}: {cell.name}", file=sys.stderr, flush=True)
                found = measured(cell, chosen.base, chosen.seconds)
                studies.setdefault(cell.name, []).append(found)
    for word in chosen.study:
        name, _, path = word.partition("=")
        studies.setdefault(name, []).append(shortened(json.loads(Path(path).read_text())))
    cells = {name: judged(found) for name, found in studies.items()}
    settings = {"rounds": chosen.rounds, "seconds": chosen.seconds}
    save(chosen.out, "cache", settings, studies, cells=cells)
    table(cells)
    if chosen.figure:
        draw(studies[chosen.of][0], cells, chosen.figure)


def draw(study: dict[str, Any], cells: dict[str, Any], path: Path) -> None:
    """All cells' phases, and what one study measured beside both policies."""
    import matplotlib

    matplotlib.use("Agg")
    steps = workload.parse("\n".join(study["steps"]))
    simulated = {one: simulate.run(steps, from_study.machine(study, one)) for one in POLICIES}
    phases = {
        policy: [
            compare.Phase(*one[:4])
            for found in cells.values()
            for one in found[policy]["phases"]
            if one[1] != "direct"
        ]
        for policy in POLICIES
    }
    figure.draw_comparison(study["results"], simulated, phases, str(path))


if __name__ == "__main__":
    main()
