#!/usr/bin/env python3
"""Start the generated libraries of `brigade bench cload` on this machine: by themselves, under
`brigade run`, and with ranks forked from one process that has loaded them, in turn.

    python bench/forkload.py --quick                       100 libraries, 8 ranks: half a minute
    python bench/forkload.py --libraries 8,100,1000 --repeats 5 --out out/forkload

`ranks`: seconds from the start of the ranks to the last one's line, after it has called every
library; loading once for all is counted in. `total`: from the start of the command, with Brigade's
own start and staging. Memory is the proportional set size (PSS) of all processes of the job but
`brigade run`, by rank, when all have said their line. The image is there before, and the page cache
holds everything. Writes OUT/forkload.json (raw samples) and prints medians.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support.memory import pss_of
from support.options import numbers
from support.samples import median, save

MARK = "brigade-bench: "  # before a rank's line, see python/brigade/bench/drivers/cload.c
BRIGADE = [sys.executable, "-m", "brigade"]
VARIANTS = {"plain": None, "brigade": [], "fork": ["--fork"]}  # options of `brigade run`


def main() -> int:
    options = arguments()
    samples: list[dict[str, Any]] = []
    options.out.mkdir(parents=True, exist_ok=True)
    for number in options.libraries:
        program = generate(number, options.out)
        for variant in ("fork", "brigade"):  # the image, with a plan: the others need none
            start(program, variant, options)
        for repeat in range(options.repeats):
            for variant in VARIANTS:
                sample = {"libraries": number, "variant": variant, "repeat": repeat}
                sample.update(start(program, variant, options))
                samples.append(sample)
                print(line(sample), flush=True)
                settings = {"ranks": options.ranks, "repeats": options.repeats}
                save(options.out / "forkload.json", "forkload", settings, samples)
    print_table(samples, options)
    print(f"\nraw samples: {options.out / 'forkload.json'}")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="100 libraries, three times")
    parser.add_argument("--libraries", type=numbers, default=[8, 100, 1000])
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("out/forkload"))
    options = parser.parse_args()
    if options.quick:
        options.libraries, options.repeats = [100], 3
    return options


def generate(libraries: int, out: Path) -> list[str]:
    """A world with that many libraries; the program that has them linked."""
    words = ["bench", "cload", "--libraries", str(libraries), "--layout", "each", "--dir", str(out)]
    made = subprocess.run(
        [*BRIGADE, *words, "--generate", "--json"], stdout=subprocess.PIPE, check=True
    )
    return [f"{json.loads(made.stdout)['world']}/bin/cload-main", "0"]


def start(program: list[str], variant: str, options: argparse.Namespace) -> dict[str, Any]:
    """One start of all ranks; returns what was measured."""
    report = options.out.absolute() / "report.json"
    hold = options.out.absolute() / "hold"
    hold.touch()
    environment = {
        **os.environ,
        "BRIGADE_BENCH_HOLD": str(hold),
        "BRIGADE_CACHE": str(options.out.absolute() / "cache"),
    }
    command = ["/bin/sh", "-c", f'for i in $(seq {options.ranks}); do "$@" & done; wait', "-"]
    if VARIANTS[variant] is not None:
        command = [*BRIGADE, "run", "-q", "--json", str(report), "-n", str(options.ranks)]
        command += [*VARIANTS[variant], "--"]
    began = time.time()
    job = subprocess.Popen([*command, *program], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        said = [json.loads(job.stdout.readline().partition(MARK)[2]) for _ in range(options.ranks)]
        total = time.time() - began
        pss = sum(pss_of(pid) for pid in descendants(job.pid))
    finally:
        hold.unlink()
        job.wait()
    sample = {"total": total, "ranks_s": total, "bytes": pss, "checksums": checksums(said)}
    if VARIANTS[variant] is not None:
        told = json.loads(report.read_text())
        sample["ranks_s"] = total - told["seconds"]["before_launcher"]
        sample["fork"] = told["fork"]
    return sample


def checksums(said: list[dict[str, Any]]) -> list[str]:
    """All must have visited the same."""
    return sorted({one["checksum"] for one in said})


def descendants(pid: int) -> list[int]:
    """The processes below one, without it."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *descendants(child)]
    return found


def line(sample: dict[str, Any]) -> str:
    return (
        f"{sample['libraries']:5} libraries  {sample['variant']:8} ranks {sample['ranks_s']:6.3f} s"
        f"  total {sample['total']:6.3f} s  {sample['bytes'] / 2**20:7.1f} MiB"
    )


def print_table(samples: list[dict[str, Any]], options: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{options.ranks} ranks on one node, medians of {options.repeats}")
    for name in ("libraries", "start", "ranks s", "/ plain", "total s", "MiB a rank", "/ plain"):
        table.add_column(name, justify="right")
    for libraries in options.libraries:
        plain = {"libraries": libraries, "variant": "plain"}
        for variant in VARIANTS:
            at = {"libraries": libraries, "variant": variant}
            ranks_s, base = median(samples, "ranks_s", **at), median(samples, "ranks_s", **plain)
            memory, least = median(samples, "bytes", **at), median(samples, "bytes", **plain)
            table.add_row(
                f"{libraries:,}", variant, f"{ranks_s:.3f}", f"{ranks_s / base:.2f}",
                f"{median(samples, 'total', **at):.3f}",
                f"{memory / options.ranks / 2**20:.2f}", f"{memory / least:.2f}",
            )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
