"""Shared files on nodes whose file system caches what they have seen and written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mpi_world import compile_mpi
from random_arrays import PLAN, READ, WRITE

from brigade.lab import Lab
from brigade.paths import native_dir

DRIVER = Path(__file__).parents[1] / "io" / "io_driver.c"
_HEAD = """
import os, numpy
from mpi4py import MPI
import brigade.io
comm, rank, size = MPI.COMM_WORLD, MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
PATH, SEEDS, out = os.environ["BRIGADE_LAB_SHARED"] + "/arrays", range(25), {"wrong": []}
"""
_END = """
assert comm.allreduce(len(out["wrong"])) == 0, out
print("ranks", comm.size) if rank == 0 else None
"""


def run(lab: Lab, ranks: int, body: str) -> None:
    pytest.importorskip("mpi4py")
    program = Path(lab.host_path("n0", lab.shared)) / "program.py"
    program.write_text(_HEAD + PLAN + body + _END)
    python = Path(__file__).resolve().parents[2] / "python"
    words = ["env", f"PYTHONPATH={python}", f"BRIGADE_NATIVE={native_dir().absolute()}"]
    words += ["MPI4PY_MPIABI=openmpi", sys.executable, "-B", f"{lab.shared}/program.py"]
    done = lab.run(
        ["mpirun", "-n", str(ranks), "--map-by", "node", *words],
        stdout=-1, stderr=-1, text=True, timeout=100, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0 and f"ranks {ranks}" in done.stdout, done.stdout + done.stderr


LONG_RUNS = """
with brigade.io.open(comm, PATH, "w", **HINTS) as f:
    f.write(rank << 20, bytes([rank + 1]) * (1 << 20))
    explained = f.explain()
assert ("one node at a time writes each" in explained), explained
with brigade.io.open(comm, PATH, "r") as f:
    if f.read((size - 1 - rank) << 20, 1 << 20) != bytes([size - rank]) * (1 << 20):
        out["wrong"].append("bytes")
"""


@pytest.mark.parametrize(
    ("hints", "written"),
    [("{}", [3, 0, 0]), ("{'lock_unit': '2M'}", [2, 1, 0]), ("{'lock_unit': '64K'}", [1, 1, 1])],
)
def test_nodes_do_not_wait_for_each_other_to_write(
    moose: Lab, hints: str, written: list[int]
) -> None:
    """MooseFS lets one client at a time write to 64 MiB of a file."""
    moose.reset()
    run(moose, 3, f"HINTS = {hints}\n" + LONG_RUNS)
    nodes = moose.stats().nodes
    assert [nodes[name].bytes_written >> 20 for name in ("n0", "n1", "n2")] == written


OVERLAPPING = (
    "seed=782676692 writers=3 readers=3 calls=4 size=1500000 gap=0 kinds=31 apart=1 "
    "update=in-place "
    "hints=transport=direct:sync=no:segment=64K:stripe=256K:writers=2:checksums=yes\n"
)


HOLES = (
    "seed=966046150 writers=3 readers=3 calls=1 size=300000 gap=1073741824 kinds=6 apart=1 "
    "update=copy hints=transport=simple:sync=no\n"
)


def make(lab: Lab, name: str, cases: str) -> None:
    folder = Path(lab.host_path("n0", lab.shared)) / name
    (folder / "files").mkdir(parents=True)
    compile_mpi("openmpi", DRIVER, folder / "driver", f"-I{DRIVER.parent}")
    (folder / "cases").write_text(cases)
    words = [f"{lab.shared}/{name}/{word}" for word in ("driver", "cases", "files")]
    done = lab.run(
        ["mpirun", "-n", "3", "--map-by", "node", *words],
        stdout=-1, stderr=-1, text=True, timeout=100, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0 and "case" in done.stdout, done.stdout + done.stderr


def test_of_calls_that_overlap_on_several_nodes_the_last_one_stays(moose: Lab) -> None:
    """A node's client keeps what was written; it must not arrive after another node's."""
    make(moose, "overlap", OVERLAPPING * 3)


def test_a_copy_to_update_keeps_holes_that_the_file_system_does_not_tell_of(moose: Lab) -> None:
    make(moose, "holes", HOLES)
    data = Path(f"/var/tmp/brigade-lab-{moose.name}")
    assert sum(at.stat().st_blocks for at in data.rglob("*")) * 512 < 200 << 20


@pytest.mark.all
def test_random_arrays_come_back_on_other_nodes(moose: Lab) -> None:
    run(moose, 8, WRITE)
    run(moose, 5, READ)
