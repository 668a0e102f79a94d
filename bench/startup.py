#!/usr/bin/env python3
"""Start a real Python and MPI program in the lab: from the shared file system, from each node's
warm local disk, under `brigade run`, and under `brigade run --fork`, in turn; count what reached
the file system and time the start.

    python bench/startup.py --demo            four widths, once: what `make demo` runs
    python bench/startup.py --ranks 32 --repeats 5 --out out/startup32

Each node has a copy of its own on its own disk, as real nodes have. Before every start the caches
of the shared file system's clients are dropped and every node's copy is read once, so that "local"
is a warm local disk, and free memory is written to and given back (support/memory.py). Writes
OUT/startup.json (raw samples) and OUT/startup.png.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support import stack
from support.figure import LABELS, draw
from support.memory import settle
from support.options import lab_parser, numbers, words
from support.samples import median, save

from brigade.lab import Lab

APP = Path(__file__).parent / "apps/science.py"
VARIANTS = ("direct", "local", "brigade", "fork")
BRIGADE: dict[str, list[str]] = {"brigade": [], "fork": ["--fork"]}  # options of `brigade run`
RANK_MEMORY, NODE_MEMORY = 160 << 20, 256 << 20  # bytes: what is here a rank's, and is staged


def main() -> int:
    options = arguments()
    lab = Lab.up(name=options.lab, nodes=options.nodes, fs=options.fs)
    samples: list[dict[str, Any]] = []
    try:
        places = prepare(lab, options)
        for repeat in range(options.repeats):
            for ranks in options.ranks:
                for variant in options.variants:
                    sample = start(lab, places, variant, ranks, options, repeat)
                    samples.append(sample)
                    print(line(sample), flush=True)
    finally:
        if not options.keep_lab:
            lab.down()
    settings = {key: value for key, value in vars(options).items() if key != "cache"}
    settings["out"] = str(options.out)
    save(options.out / "startup.json", "startup", settings, samples)
    draw(
        samples,
        options.out / "startup.png",
        f"Starting Python with NumPy, SciPy, pandas, Matplotlib: {options.nodes} nodes",
    )
    print_table(samples, options)
    print(
        f"\nraw samples: {options.out / 'startup.json'}\nfigure:      {options.out / 'startup.png'}"
    )
    return 0


def arguments() -> argparse.Namespace:
    parser = lab_parser(__doc__, "demo", "out/demo")
    parser.add_argument("--demo", action="store_true", help="the defaults, once at each width")
    parser.add_argument("--ranks", type=numbers, default=[4, 8, 16, 32])
    parser.add_argument("--variants", type=words(), default=list(VARIANTS))
    parser.add_argument("--fs", default="moosefs", help="moosefs, or slow:0.5ms")
    parser.add_argument("--keep-lab", action="store_true", help="leave the lab up at the end")
    return parser.parse_args()


def prepare(lab: Lab, options: argparse.Namespace) -> dict[str, str]:
    """Install the stack on the local disk and on the shared file system, and make the image."""
    options.cache.mkdir(parents=True, exist_ok=True)
    step("installing NumPy, SciPy, pandas, Matplotlib, mpi4py on the local disk")
    local = stack.local_stack(options.cache)
    app = options.cache / "science.py"  # nodes have a /tmp of their own: this may lie there
    app.write_bytes(APP.read_bytes())
    step("copying them to the shared file system")
    shared = str(lab.shared)
    lab.exec("n0", stack.copy_command(local, f"{shared}/venv"), check=True)
    lab.exec("n0", ["cp", str(app), f"{shared}/science.py"], check=True)
    step("copying them to each node's own disk")
    for node in lab.nodes:
        lab.exec(node, stack.copy_command(local, f"{lab.local}/venv"), check=True)
        lab.exec(node, ["cp", str(app), f"{lab.local}/science.py"], check=True)
    places = {
        "local": f"{lab.local}/venv",
        "local_app": f"{lab.local}/science.py",
        "shared": f"{shared}/venv",
        "shared_app": f"{shared}/science.py",
        "images": f"{shared}/images",
    }
    for variant in [variant for variant in options.variants if variant in BRIGADE]:
        step(f"trial run and image ({' '.join(['brigade run', *BRIGADE[variant]])})")
        sample = start(lab, places, variant, options.nodes, options, -1, drop=False)
        report = sample["report"]
        if report["unstaged"]:
            raise SystemExit(f"the first brigade run went unstaged: {report['unstaged']}")
        trial = report["image"]["trial"]
        if trial is None:
            continue  # an image made by an earlier variant serves
        step(f"image made: trial {trial['seconds']:.1f} s, writing {trial['build_seconds']:.1f} s")
    return places


def start(
    lab: Lab,
    places: dict[str, str],
    variant: str,
    ranks: int,
    options: argparse.Namespace,
    repeat: int,
    drop: bool = True,
) -> dict[str, Any]:
    """One start of the program; returns its sample."""
    kind = "local" if variant == "local" else "shared"
    program = [f"{places[kind]}/bin/python", places[f"{kind}_app"]]
    job = ["srun", "--mpi=pmix", "-N", str(options.nodes), "-n", str(ranks), *program]
    report_file = options.cache / "report.json"
    if variant in BRIGADE:
        report_file.unlink(missing_ok=True)
        brigade = [
            str(Path(sys.executable).parent / "brigade"),
            "run",
            "--quiet",
            "--json",
            str(report_file),
            *BRIGADE[variant],
        ]
        job = [*brigade, "--", *job]
    if drop:
        lab.drop_caches()
        for node in lab.nodes:
            lab.exec(node, stack.warm_command(places["local"]), check=True)
        settle(ranks * RANK_MEMORY + len(lab.nodes) * NODE_MEMORY)
    lab.reset()
    begin = time.time()
    environment = {"BENCH_T0": repr(begin), "BRIGADE_CACHE": places["images"]}
    result = lab.run(job, env=environment, cwd="/", stdout=PIPE, stderr=PIPE, text=True)
    total = time.time() - begin
    if result.returncode:
        raise SystemExit(
            f"{' '.join(job)}\nended with {result.returncode}:\n{result.stdout}{result.stderr}"
        )
    stats = lab.stats().total
    lines = [text for text in result.stdout.splitlines() if text.strip()]
    timing = json.loads(lines[-1])
    return {
        "variant": variant,
        "ranks": ranks,
        "repeat": repeat,
        "seconds": timing["max"],
        "rank_seconds": timing["seconds"],
        "rank_processor_seconds": timing["processor"],  # of all ranks, until their first lines
        "rank_sleeps": timing["sleeps"],
        "bytes": timing["bytes"],
        "total_seconds": total,
        "requests": stats.requests,
        "request_kinds": stats.kinds,
        "read_bytes": stats.bytes_read,
        "answer": lines[-2],
        "report": json.loads(report_file.read_text()) if variant in BRIGADE else None,
    }


def line(sample: dict[str, Any]) -> str:
    return (
        f"  {sample['variant']:8} {sample['ranks']:3} ranks  "
        f"{sample['seconds']:7.2f} s to the first line  "
        f"{sample['requests']:8,} requests  {sample['read_bytes'] / 2**20:7.1f} MiB read"
    )


def step(text: str) -> None:
    print(f"-- {text}", flush=True)


def print_table(samples: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """Medians by width, and ratios to the warm local disk."""
    from rich.console import Console
    from rich.table import Table

    answers = {(s["ranks"], s["answer"]) for s in samples}
    agree = len(answers) == len({s["ranks"] for s in samples})
    table = Table(
        title=f"launch to first line after the imports, {options.nodes} nodes, "
        f"medians of {options.repeats}"
    )
    for name in ("ranks", "start", "seconds", "/ local", "requests", "MiB read"):
        table.add_column(name, justify="left" if name == "start" else "right")
    for ranks in options.ranks:
        local = median(samples, "seconds", variant="local", ranks=ranks)
        for variant in options.variants:
            at = {"variant": variant, "ranks": ranks}
            seconds = median(samples, "seconds", **at) or 0.0
            table.add_row(
                str(ranks), LABELS[variant], f"{seconds:.2f}",
                f"{seconds / local:.2f}" if local else "-",
                f"{median(samples, 'requests', **at):,.0f}",
                f"{(median(samples, 'read_bytes', **at) or 0) / 2**20:.1f}",
                end_section=variant == options.variants[-1],
            )  # fmt: skip
    Console().print(table)
    print(
        "answers of the program:",
        "the same in every variant" if agree else "DIFFER between variants",
    )
    for _, answer in sorted(answers):
        print("  " + answer)


if __name__ == "__main__":
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[0]} ended with {error.returncode}: {error.stderr or ''}")
