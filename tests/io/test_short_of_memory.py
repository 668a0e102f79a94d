"""A rank that has too little memory to open a file: what all ranks are told."""

from __future__ import annotations

import errno
from pathlib import Path

from mpi_python import run

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
