"""Starts of one real program at any number of nodes of a lab, direct or under Brigade."""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

from brigade.lab import Lab
from support import stack

APP = Path(__file__).parents[1] / "apps/science.py"


def prepare(lab: Lab, cache: Path) -> dict[str, str]:
    """Install the program on the shared file system, and make its image by a first start."""
    cache.mkdir(parents=True, exist_ok=True)
    print("-- installing NumPy, SciPy, pandas, Matplotlib, mpi4py", flush=True)
    local, shared = stack.local_stack(cache), str(lab.shared)
    if lab.plan.fs.kind == "slow":  # what lies behind it is as quick as the disk
        _copy_behind(lab, local)
    else:
        lab.exec("n0", stack.copy_command(local, f"{shared}/venv"), check=True)
    lab.host_path("n0", f"{shared}/science.py").write_bytes(APP.read_bytes())
    places = {
        "python": f"{shared}/venv/bin/python",
        "app": f"{shared}/science.py",
        "images": f"{shared}/images",
        "report": str(cache / f"report-{lab.name}.json"),
    }
    print("-- trial run and image", flush=True)
    start(lab, places, "brigade", 1, 1)
    return places


def _copy_behind(lab: Lab, local: Path) -> None:
    """Copy the environment into the folder behind the slow file system, with the paths of its
    place on the nodes."""
    target = lab.plan.data / "slow" / "venv"
    shutil.copytree(local, target, symlinks=True)
    config = target / "pyvenv.cfg"
    config.write_text(config.read_text().replace(str(local), f"{lab.shared}/venv"))


def start(lab: Lab, places: dict[str, str], variant: str, nodes: int, ranks: int) -> dict[str, Any]:
    """One cold start; its sample. SystemExit if it fails, or went unstaged."""
    job = [
        "srun",
        "--mpi=pmix",
        "-N",
        str(nodes),
        "-n",
        str(ranks),
        places["python"],
        places["app"],
    ]
    report_file = Path(places["report"])
    if variant == "brigade":
        report_file.unlink(missing_ok=True)
        brigade = [sys.executable, "-m", "brigade", "run", "--quiet", "--json", places["report"]]
        job = [*brigade, "--", *job]
    lab.drop_caches()
    busy = busy_share()
    lab.reset()
    begin = time.time()
    environment = {"BENCH_T0": repr(begin), "BRIGADE_CACHE": places["images"]}
    result = lab.run(job, env=environment, cwd="/", stdout=PIPE, stderr=PIPE, text=True)
    if result.returncode:
        raise SystemExit(f"{' '.join(job)}\nended with {result.returncode}:\n{result.stderr}")
    total = time.time() - begin
    stats = lab.stats().total
    report = json.loads(report_file.read_text()) if variant == "brigade" else None
    if report and report["unstaged"]:
        raise SystemExit(f"brigade run went unstaged: {report['unstaged']}")
    lines = [text for text in result.stdout.splitlines() if text.strip()]
    timing = json.loads(lines[-1])
    return {
        "variant": variant,
        "nodes": nodes,
        "ranks": ranks,
        "seconds": timing["max"],
        "rank_seconds": timing["seconds"],
        "total_seconds": total,
        "busy_before": busy,
        "requests": stats.requests,
        "request_kinds": stats.kinds,
        "read_bytes": stats.bytes_read,
        "answer": lines[-2],
        "staging_seconds": report["staging"]["seconds"] if report else None,
        "image_bytes": report["image"]["bytes"] if report else None,
        "unpacked_bytes": report["staging"]["bytes_per_node"] if report else None,
    }


def busy_share(seconds: float = 0.5) -> float:
    """The share of this machine's processors that is at work now, while the lab has nothing to do:
    other people's."""
    before = _processor_times()
    time.sleep(seconds)
    spent = [now - then for now, then in zip(_processor_times(), before)]
    return 1 - (spent[3] + spent[4]) / max(1, sum(spent))  # idle, waiting for a disk


def _processor_times() -> list[int]:
    with open("/proc/stat", encoding="ascii") as stat:
        return [int(word) for word in stat.readline().split()[1:9]]


def line(sample: dict[str, Any]) -> str:
    return (
        f"  {sample['variant']:8} {sample['nodes']} nodes {sample['ranks']:3} ranks  "
        f"{sample['seconds']:7.2f} s to the first line  {sample['requests']:8,} requests"
    )
