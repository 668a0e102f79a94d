#!/usr/bin/env python3
"""Start a real Python and MPI program in the lab under each view, in turn; count what reached the
shared file system and time the start.

    python bench/views.py --ranks 4,16 --repeats 2 --out out/views

One image serves all views; a view is what follows `--view`, and `none` is the program alone. Before
every start the caches of the shared file system's clients are dropped. Writes OUT/views.json (raw
samples) and prints medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support import stack
from support.options import lab_parser, numbers, words
from support.samples import median, save

from brigade.lab import Lab

APP = Path(__file__).parent / "apps/science.py"
VIEWS = (
    "none", "namespace", "namespace,python", "python", "interpose", "interpose,python",
    "namespace,interpose,python",
)  # fmt: skip


def main() -> int:
    options = arguments()
    samples: list[dict[str, Any]] = []
    settings = {"nodes": options.nodes, "ranks": options.ranks, "views": list(options.views)}
    settings["repeats"] = options.repeats
    private = Path(tempfile.mkdtemp(prefix="brigade-views-", dir="/var/tmp"))
    lab = Lab.up(name=options.lab, nodes=options.nodes)
    try:
        place = install(lab, options, private)
        start(lab, place, "interpose,python", options.nodes, -1, private)  # makes the image
        for repeat in range(options.repeats):
            for ranks in options.ranks:
                for view in options.views:
                    lab.drop_caches()
                    sample = start(lab, place, view, ranks, repeat, private)
                    samples.append(sample)
                    print(line(sample), flush=True)
                    save(options.out / "views.json", "views", settings, samples)
    finally:
        lab.down()
        shutil.rmtree(private)
    print_medians(samples, options)
    return 0


def arguments() -> argparse.Namespace:
    parser = lab_parser(__doc__, "views", "out/views")
    parser.add_argument("--ranks", type=numbers, default=[4, 16])
    parser.add_argument("--views", type=words("+"), default=VIEWS, help="NAMES+NAMES+…")
    return parser.parse_args()


def install(lab: Lab, options: argparse.Namespace, private: Path) -> str:
    """The packages and the program on the shared file system; returns their folder."""
    options.cache.mkdir(parents=True, exist_ok=True)
    local = stack.local_stack(options.cache)
    shared = str(lab.shared)
    lab.exec("n0", stack.copy_command(local, f"{shared}/venv"), check=True)
    app = private / "science.py"  # nodes have a /tmp of their own: this may lie there
    app.write_bytes(APP.read_bytes())
    lab.exec("n0", ["cp", str(app), f"{shared}/science.py"], check=True)
    return shared


def start(
    lab: Lab, place: str, view: str, ranks: int, repeat: int, private: Path
) -> dict[str, Any]:
    """One start of the program; returns its sample."""
    report_file = private / "report.json"
    program = [f"{place}/venv/bin/python", f"{place}/science.py"]
    job = ["srun", "--mpi=pmix", "-N", str(len(lab.nodes)), "-n", str(ranks), *program]
    if view != "none":
        brigade = [sys.executable, "-m", "brigade", "run", "-q", "--no-grow", "--view", view]
        job = [*brigade, "--json", str(report_file), "--", *job]
    lab.reset()
    begin = time.time()
    environment = {"BENCH_T0": repr(begin), "BRIGADE_CACHE": f"{place}/images"}
    result = lab.run(job, env=environment, cwd="/", stdout=PIPE, stderr=PIPE, text=True)
    total = time.time() - begin
    if result.returncode:
        raise SystemExit(f"{view}: {result.returncode}:\n{result.stdout}{result.stderr}")
    stats = lab.stats().total
    report = json.loads(report_file.read_text()) if view != "none" else None
    if report and (report["unstaged"] or (report["namespace"] or {}).get("without")):
        raise SystemExit(f"{view}: {report['unstaged']} {report['namespace']}")
    lines = [text for text in result.stdout.splitlines() if text.strip()]
    return {
        "view": view,
        "ranks": ranks,
        "repeat": repeat,
        "seconds": json.loads(lines[-1])["max"],
        "total_seconds": total,
        "requests": stats.requests,
        "request_kinds": stats.kinds,
        "read_bytes": stats.bytes_read,
        "answer": lines[-2],
        "namespace": report["namespace"] if report else None,
        "misses": report["misses"]["total"] if report else None,
    }


def line(sample: dict[str, Any]) -> str:
    return (
        f"{sample['view']:28} {sample['ranks']:3} ranks {sample['seconds']:7.2f} s "
        f"{sample['requests']:8,} requests {sample['read_bytes'] / 2**20:8.1f} MiB read"
    )


def print_medians(samples: list[dict[str, Any]], options: argparse.Namespace) -> None:
    print(f"\nmedians of {options.repeats}: seconds to the first line, requests of the whole job")
    for view in options.views:
        cells = []
        for ranks in options.ranks:
            seconds = median(samples, "seconds", view=view, ranks=ranks)
            requests = median(samples, "requests", view=view, ranks=ranks)
            cells.append(f"{ranks} ranks: {seconds:6.2f} s {requests:8,.0f}")
        print(f"  {view:28} " + "   ".join(cells))
    answers = {(sample["ranks"], sample["answer"]) for sample in samples}
    print("answers:", "the same" if len(answers) == len(set(options.ranks)) else sorted(answers))


if __name__ == "__main__":
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[0]} ended with {error.returncode}: {error.stderr or ''}")
