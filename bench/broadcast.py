#!/usr/bin/env python3
"""Import NumPy and SciPy in an MPI program in the lab, plainly and after
`brigade.imports.broadcast`, under each launcher in turn; count what reached the file system.

    python bench/broadcast.py --repeats 3 --out out/broadcast

A third variant, `start`, imports nothing but mpi4py: what Python and MPI cost before the call.
Caches of the shared file system's clients are dropped before every start. Writes
OUT/broadcast.json (raw samples) and prints medians.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import sys
import sysconfig
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support import stack
from support.options import lab_parser, words
from support.samples import median, save

from brigade.lab import Lab

APP = Path(__file__).parent / "apps/broadcast.py"
PACKAGES = ["numpy", "scipy", "mpi4py"]
VARIANTS = ("plain", "broadcast", "start")
LAUNCHERS = {
    "srun": ["srun", "--mpi=pmix", "-N", "{nodes}", "-n", "{ranks}"],
    "mpirun": ["mpirun", "-n", "{ranks}"],
    "mpiexec.mpich": ["mpiexec.mpich", "-n", "{ranks}"],
}


def main() -> int:
    options = arguments()
    lab = Lab.up(name=options.lab, nodes=options.nodes)
    samples: list[dict[str, Any]] = []
    try:
        places = prepare(lab, options)
        for repeat in range(options.repeats):
            for launcher in options.launchers:
                for variant in VARIANTS:
                    sample = start(lab, places, launcher, variant, options, repeat)
                    samples.append(sample)
                    print(
                        f"  {launcher:14} {variant:10} {sample['requests']:7,} requests  "
                        f"{sample['seconds']:6.2f} s of imports",
                        flush=True,
                    )
    finally:
        lab.down()
    settings = {key: str(value) for key, value in vars(options).items()}
    save(options.out / "broadcast.json", "broadcast", settings, samples)
    print_medians(samples, options)
    return 0


def arguments() -> argparse.Namespace:
    parser = lab_parser(__doc__, "broadcast", "out/broadcast", nodes=2, repeats=3)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--launchers", type=words(), default=list(LAUNCHERS))
    return parser.parse_args()


def prepare(lab: Lab, options: argparse.Namespace) -> dict[str, str]:
    """The environment and the program on the shared file system, and the environment's image."""
    options.cache.mkdir(parents=True, exist_ok=True)
    local = stack.local_stack(options.cache, PACKAGES)
    places = {name: f"{lab.shared}/{name}" for name in ("venv", "app.py", "env.brg")}
    lab.exec("n0", stack.copy_command(local, places["venv"]), check=True)
    lab.host_path("n0", places["app.py"]).write_bytes(APP.read_bytes())
    brigade = str(Path(sys.executable).parent / "brigade")
    image = [brigade, "image", "create", "--quiet", "--prefix", places["venv"]]
    lab.exec("n0", [*image, "-o", places["env.brg"]], check=True)
    return places


def environment(launcher: str, options: argparse.Namespace) -> dict[str, str]:
    """Brigade from the local disk, and for MPICH the name by which mpi4py's wheel asks for it."""
    found = {"PYTHONPATH": sysconfig.get_path("purelib"), "PYTHONDONTWRITEBYTECODE": "1"}
    if launcher == "mpiexec.mpich":
        folder = options.cache / "mpich"
        folder.mkdir(exist_ok=True)
        link = folder / "libmpi.so.12"
        if not link.is_symlink():
            link.symlink_to(glob.glob("/usr/lib/*/libmpich.so.12")[0])
        found.update(LD_LIBRARY_PATH=str(folder), MPI4PY_MPIABI="mpich")
    return found


def start(
    lab: Lab,
    places: dict[str, str],
    launcher: str,
    variant: str,
    options: argparse.Namespace,
    repeat: int,
) -> dict[str, Any]:
    """One start of the program; returns its sample."""
    command = [
        word.format(nodes=options.nodes, ranks=options.ranks) for word in LAUNCHERS[launcher]
    ]
    job = [*command, f"{places['venv']}/bin/python", places["app.py"], variant, places["env.brg"]]
    lab.drop_caches()
    lab.reset()
    begin = time.monotonic()
    done = lab.run(
        job, env=environment(launcher, options), cwd="/", stdout=PIPE, stderr=PIPE, text=True
    )
    total = time.monotonic() - begin
    if done.returncode:
        raise SystemExit(f"{' '.join(job)} ended with {done.returncode}:\n{done.stderr}")
    stats = lab.stats().total
    said = json.loads(done.stdout.splitlines()[-1])
    if said["nodes"] != options.nodes or len(set(said["modules"])) != 1:
        raise SystemExit(f"{launcher} {variant}: not what was asked for: {said}")
    return {
        "launcher": launcher,
        "variant": variant,
        "repeat": repeat,
        "requests": stats.requests,
        "request_kinds": stats.kinds,
        "read_bytes": stats.bytes_read,
        "seconds": max(said["seconds"]),
        "rank_seconds": said["seconds"],
        "total_seconds": total,
        "modules": said["modules"][0],
        "report": said["report"],
    }


def print_medians(samples: list[dict[str, Any]], options: argparse.Namespace) -> None:
    print(f"\nmedians of {options.repeats}: requests (seconds of imports, slowest rank)")
    for launcher in options.launchers:
        cells = [
            f"{variant} {median(samples, 'requests', launcher=launcher, variant=variant):,.0f} "
            f"({median(samples, 'seconds', launcher=launcher, variant=variant):.2f} s)"
            for variant in VARIANTS
        ]
        print(f"  {launcher:14} " + ", ".join(cells))
    print(f"raw samples: {options.out / 'broadcast.json'}")


if __name__ == "__main__":
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        os.environ.setdefault(name, "1")
    sys.exit(main())
