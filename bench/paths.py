#!/usr/bin/env python3
"""Study search paths in the lab, with `brigade study paths`: a Python program, whose imports
dominate, and a C program whose libraries lie in scattered directories.

    python bench/paths.py                     both programs, 2 nodes, the slow file system
    python bench/paths.py --programs c --fs moosefs --repeats 5 --ranks 1,2,4

Writes OUT/paths-PROGRAM.json (raw samples, with the conclusion) and OUT/paths-PROGRAM.png.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support import stack
from support.options import lab_parser, words

from brigade.lab import Lab

PACKAGES = ["numpy", "scipy"]
START = "import numpy, scipy.stats, scipy.sparse.linalg, scipy.optimize\n"


def main() -> int:
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    lab = Lab.up(name=options.lab, nodes=options.nodes, fs=options.fs)
    try:
        for program in options.programs:
            study(lab, program, options)
    finally:
        lab.down()
    return 0


def arguments() -> argparse.Namespace:
    parser = lab_parser(__doc__, "paths", "out/paths", nodes=2, repeats=3)
    parser.add_argument("--ranks", default="1,2,4", help="widths")
    parser.add_argument("--programs", type=words(), default=["python", "c"])
    parser.add_argument("--libraries", type=int, default=60, help="of the C program")
    parser.add_argument("--fs", default="slow:0.5ms", help="slow:0.5ms, or moosefs")
    return parser.parse_args()


def study(lab: Lab, program: str, options: argparse.Namespace) -> None:
    """Put the program onto the shared file system, and study its paths."""
    started = python(lab, options) if program == "python" else c(lab, options)
    result = options.out / f"paths-{program}"
    most = options.ranks.split(",")[-1]
    command = [
        *brigade(), "study", "paths", "--widths", options.ranks, "--repeats", str(options.repeats),
        "--json", f"{lab.shared}/study.json", "--figure", f"{lab.shared}/study.png",
        "--", "srun", "--mpi=none", "-N", str(options.nodes), "-n", most, *started,
    ]  # fmt: skip
    lab.run(command, cwd="/", check=True)
    for kind in ("json", "png"):  # a node may not see where we are
        made = lab.exec("n0", ["cat", f"{lab.shared}/study.{kind}"], stdout=subprocess.PIPE)
        Path(f"{result}.{kind}").write_bytes(made.stdout)


def python(lab: Lab, options: argparse.Namespace) -> list[str]:
    """A virtual environment with real packages, and a script that imports them."""
    local = stack.local_stack(options.cache, PACKAGES)
    lab.exec("n0", stack.copy_command(local, f"{lab.shared}/venv"), check=True)
    text = ["/bin/sh", "-c", 'printf "%s" "$1" > "$2"', "write", START, f"{lab.shared}/app.py"]
    lab.exec("n0", text, check=True)
    return [f"{lab.shared}/venv/bin/python", f"{lab.shared}/app.py"]


def c(lab: Lab, options: argparse.Namespace) -> list[str]:
    """A generated program with each library in a folder of its own, found by RUNPATH."""
    number = str(options.libraries)
    command = [*brigade(), "bench", "cload", "--libraries", number, "--layout", "each"]
    made = lab.exec(
        "n0", [*command, "--dir", f"{lab.shared}/worlds", "--generate"],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return [f"{made.stdout.strip()}/bin/cload"]


def brigade() -> list[str]:
    return [sys.executable, "-m", "brigade"]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[:4]} ended with {error.returncode}")
