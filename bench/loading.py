#!/usr/bin/env python3
"""Load generated libraries in the lab, from the shared file system, from each node's warm local
disk, and under Brigade, in turn; time each phase and count what reached the file system.

    python bench/loading.py --quick                             small worlds, one width: 2 minutes
    python bench/loading.py --worlds pynamic --ranks 16 --repeats 5
    python bench/loading.py --worlds cload-long --ranks 1,4,16,32 --add

Worlds are those of `brigade bench`: pynamic (preset llnl-495), cload-one, cload-each, cload-long
(preset cload-710 in its three layouts). Before every run the caches of the shared file system's
clients are dropped and what is local is read once, so that "local" is a warm local disk. Writes
OUT/loading.json (raw samples; --add keeps those that are there) and a figure for each benchmark.
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
from support.figure import draw_panels
from support.loading_table import print_table
from support.options import end_in_order
from support.samples import save

from brigade.errors import LabError
from brigade.lab import Lab

VARIANTS = ("direct", "local", "brigade")
PRESET = {"pynamic": "llnl-495", "cload": "cload-710"}
QUICK = {"pynamic": ["--functions", "100"], "cload": ["--libraries", "100"]}
WORLDS = ("pynamic", "cload-one", "cload-each", "cload-long")


def main() -> int:
    options = arguments()
    results = options.out / "loading.json"
    samples: list[dict[str, Any]] = []
    if options.add and results.exists():
        samples = json.loads(results.read_text())["samples"]
    lab = bring_up(options)
    try:
        for world in options.worlds:
            measure(lab, world, options, samples)
    except KeyboardInterrupt:
        step("interrupted: what was measured is kept")
    finally:
        if not options.keep_lab:
            lab.down()
    settings = {"nodes": options.nodes, "fs": options.fs, "copies": options.copies}
    settings.update(quick=options.quick, variants=list(VARIANTS))
    save(results, "loading", settings, samples)
    for kind in ("pynamic", "cload"):
        figure(samples, kind, options)
    print_table(samples)
    print(f"raw samples: {results}")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--quick", action="store_true", help="small worlds")
    parser.add_argument("--worlds", type=words, default=list(WORLDS))
    parser.add_argument(
        "--ranks", type=lambda text: [int(n) for n in text.split(",")], default=[16]
    )
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--variants", type=words, default=list(VARIANTS))
    parser.add_argument(
        "--copies", choices=["each", "one"], default="each",
        help="a local copy on each node's own disk, or one for all (the nodes are one machine)",
    )  # fmt: skip
    parser.add_argument("--fs", default="moosefs", help="moosefs, or slow:0.5ms")
    parser.add_argument("--lab", default="loading", help="name of the lab to bring up")
    parser.add_argument(
        "--keep-lab", action="store_true", help="leave the lab and the worlds for the next call"
    )
    parser.add_argument("--python", default="/usr/bin/python3", help="Python of the ranks")
    parser.add_argument("--out", type=Path, default=Path("out/loading"))
    parser.add_argument("--add", action="store_true", help="keep the samples that are there")
    parser.add_argument(
        "--cache", type=Path, default=Path("/var/tmp/brigade-bench"), help="for generated worlds"
    )
    return parser.parse_args()


def bring_up(options: argparse.Namespace) -> Lab:
    """The lab that an earlier call has kept, or a new one."""
    try:
        return Lab.find(options.lab)
    except LabError:
        return Lab.up(name=options.lab, nodes=options.nodes, fs=options.fs)


def words_of(world: str, options: argparse.Namespace) -> list[str]:
    """The words of `brigade bench` that ask for a world."""
    kind, _, layout = world.partition("-")
    words = [kind, "--preset", PRESET[kind], *(["--layout", layout] if layout else [])]
    if kind == "pynamic":
        words += ["--python", options.python]
    return words + (QUICK[kind] if options.quick else [])


def measure(
    lab: Lab, world: str, options: argparse.Namespace, samples: list[dict[str, Any]]
) -> None:
    """Append all samples of one world: its variants in turn, at each width."""
    words = words_of(world, options)
    places = prepare(lab, words, options)
    for repeat in range(options.repeats):
        for ranks in options.ranks:
            for variant in options.variants:
                sample = {"world": world, "variant": variant, "ranks": ranks, "repeat": repeat}
                sample.update(start(lab, words, places, variant, ranks, options))
                samples.append(sample)
                print(line(sample), flush=True)


def prepare(lab: Lab, words: list[str], options: argparse.Namespace) -> dict[str, str]:
    """Generate the world, copy it to where it is loaded from, and make the image."""
    worlds = options.cache / "worlds"
    step(f"generating {' '.join(words)}")
    made = brigade(lab, words, worlds, ["--generate", "--json"])
    folder = Path(made["world"])
    places = {"shared": f"{lab.shared}/worlds", "local": f"{lab.local}/worlds"}
    script = '[ -d "$2/${1##*/}" ] || { mkdir -p "$2" && cp -a "$1" "$2"; }'
    copy = ["/bin/sh", "-c", script, "copy", str(folder)]
    step(f"copying {made['bytes'] / 2**20:,.0f} MiB")
    lab.exec("n0", [*copy, places["shared"]], check=True)
    if options.copies == "one":
        places["local"] = str(worlds)
    else:
        for node in lab.nodes:
            lab.exec(node, [*copy, places["local"]], check=True)
    if "brigade" in options.variants:
        step("trial run and image")
        sample = start(lab, words, places, "brigade", options.nodes, options)
        if sample["unstaged"]:
            raise SystemExit(f"the first brigade run went unstaged: {sample['unstaged']}")
    return places


def brigade(lab: Lab, words: list[str], base: Path | str, more: list[str]) -> Any:
    """What `brigade bench WORDS --dir BASE MORE` says; run on the first node."""
    command = [sys.executable, "-m", "brigade", "bench", *words, "--dir", str(base), *more]
    environment = {"BRIGADE_CACHE": f"{lab.shared}/images"}
    done = lab.run(command, env=environment, cwd="/", stdout=PIPE, stderr=PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def start(
    lab: Lab,
    words: list[str],
    places: dict[str, str],
    variant: str,
    ranks: int,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """One run; returns what it is to be judged by."""
    launcher = ["srun", "--mpi=pmix", "-N", str(min(ranks, options.nodes)), "-n", str(ranks)]
    report_file = options.cache / f"report-{options.lab}.json"
    if variant == "brigade":
        own = [sys.executable, "-m", "brigade", "run", "--quiet", "--json", str(report_file)]
        launcher = [*own, "--", *launcher]
    lab.drop_caches()
    for node in lab.nodes:  # the interpreter is local in every variant
        warm = places["local"] if variant == "local" else "/usr/lib/python3"
        lab.exec(node, stack.warm_command(warm), check=True)
    lab.reset()
    begin = time.monotonic()
    where = places["local" if variant == "local" else "shared"]
    said = brigade(lab, words, where, ["--json", "--", *launcher])
    seconds = time.monotonic() - begin
    stats = lab.stats().total
    sample = {
        "seconds": seconds,
        "objects": said["objects"],
        "loaded_bytes": said["bytes"],
        "checksum": said["checksum"],
        **{phase: values["median"] for phase, values in said["phases"].items()},
        "slowest": {phase: values["max"] for phase, values in said["phases"].items()},
        "per_rank": [
            {key: one[key] for key in one if key not in ("main_ns", "checksum")}
            for one in said["ranks"]
        ],
        "requests": stats.requests,
        "read_bytes": stats.bytes_read,
    }
    if variant == "brigade":
        report = json.loads(report_file.read_text())
        report_file.unlink()
        staging = report["staging"] or {}
        sample.update(
            unstaged=report["unstaged"],
            misses=report["misses"]["by_cause"],
            staging_s=staging.get("seconds"),
            node_bytes=staging.get("bytes_per_node"),
        )
    return sample


def line(sample: dict[str, Any]) -> str:
    phases = [name for name in ("launch", "startup", "import", "load", "visit") if name in sample]
    return (
        f"  {sample['world']:10} {sample['variant']:8} {sample['ranks']:3} ranks  "
        + "  ".join(f"{name} {sample[name]:.3f}" for name in phases)
        + f"  {sample['requests']:8,} requests  {sample['read_bytes'] / 2**20:7.1f} MiB read"
    )


def step(text: str) -> None:
    print(f"-- {text}", flush=True)


def figure(samples: list[dict[str, Any]], kind: str, options: argparse.Namespace) -> None:
    """One figure of a benchmark: its phases, and the requests, against the ranks."""
    worlds = [world for world in WORLDS if any(s["world"] == world for s in samples)]
    mine = [world for world in worlds if world.startswith(kind)]
    wide = [
        world for world in mine if len({s["ranks"] for s in samples if s["world"] == world}) > 1
    ]
    mine = wide or mine  # one width is no curve
    if not mine:
        return
    panels = []
    for world in mine:
        chosen = [sample for sample in samples if sample["world"] == world]
        if kind == "pynamic":
            panels.append((chosen, "import", "import phase, seconds\n(median rank)", False))
            panels.append((chosen, "visit", "visit phase, seconds\n(median rank)", False))
        else:
            text = f"{world}: seconds from exec to main\n(median rank)"
            panels.append((chosen, "startup", text, False))
    chosen = [sample for sample in samples if sample["world"] == mine[-1]]
    panels.append((chosen, "requests", f"{mine[-1]}: requests to the\nshared file system", True))
    objects = chosen[0]["objects"]
    draw_panels(
        panels,
        options.out / f"loading-{kind}.png",
        f"{kind}, {objects} shared objects: {options.nodes} nodes on one machine",
    )


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
