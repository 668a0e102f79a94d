"""A rank that has too little memory for a file: what all ranks are told."""

from __future__ import annotations

import errno
from pathlib import Path

from mpi_python import run
from store_world import verify

LIMITED = """
import resource
if rank == 1:
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (2 << 20), resource.RLIM_INFINITY))
try:
    brigade.io.open(comm, PATH, "w")
except brigade.io.BrigadeIOError as error:
    out["failed"] = failure(error)
"""


def test_every_rank_hears_that_memory_lacks_and_which_hint_takes_less(tmp_path: Path) -> None:
    first, *others = (said["failed"] for said in run("openmpi", 3, LIMITED, tmp_path))
    assert others == [first] * 2
    assert first[0] == errno.ENOMEM and "memory" in first[4] and "hint segment" in first[4]


# Columns of small arrays, kept until the commit: what lists their pieces takes 8 MiB.
KEPT = """
import resource
with brigade.io.open(comm, PATH, "w", sync=False) as f:
    f.write_array("first", numpy.zeros(1), shape=(size,), start=(rank,))
with brigade.io.open(comm, PATH, "r+", sync=False, segment="64M", update="in-place") as f:
    for i in range(50):
        f.write_array(f"a{i}", numpy.full((8192, 1), rank, "i1"), shape=(8192, 2), start=(0, rank))
    if rank == 1:
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + (1 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        f.commit()
    except brigade.io.BrigadeIOError as error:
        out["failed"] = failure(error)
    if rank == 1:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    f.commit()
with brigade.io.open(comm, PATH) as f:
    out["right"] = [(f.read_array(f"a{i}") == [0, 1]).all().item() for i in range(50)]
"""


def test_what_a_rank_cannot_write_of_small_arrays_is_told_and_can_be_tried_again(
    tmp_path: Path,
) -> None:
    ranks = run("openmpi", 2, KEPT, tmp_path)
    first, other = (rank["failed"] for rank in ranks)
    assert first == other and first[:2] == [errno.ENOMEM, 1]
    assert first[3] == str(tmp_path / "f") and "no memory for pieces of small arrays" in first[4]
    assert [rank["right"] for rank in ranks] == [[True] * 50] * 2
    assert verify(tmp_path / "f")["damaged"] == 0
