#!/usr/bin/env python3
"""Bring one image into the memory of several "nodes" of this machine, and say what it costs.

    python bench/stage.py                          1, 4 and 8 processes, Open MPI and MPICH
    python bench/stage.py --widths 4 --repeats 7 --out out/stage

Every process writes to a base folder of its own in /dev/shm, so the processors and the memory of
one machine do the work of all nodes: look at processor seconds a node, and at the ratio to the two
floors measured in the same run, not at the wall clock alone. The floors are what any staging must
do on every node: decompress the image (verify it with one thread), and write its files (cp -a from
memory to memory). Writes OUT/stage.json (raw samples).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support.samples import median, save

from brigade.image.reader import Image
from brigade.image.writer import ImageWriter
from brigade.paths import native

LAUNCHERS = {
    "none": [],
    "openmpi": ["mpirun", "--oversubscribe", "--bind-to", "none", "-n"],
    "mpich": ["mpiexec.mpich", "-n"],
}


def main() -> int:
    options = arguments()
    samples: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="brigade-bench-", dir="/dev/shm") as folder:
        work = Path(folder)
        image, image_id, raw = make_image(Path(options.prefix), options.mbytes << 20, work)
        print(f"{raw / 1e6:.0f} MB of files, image {image.stat().st_size / 1e6:.0f} MB")
        for _ in range(options.repeats):
            samples.append({"what": "decode", **timed(lambda: Image(image).verify())})
            for launcher in ["none", *options.launchers]:
                for width in options.widths if launcher != "none" else [1]:
                    samples.append(stage(work, image, image_id, launcher, width))
            samples.append({"what": "write", **copy_of_staged(work, image, image_id)})
    settings = {**vars(options), "raw_bytes": raw}
    save(Path(options.out) / "stage.json", "stage", settings, samples)
    show(samples, raw)
    return 0


def make_image(prefix: Path, limit: int, work: Path) -> tuple[Path, str, int]:
    """An image of the first files of a tree, until `limit` bytes are together; hard links not."""
    out, raw = work / "bench.brg", 0
    with ImageWriter(out) as writer:
        writer.add_root(str(prefix))
        for parent in reversed(prefix.parents):
            writer.add(str(parent), os.lstat(parent))
        for order, path in enumerate([prefix, *sorted(prefix.rglob("*"))]):
            st = os.lstat(path)
            if stat.S_ISDIR(st.st_mode):
                writer.add(str(path), st)
            elif stat.S_ISREG(st.st_mode) and st.st_nlink == 1 and raw < limit:
                writer.add(str(path), st, source=str(path), order=order)
                raw += st.st_size
        return out, writer.commit(), raw


def processor_seconds() -> float:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def timed(work: Any) -> dict[str, float]:
    start, used = time.monotonic(), processor_seconds()
    work()
    return {"seconds": time.monotonic() - start, "cpu_seconds": processor_seconds() - used}


def stage(work: Path, image: Path, image_id: str, launcher: str, width: int) -> dict[str, Any]:
    """One staging, and its removal, which is not counted."""
    tool = str(native("brigade-stage"))
    for node in range(width):
        (work / f"n{node}").mkdir(exist_ok=True)
    command = [*LAUNCHERS[launcher], *([str(width)] if launcher != "none" else [])]
    command += [tool, "put", "--image", str(image), "--job", "bench", "--base", str(work / "n%r")]
    if launcher == "none":
        command += ["--mpi", "none", "--workers", "1"]
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    out: list[str] = []
    cost = timed(
        lambda: out.append(
            subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
        )
    )
    result = json.loads(out[0])
    for node in range(width):
        drop(tool, image_id, work / f"n{node}")
    return {
        "what": "stage",
        "launcher": launcher,
        "width": width,
        "wall_seconds": cost["seconds"],
        "cpu_seconds_per_node": cost["cpu_seconds"] / width,
        "peak_bytes": max(node["peak_bytes"] for node in result["nodes"]),
        **result,
    }


def drop(tool: str, image_id: str, base: Path) -> None:
    subprocess.run(
        [tool, "drop", "--image-id", image_id, "--job", "bench", "--base", str(base)],
        stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip


def copy_of_staged(work: Path, image: Path, image_id: str) -> dict[str, float]:
    """What writing the same files takes that lie in memory already."""
    tool = str(native("brigade-stage"))
    base = work / "n0"
    subprocess.run(
        [tool, "put", "--image", image, "--job", "bench", "--base", base, "--mpi", "none"],
        stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    source = base / f"brigade-{os.geteuid()}" / image_id / "root"
    cost = timed(lambda: subprocess.run(["cp", "-a", source, work / "copy"], check=True))
    shutil.rmtree(work / "copy")
    drop(tool, image_id, base)
    return cost


def show(samples: list[dict[str, Any]], raw: int) -> None:
    decode = median(samples, "cpu_seconds", what="decode") or 0.0
    write = median(samples, "cpu_seconds", what="write") or 0.0
    print(f"floors a node: decompress {decode:.2f} + write {write:.2f} processor seconds")
    print("launcher  width    wall  MPI init   GB/s/node  CPU s/node  of floors  peak MB")
    seen = sorted({(s["launcher"], s["width"]) for s in samples if s["what"] == "stage"})
    for launcher, width in seen:
        where = {"what": "stage", "launcher": launcher, "width": width}
        wall, seconds, mpi, cpu, peak = (
            median(samples, key, **where) or 0.0
            for key in (
                "wall_seconds",
                "seconds",
                "mpi_seconds",
                "cpu_seconds_per_node",
                "peak_bytes",
            )
        )
        print(
            f"{launcher:9} {width:5} {wall:6.2f}s  {mpi:7.3f}s  {raw / seconds / 1e9:9.2f}"
            f"  {cpu:10.2f}  {cpu / (decode + write):8.2f}x  {peak / 1e6:7.1f}"
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--prefix", default="/usr/lib/x86_64-linux-gnu", help="tree to take files from"
    )
    parser.add_argument("--mbytes", type=int, default=300)
    parser.add_argument("--widths", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument(
        "--launchers", nargs="*", choices=["openmpi", "mpich"], default=["openmpi", "mpich"]
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", default="out/stage")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
