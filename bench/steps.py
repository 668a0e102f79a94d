#!/usr/bin/env python3
"""Two steps of one job script in the lab: what each `brigade run` does before its launcher, if it
stages for itself (over MPI, over sbcast), and if the script has staged ahead.

    python bench/steps.py --repeats 3 --out out/steps

The image is that of the scientific stack. In each script the second step finds the file system's
caches as the first left them, so second steps are compared. Writes OUT/steps.json (raw samples).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support import stack
from support.options import lab_parser
from support.samples import median, save

from brigade.lab import Lab

APP = "import numpy, scipy.stats, scipy.optimize, pandas, matplotlib.pyplot\n"
WAYS = {
    "mpi": ("", "--transport mpi"),
    "sbcast": ("", "--transport sbcast"),
    "ahead": ("brigade stage -q -- $job || exit 1", ""),
}


def main() -> int:
    options = arguments()
    options.cache.mkdir(parents=True, exist_ok=True)
    local = stack.local_stack(options.cache)
    lab = Lab.up(name=options.lab, nodes=options.nodes)
    samples: list[dict[str, Any]] = []
    try:
        lab.exec("n0", stack.copy_command(local, f"{lab.shared}/venv"), check=True)
        lab.host_path("n0", f"{lab.shared}/app.py").write_text(APP)
        script(lab, options, "mpi")  # the first one makes the image
        for repeat in range(options.repeats):
            for way in WAYS:
                for sample in script(lab, options, way):
                    samples.append({"way": way, "repeat": repeat, **sample})
                    print(line(samples[-1]), flush=True)
    finally:
        lab.down()
    settings = {"nodes": options.nodes, "ranks": options.ranks, "repeats": options.repeats}
    save(options.out / "steps.json", "steps", settings, samples)
    show(samples)
    return 0


def arguments() -> argparse.Namespace:
    parser = lab_parser(__doc__, "bench-steps", "out/steps", repeats=3)
    parser.add_argument("--ranks", type=int, default=4)
    return parser.parse_args()


def script(lab: Lab, options: argparse.Namespace, way: str) -> list[dict[str, Any]]:
    """One allocation with two steps; a sample each."""
    before, how = WAYS[way]
    shared = lab.shared
    job = f"srun -N{options.nodes} -n{options.ranks} {shared}/venv/bin/python {shared}/app.py"
    run = f"brigade run -q --json {shared}/step%d.json {how} -- $job || exit 2"
    text = "\n".join(
        [
            "cd /tmp",
            f'brigade() {{ {sys.executable} -m brigade "$@"; }}',
            f'job="{job}"',
            before,
            run % 1,
            run % 2,
            "brigade unstage -q",
        ]
    )
    lab.drop_caches()
    start = time.monotonic()
    lab.run(
        ["salloc", "-Q", f"-N{options.nodes}", "--overcommit", "/bin/sh", "-c", text],
        cwd="/", env={"BRIGADE_CACHE": f"{shared}/images"}, check=True, stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    seconds = time.monotonic() - start
    return [{"step": step, "script_s": seconds, **sample(lab, step)} for step in (1, 2)]


def sample(lab: Lab, step: int) -> dict[str, Any]:
    report = json.loads(lab.host_path("n0", f"{lab.shared}/step{step}.json").read_text())
    assert report["unstaged"] is None, report["unstaged"]
    return {
        "transport": report["staging"]["transport"],
        "before_launcher_s": report["seconds"]["before_launcher"],
        "staging_s": report["staging"]["seconds"],
        "read_bytes": report["staging"]["read_bytes"],
        "image_bytes": report["image"]["bytes"],
        "misses": report["misses"]["total"],
    }


def line(s: dict[str, Any]) -> str:
    return (
        f"{s['way']:>7} step {s['step']} ({s['transport']}): {s['before_launcher_s']:.2f} s before "
        f"the launcher, staging {s['staging_s']:.2f} s, {s['read_bytes']:,} bytes read"
    )


def show(samples: list[dict[str, Any]]) -> None:
    """Medians of second steps, and the ratio to staging over MPI."""
    base = median(samples, "before_launcher_s", way="mpi", step=2)
    for way in WAYS:
        seconds = median(samples, "before_launcher_s", way=way, step=2)
        read = median(samples, "read_bytes", way=way, step=2)
        assert seconds is not None and base is not None and read is not None
        print(f"second step, {way}: {seconds:.2f} s ({seconds / base:.2f}), {read:,.0f} bytes read")


if __name__ == "__main__":
    sys.exit(main())
