#!/usr/bin/env python3
"""What reaches the shared file system, over time, while a real Python and MPI program starts in the
lab: from the shared file system, and under Brigade.

    python bench/timeline.py --fs moosefs --ranks 16
    python bench/timeline.py --fs slow:0.5ms --ranks 8 --out out/timeline-slow

Requests are those that the clients of all nodes count, read ten times a second: exact, whatever
else the machine does, while seconds are not. Caches are dropped before each start; the image is
made beforehand. Writes OUT/timeline.json (raw samples) and OUT/timeline.png.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from startup import APP, line, start, step
from support import stack
from support.options import lab_parser
from support.samples import save

from brigade.lab import Lab
from brigade.page.figure import draw
from brigade.profile.clients.lab import client
from brigade.profile.counters import Sampler
from brigade.profile.profile import Timeline

LABELS = {"direct": "shared file system", "brigade": "Brigade"}


def main() -> int:
    options = arguments()
    lab = Lab.up(name=options.lab, nodes=options.nodes, fs=options.fs)
    try:
        places = prepare(lab, options)
        samples = [sample(lab, places, variant, options) for variant in LABELS]
    finally:
        lab.down()
    settings = {
        key: str(value) for key, value in vars(options).items() if key not in ("cache", "out")
    }
    save(options.out / "timeline.json", "timeline", settings, samples)
    panels = [
        (f"{LABELS[one['variant']]}, {one['seconds']:.1f} s", Timeline(**one["timeline"]))
        for one in samples
    ]
    title = f"Python with NumPy, SciPy, pandas, Matplotlib: {options.ranks} ranks, "
    title += f"{options.nodes} nodes, {options.fs}"
    draw(panels, options.out / "timeline.png", title)
    print(f"raw samples: {options.out / 'timeline.json'}\nfigure: {options.out / 'timeline.png'}")
    return 0


def arguments() -> argparse.Namespace:
    parser = lab_parser(__doc__, "timeline", "out/timeline")
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--fs", default="moosefs", help="moosefs, or slow:0.5ms")
    return parser.parse_args()


def prepare(lab: Lab, options: argparse.Namespace) -> dict[str, str]:
    """Put the stack and the program onto the shared file system, and make the image."""
    options.cache.mkdir(parents=True, exist_ok=True)
    shared = lab.shared
    step("copying NumPy, SciPy, pandas, Matplotlib, mpi4py to the shared file system")
    local = stack.local_stack(options.cache)
    lab.exec("n0", stack.copy_command(local, f"{shared}/venv"), check=True)
    app = options.cache / "science.py"
    app.write_bytes(APP.read_bytes())
    lab.exec("n0", ["cp", str(app), f"{shared}/science.py"], check=True)
    places = {
        "shared": f"{shared}/venv",
        "shared_app": f"{shared}/science.py",
        "images": f"{shared}/images",
    }
    step("trial run and image")
    start(lab, places, "brigade", options.nodes, options, -1, drop=False)
    return places


def sample(
    lab: Lab, places: dict[str, str], variant: str, options: argparse.Namespace
) -> dict[str, Any]:
    """One start, with its requests over time."""
    lab.drop_caches()
    pages = [lab.plan.counters(node) for node in lab.nodes]
    with Sampler([client(pages, str(lab.plan.fs))]) as sampler:
        found = start(lab, places, variant, options.ranks, options, 0, drop=False)
    print(line(found), flush=True)
    (timeline,), (count,) = sampler.timelines(), sampler.counts("cold")
    return {
        **found,
        "timeline": asdict(timeline),
        "counted": asdict(count),
        "sampling_seconds": sampler.spent_s,
    }


if __name__ == "__main__":
    sys.exit(main())
