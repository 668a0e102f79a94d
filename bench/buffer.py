#!/usr/bin/env python3
"""Measure `brigade buffer`: small sequential writes and reads, plain, buffered, and with a rule
that fits no file, on the local disk and on the lab's MooseFS (one node writes, another reads).

    python bench/buffer.py --quick               half a minute: the disk, few rounds
    python bench/buffer.py --fs disk --dir /scratch
    python bench/buffer.py --fs memory --rounds 15    /dev/shm: what a rule that fits no file costs
    python bench/buffer.py --fs moosefs          needs root; 4 minutes

Reads are of all bytes at once, with computing between the calls, a second time in another process,
and on the disk without the page cache; on MooseFS also past the page cache ("direct"). Variants
take turns, in another order each round. Times are from open to close, nothing is synced; reads
follow a write of the same file, so on the disk they come from the page cache, but for read-cold.
Writes OUT/buffer-FS.json (raw samples) and prints which targets are reached. Needs cc.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).parent))

from support.options import end_in_order, words
from support.samples import as_table, save

from brigade.lab import Lab
from brigade.paths import native

Samples = list[dict[str, Any]]
Start = Callable[[str, list[str], dict[str, str]], str]  # (way, command, environment): its output
RULES = {"plain": None, "buffered": "*.dat", "no match": "*.none", "direct": "*.dat:direct"}
#: ways in turns on one file each: it is removed after the last
FILES = (
    ("write", "read", "read-again"),
    ("write", "read-compute"),
    ("write", "read-cold"),
    ("stream-write", "stream-read"),
)
WAYS = list(dict.fromkeys(way for ways in FILES for way in ways))
#: bytes of a call -> bytes in all
SIZES = {64: 4 << 20, 512: 16 << 20, 4096: 64 << 20, 65536: 64 << 20}
#: sizes for which the targets are meant
SMALL = [64, 512, 4096]
#: (way, variant) -> least ratio of plain's time to the variant's
TARGETS = {
    ("write", "buffered"): 5.0,
    ("read", "buffered"): 1.3,
    ("read", "direct"): 1.3,
    ("any", "no match"): 1 / 1.02,
}


def main() -> int:
    options = arguments()
    program = compiled(options.cache)
    for fs in options.fs:
        samples: Samples = []
        with place(fs, options) as (folder, start):
            for number in range(options.rounds):
                samples += one_round(fs, program, folder, start, number)
                print(f"{fs}: round {number + 1} of {options.rounds}", flush=True)
        settings = {"fs": fs, "rounds": options.rounds, "bytes": SIZES, "rules": RULES}
        save(options.out / f"buffer-{fs}.json", "buffer", settings, as_table(samples))
        print("\n".join(lines(fs, samples)))
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fs", type=words(), default=["disk", "moosefs"])
    parser.add_argument("--dir", default="/var/tmp", help="where the local disk is measured")
    parser.add_argument("--lab", default="buffer", help="name of the lab to bring up")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="the disk, few rounds")
    parser.add_argument("--out", type=Path, default=Path("out") / "buffer")
    parser.add_argument("--cache", type=Path, default=Path("/var/tmp/brigade-bench"))
    options = parser.parse_args()
    if options.quick:
        options.fs, options.rounds = ["disk"], 3
    return options


def compiled(cache: Path) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    source, program = Path(__file__).parent / "support" / "buffer.c", cache / "buffer-io"
    subprocess.run(["cc", "-O2", "-o", program, source], check=True)
    return program


@contextmanager
def place(fs: str, options: argparse.Namespace) -> Iterator[tuple[Path, Start]]:
    """A folder there, and a way to run a command: of the lab, writes on n0 and reads on n1."""
    if fs in ("disk", "memory"):
        folder = Path(options.dir if fs == "disk" else "/dev/shm")
        yield folder, lambda way, command, env: run(["env", *pairs(env), *command])
        return
    lab = Lab.up(name=options.lab, nodes=2, fs=fs)

    def start(way: str, command: list[str], env: dict[str, str]) -> str:
        node = lab.nodes["read" in way]
        done = lab.exec(node, ["env", *pairs(env), *command], stdout=subprocess.PIPE, check=True)
        return str(done.stdout.decode())

    try:
        yield Path(lab.shared), start
    finally:
        lab.down()


def pairs(env: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in env.items()]


def run(command: list[str]) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def one_round(fs: str, program: Path, folder: Path, start: Start, number: int) -> Samples:
    """Every variant once: a file of its own, written and read in both ways."""
    order = [(size, variant) for size in SIZES for variant in RULES]  # direct: reads on FUSE
    random.Random(number).shuffle(order)
    samples = []
    for size, variant in order:
        rules = RULES[variant]
        env = {} if rules is None else {"BRIGADE_BUFFER": rules}
        if rules is not None:
            env["LD_PRELOAD"] = str(native("libbrigade_buffer.so").absolute())
        for at, ways in enumerate(FILES):
            if "read-cold" in ways and fs != "disk":
                continue  # from another node, all first reads are cold
            if variant == "direct" and (fs != "moosefs" or "stream-write" in ways):
                continue
            # a name of its own for each: nobody has it in a cache
            path = folder / f"bench-{number}-{size}-{variant[:2]}-{at}.dat"
            for way in ways:
                only_for_the_read = way == "write" and (at > 0 or variant == "direct")
                call, with_env = (1 << 20, {}) if only_for_the_read else (size, env)
                command = [str(program), str(path), str(call), str(SIZES[size]), way]
                seconds = float(start(way, command, with_env))
                sample = {"round": number, "way": way, "size": size, "variant": variant}
                if not only_for_the_read:
                    samples.append({**sample, "seconds": seconds})
            start("write", ["rm", str(path)], {})
    return samples


def ratio(samples: Samples, way: str, size: int, variant: str) -> float:
    """Median over the rounds of plain's seconds to the variant's, of the same round. Of what costs
    next to nothing, the ratio of the shortest: noise only adds."""
    found = {
        (one["round"], one["variant"]): one["seconds"]
        for one in samples
        if one["way"] == way and one["size"] == size
    }
    rounds = {number for number, _ in found}
    if variant == "no match":
        return min(found[n, "plain"] for n in rounds) / min(found[n, variant] for n in rounds)
    return statistics.median(found[n, "plain"] / found[n, variant] for n in rounds)


def lines(fs: str, samples: Samples) -> list[str]:
    """A table, and what of the targets is reached."""
    said = [f"\n{fs}: plain's microseconds a call, and how many times as fast the others are"]
    for way in [way for way in WAYS if any(one["way"] == way for one in samples)]:
        for size, total in SIZES.items():
            plain = statistics.median(
                one["seconds"]
                for one in samples
                if (one["way"], one["size"], one["variant"]) == (way, size, "plain")
            )
            others = {one["variant"] for one in samples if one["way"] == way}
            cells = [
                f"{name} {ratio(samples, way, size, name):.2f}" for name in RULES if name in others
            ][1:]
            said.append(
                f"  {way:13}{size:6} B {plain / total * size * 1e6:9.3f}  " + "  ".join(cells)
            )
    for (way, variant), least in TARGETS.items():
        if variant == "direct" and fs != "moosefs":
            continue
        ways = WAYS[:2] if way == "any" else [way]
        # what a call costs more is the same for all: it shows where calls are cheapest
        sizes = SMALL[:1] if variant == "no match" else SMALL
        worst = min(ratio(samples, w, size, variant) for w in ways for size in sizes)
        verdict = "reached" if worst >= least else "NOT reached"
        said.append(f"  {way}, {variant}: {worst:.3f} at worst, {least:.3f} wanted: {verdict}")
    return said


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
