#!/usr/bin/env python3
"""Barriers and allreduces while ranks write, on nodes of the lab whose links are limited.

    python bench/interfere.py                                4 nodes, 200 Mbit/s each, MooseFS
    python bench/interfere.py --nodes 2 --link 100mbit -- --step 20000 --size 16M
    python bench/interfere.py --link none --ranks 2,4
    python bench/interfere.py --hints transport=direct       each rank writes its own bytes

Brings a lab up, limits what each node can send (a token bucket, tc's tbf), runs `brigade bench
interfere` with what stands after --, and writes OUT/interfere-LINK.json (every call of every turn)
and a figure. Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support.options import lab_parser

from brigade.bench import interfere_report, overlap
from brigade.bench.checkpoint import program
from brigade.lab import Lab
from brigade.report.host import host


def main() -> int:
    options = arguments()
    os.environ["BRIGADE_CACHE"] = str(options.cache)
    words = overlap.words([options.mpicc])  # here: nodes only use it
    program.compiled(options.cache / "bench", "overlap", words, overlap.SOURCES)
    lab = Lab.up(name=options.lab, nodes=options.nodes, fs="moosefs")
    try:
        limit(lab, options.link)
        report = measure(lab, options)
    finally:
        lab.down()
    name = f"interfere-{options.link}"
    options.out.mkdir(parents=True, exist_ok=True)
    report["host"] = host()
    report["settings"] |= {"nodes": options.nodes, "link": options.link, "fs": "moosefs"}
    if options.hints:
        report["settings"]["hints"] = options.hints
    path = options.out / f"{name}.json"
    path.write_text(json.dumps({"benchmark": "interfere", **report}) + "\n", encoding="utf-8")
    interfere_report.draw(report["samples"], options.out / f"{name}.png")
    interfere_report.print_report(report)
    print(f"raw samples: {path}")
    return 0


def arguments() -> argparse.Namespace:
    parser = lab_parser(__doc__, "interfere", "out/interfere")
    parser.add_argument("--link", default="200mbit", help="what a node can send; none: no limit")
    parser.add_argument("--ranks", default="4", help="as -n of `brigade bench interfere`")
    parser.add_argument("--mpicc", default="mpicc.openmpi")
    parser.add_argument("--hints", default="", help="more hints, as transport=direct, of each file")
    parser.add_argument("options", nargs="*", help="of `brigade bench interfere`, after --")
    return parser.parse_args()


def limit(lab: Lab, link: str) -> None:
    """Every node sends at most so much; a queue of a tenth of a second before it."""
    if link == "none":
        return
    for node in lab.nodes:
        bucket = ["tbf", "rate", link, "burst", "32kb", "latency", "100ms"]
        lab.exec(node, ["tc", "qdisc", "add", "dev", "eth0", "root", *bucket], check=True)


def measure(lab: Lab, options: argparse.Namespace) -> dict[str, Any]:
    yields = "OMPI_MCA_mpi_yield_when_idle=1"  # ranks that spin take the servers' processors
    hints = [f"BRIGADE_IO=*:{options.hints}"] if options.hints else []
    command = [
        "env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", yields, *hints,
        sys.executable, "-m", "brigade", "bench", "interfere", "-n", options.ranks,
        "--mpicc", options.mpicc, "--rounds", str(max(options.repeats, 1)), "--json",
        "--dir", str(lab.shared), *options.options,
        "--", "mpirun", "-n", "{n}", "--map-by", "node",
    ]  # fmt: skip
    done = lab.run(command, cwd="/", stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"brigade bench interfere ended with {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
