#!/usr/bin/env python3
"""Import a scientific stack from warm local disk, and under the `python` view from node memory, in
turn.

    python bench/imports.py --python VENV/bin/python            15 of each, ratio of medians
    python bench/imports.py --python ... --calls                system calls too (needs strace)

Three variants, interleaved in one run, so that whatever disturbs the machine disturbs all of them:
    plain     the interpreter as it is
    view      the virtual environment's packages from a staged copy in --memory
    view+std  the standard library too (as where the interpreter itself lies on the shared file
    system)
No shared file system is involved: this shows what the view costs or saves over the best that a rank
could have without it. Writes raw samples as JSON.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH), str(BENCH.parent / "tests/imports"), str(BENCH.parent / "python")]

from staged import Staged  # noqa: E402
from support.samples import save  # noqa: E402

PROGRAM = """\
import time; start = time.perf_counter()
import numpy, scipy.stats, scipy.sparse.linalg, scipy.optimize, pandas, matplotlib.pyplot
seconds = time.perf_counter() - start
import os, sys
print(seconds, sum(os.times()[:2]), len(sys.modules))
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="the virtual environment's Python")
    parser.add_argument(
        "--program", type=Path, help="another program (it prints: seconds, CPU seconds, modules)"
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--memory", type=Path, default=Path("/dev/shm"), help="where to stage")
    parser.add_argument("--calls", action="store_true", help="count system calls with strace")
    parser.add_argument("--out", type=Path, default=Path("out/imports"))
    return parser.parse_args()


def prefixes(python: str) -> tuple[Path, Path]:
    """(prefix of the environment, standard library)"""
    code = "import sys, os; print(sys.prefix); print(os.path.dirname(os.__file__))"
    out = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    prefix, stdlib = out.splitlines()
    return Path(prefix), Path(stdlib)


def stage(folder: Path, options: argparse.Namespace, program: Path, roots: list[Path]) -> Staged:
    folder.mkdir(parents=True)
    world = Staged(folder, options.python, roots=roots, listed=roots)
    world.content = lambda path: path.endswith(".pyc") or ".so" in os.path.basename(path)
    tried = world.trial([str(program)])
    if tried.returncode:
        raise SystemExit(f"{options.python} cannot run the program:\n{tried.stderr}")
    world.stage()
    return world


def take(world: Staged, program: Path, view: bool) -> dict[str, Any]:
    env = {"OPENBLAS_NUM_THREADS": "1"}
    done = (world.run if view else world.plain)([str(program)], env)
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds, cpu, modules = done.stdout.split()
    return {"import_s": float(seconds), "cpu_s": float(cpu), "modules": int(modules)}


def count_calls(world: Staged, program: Path, view: bool, log: Path) -> dict[str, int]:
    python, world.python = world.python, "strace"
    try:
        options = ["-f", "-c", "-U", "name,calls", "-o", str(log), python, str(program)]
        done = (world.run if view else world.plain)(options, {"OPENBLAS_NUM_THREADS": "1"})
    finally:
        world.python = python
    if done.returncode:
        raise SystemExit(done.stderr)
    rows = [line.split() for line in log.read_text().splitlines()]
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def main() -> int:
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="brigade-bench-imports-", dir=options.memory))
    try:
        program = options.program or folder / "program.py"
        if options.program is None:
            program.write_text(PROGRAM)
        prefix, stdlib = prefixes(options.python)
        packages = stage(folder / "packages", options, program, [prefix])
        everything = stage(folder / "everything", options, program, [prefix, stdlib])
        variants = {
            "plain": (packages, False),
            "view": (packages, True),
            "view+std": (everything, True),
        }
        samples = measure(variants, program, options.repeats)
        calls = {}
        if options.calls and shutil.which("strace"):
            for name, (world, view) in variants.items():
                calls[name] = count_calls(world, program, view, folder / "calls")
    finally:
        shutil.rmtree(folder)
    settings = {
        "python": options.python,
        "repeats": options.repeats,
        "memory": str(options.memory),
        "calls": calls,
    }
    save(options.out / "imports.json", "imports", settings, samples)
    report(samples, calls, list(variants))
    print(f"raw samples: {options.out / 'imports.json'}")
    return 0


def measure(
    variants: dict[str, tuple[Staged, bool]], program: Path, repeats: int
) -> list[dict[str, Any]]:
    samples = []
    for repeat in range(-1, repeats):  # the first round only warms the caches
        for name, (world, view) in variants.items():
            sample = {"variant": name, "repeat": repeat, **take(world, program, view)}
            if repeat >= 0:
                samples.append(sample)
    return samples


def report(
    samples: list[dict[str, Any]], calls: dict[str, dict[str, int]], names: list[str]
) -> None:
    def values(name: str, key: str) -> list[float]:
        return [s[key] for s in samples if s["variant"] == name]

    for name in names:
        line = f"{name:9}"
        for key in ("import_s", "cpu_s"):
            mine, plain = values(name, key), values("plain", key)
            ratio = statistics.median(mine) / statistics.median(plain)
            pairs = statistics.median(m / p for m, p in zip(mine, plain))
            line += (
                f"  {key} median {statistics.median(mine):.3f} min {min(mine):.3f}"
                f" ratio {ratio:.3f} (paired {pairs:.3f})"
            )
        if name in calls:
            told = calls[name]
            line += (
                f"  calls {sum(told.values()) - told.get('total', 0)}, of which stat "
                f"{told.get('newfstatat', 0) + told.get('stat', 0)}, open {told.get('openat', 0)}"
            )
        print(line)


if __name__ == "__main__":
    raise SystemExit(main())
