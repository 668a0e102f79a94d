#!/usr/bin/env python3
"""Fit the model on one and two nodes of the lab, predict four and eight, and measure those too.

    python bench/predict.py --fs moosefs --repeats 3 --out out/predict
    python bench/predict.py --fs slow:1ms --repeats 2

A real program (bench/apps/science.py) starts from the shared file system and under Brigade, at all
widths in an order drawn anew for each repeat, with cold caches. Requests of a node's first rank and
of a further one, processor seconds and service times are fitted to the start-ups on 1 and 2 nodes
only; those on 4 and 8 are predicted, and then compared. All nodes share this machine's processors,
and so do those of the model. Writes OUT/predict-FS.json (raw samples, the fit, the comparison), .md
and .png.

    python bench/predict.py --again out/predict/predict-moosefs.json     fit saved samples anew
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support import widths
from support.fitting import compare, draw, markdown, print_comparison
from support.options import lab_parser, words
from support.samples import save

from brigade.lab import Lab

# (nodes, ranks) of each variant: fitted on the first, predicted for the second
NARROW = [(1, 2), (1, 4), (1, 8), (2, 2), (2, 4), (2, 8), (2, 16)]
WIDE = [(4, 4), (4, 8), (4, 16), (8, 8), (8, 16), (8, 32)]
WIDTHS = {
    "moosefs": {"direct": [NARROW, WIDE], "brigade": [NARROW, WIDE]},
    "slow": {
        "direct": [[(1, 1), (1, 2), (2, 2), (2, 4)], [(4, 4), (8, 8)]],
        "brigade": [NARROW, [(4, 4), (4, 8), (4, 16), (8, 8), (8, 16)]],
    },
}


QUIET = 0.1  # share of the processors that other work may have


def main() -> int:
    options = arguments()
    if options.again:
        saved = [json.loads(path.read_text()) for path in options.again]
        samples = [sample for one in saved for sample in one["samples"]]
        options.fs = saved[0]["settings"]["fs"]
    else:
        samples = measure(options)
    middle = min if options.quickest else statistics.median
    result = compare(samples, options.fs, WIDTHS[options.fs.partition(":")[0]], middle)
    print_comparison(result)
    warn(samples)
    options.out.mkdir(parents=True, exist_ok=True)
    target(options).with_suffix(".md").write_text(markdown(result))
    figure = target(options).with_suffix(".png")
    if not options.again:
        save(target(options), "predict", {**settings(options), **result}, samples)
        print(f"\nraw samples and fit: {target(options)}")
    draw(result, figure, f"Start-up in the lab, {options.fs}")
    print(f"figure: {figure}")
    return 0


def warn(samples: list[dict[str, Any]]) -> None:
    """Say so if the machine was not quiet."""
    busy = statistics.median([sample.get("busy_before", 0.0) for sample in samples])
    if busy > QUIET:
        print(
            f"WARNING: other work had {100 * busy:.0f}% of the processors before the starts; "
            "what is bound by processors cannot be judged from these samples"
        )


def target(options: argparse.Namespace) -> Path:
    out: Path = options.out
    return out / f"predict-{options.fs.partition(':')[0]}.json"


def settings(options: argparse.Namespace) -> dict[str, Any]:
    return {"fs": options.fs, "repeats": options.repeats, "quickest": options.quickest}


def arguments() -> argparse.Namespace:
    parser = lab_parser(__doc__, "predict", "out/predict", nodes=8, repeats=2)
    parser.add_argument("--variants", type=words(), default=["direct", "brigade"])
    parser.add_argument("--fs", default="moosefs", help="moosefs, or slow:1ms")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the starts")
    parser.add_argument(
        "--again", type=Path, nargs="+", metavar="JSON", help="fit saved samples, measure none"
    )
    parser.add_argument(
        "--quickest",
        action="store_true",
        help="take the quickest of the repeats, not medians: on a machine that others use too",
    )
    return parser.parse_args()


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Start at every width, direct and under Brigade, in turn; raw samples."""
    chosen = WIDTHS[options.fs.partition(":")[0]]
    starts = [
        (variant, nodes, ranks)
        for nodes, ranks in sorted({one for lists in chosen.values() for one in sum(lists, [])})
        for variant in options.variants
        if (nodes, ranks) in sum(chosen[variant], []) and nodes <= options.nodes
    ]
    lab = Lab.up(name=options.lab, nodes=options.nodes, fs=options.fs)
    samples: list[dict[str, Any]] = []
    try:
        places = widths.prepare(lab, options.cache)
        for repeat in range(options.repeats):
            random.Random(options.seed + repeat).shuffle(starts)
            for variant, nodes, ranks in starts:
                sample = widths.start(lab, places, variant, nodes, ranks)
                samples.append({"repeat": repeat, **sample})
                print(widths.line(samples[-1]), flush=True)
                save(target(options), "predict", settings(options), samples)
    finally:
        lab.down()
    return samples


if __name__ == "__main__":
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    sys.exit(main())
