#!/usr/bin/env python3
"""Make the studies of docs/explanation/studies.md in the lab, on the slow file system.

    python bench/studies.py                       all of them, 2 nodes
    python bench/studies.py --studies paths-c --repeats 5 --ranks 1,2,4,8
    python bench/studies.py --fs moosefs

paths-python      search paths of a Python program: NumPy and SciPy in a virtual environment
paths-c           search paths of a C program, its libraries in a directory each; for both,
                  LD_LIBRARY_PATH has entries of modules that are loaded and not used
storage-python    NumPy from the shared file system and from a local disk, each also with a copy of
                  the system's libraries; on one node, whose disk it is

Writes OUT/studies-NAME.json (raw samples, conclusion) and OUT/studies-NAME.png; prints each report.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support import stack
from support.options import lab_parser, words
from support.samples import save

from brigade.lab import Lab

STUDIES = ["paths-python", "paths-c", "storage-python"]
BRIGADE = [sys.executable, "-m", "brigade"]


def main() -> int:
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    lab = Lab.up(name=options.lab, nodes=options.nodes, fs=options.fs)
    try:
        for name in options.studies:
            study(lab, name, options)
    finally:
        lab.down()
    return 0


def arguments() -> argparse.Namespace:
    parser = lab_parser(__doc__, "studies", "out/studies", nodes=2, repeats=3)
    parser.add_argument("--ranks", default="1,2,4", help="widths")
    parser.add_argument("--studies", type=words(), default=STUDIES)
    parser.add_argument("--libraries", type=int, default=60, help="of the C program")
    parser.add_argument("--modules", type=int, default=8, help="useless search path entries")
    parser.add_argument("--fs", default="slow:0.2ms", help="slow:0.2ms, or moosefs")
    return parser.parse_args()


def study(lab: Lab, name: str, options: argparse.Namespace) -> None:
    """Put the program onto the shared file system, and study it."""
    nodes, kind, loaded = ["-N", str(options.nodes)], [], {}
    if name.startswith("paths"):
        loaded["LD_LIBRARY_PATH"] = modules(lab, options.modules)
    if name == "paths-c":
        program = c(lab, options)
    elif name == "paths-python":
        imports = "import numpy, scipy.stats, scipy.sparse.linalg, scipy.optimize\n"
        program = python(lab, options, ["numpy", "scipy"], imports)
    else:
        program, nodes = python(lab, options, ["numpy"], "import numpy\n"), ["-w", "n0"]
        kind = ["--at", lab.shared, "--at", lab.local, "--with-libraries"]
    command = [
        *BRIGADE, "study", name.partition("-")[0], *kind,
        "--widths", options.ranks, "--repeats", str(options.repeats),
        "--json", f"{lab.shared}/study.json", "--figure", f"{lab.shared}/study.png",
        "--", "srun", "--mpi=pmix", *nodes, "-n", options.ranks.split(",")[-1], *program,
    ]  # fmt: skip
    lab.run(command, cwd="/", check=True, env=loaded)
    found = json.loads(fetched(lab, "study.json"))
    settings = {key: value for key, value in vars(options).items() if key not in ("cache", "out")}
    samples = found.pop("samples")
    save(options.out / f"studies-{name}.json", "studies", {**settings, "study": found}, samples)
    (options.out / f"studies-{name}.png").write_bytes(fetched(lab, "study.png"))


def modules(lab: Lab, number: int) -> str:
    """A search path as `module load` leaves it: folders of software that nobody here uses."""
    folders = [f"{lab.shared}/modules/{i:02d}/lib" for i in range(number)]
    lab.exec("n0", ["mkdir", "-p", *folders], check=True)
    return ":".join(folders)


def fetched(lab: Lab, name: str) -> bytes:
    """A file from the shared file system: a node may not see where we are."""
    path = f"{lab.shared}/{name}"
    made = lab.exec("n0", ["cat", path], check=True, stdout=subprocess.PIPE)
    return bytes(made.stdout)


def python(lab: Lab, options: argparse.Namespace, packages: list[str], text: str) -> list[str]:
    """A virtual environment with real packages, and a script that imports them."""
    options.cache.mkdir(parents=True, exist_ok=True)
    local = stack.local_stack(options.cache, packages)
    venv, script = f"{lab.shared}/venv-{len(packages)}", f"{lab.shared}/app-{len(packages)}.py"
    lab.exec("n0", stack.copy_command(local, venv), check=True)
    write = ["/bin/sh", "-c", 'printf "%s" "$1" > "$2"', "write", text, script]
    lab.exec("n0", write, check=True)
    return [f"{venv}/bin/python", script]


def c(lab: Lab, options: argparse.Namespace) -> list[str]:
    """A generated program with each library in a folder of its own, found by RUNPATH."""
    settings = ["--libraries", str(options.libraries), "--layout", "each"]
    command = [*BRIGADE, "bench", "cload", *settings, "--dir", f"{lab.shared}/worlds", "--generate"]
    made = lab.exec("n0", command, check=True, stdout=subprocess.PIPE, text=True)
    return [f"{made.stdout.strip()}/bin/cload"]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(error.cmd[:6])} … ended with {error.returncode}")
