"""The copy of a file that is updated is seen by other nodes before they write to it: rank 0 made
it, and its node's client may keep it."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi_python import run
from pgas_world import program

OLD = b"u" * 300_000
ROWS = range(20_000, 280_000, 1000)  # of each of ranks 1 and 2
CHANGE = f"""
PATH = PATH[:-1] + "file"
rows = [(at + 300 * rank, 100) for at in {ROWS} if rank]
how = dict(update="copy", share=False, sync=False, transport="simple", writers=3, stripe="64K")
with brigade.io.open(comm, PATH, "r+", checksums=CHECKSUMS, **how) as f:
    f.write_pieces(rows, b"r" * 100 * len(rows))
"""


@pytest.mark.parametrize("checksums", [True, False])
def test_other_nodes_keep_what_they_do_not_write(checksums: bool, tmp_path: Path):
    (tmp_path / "file").write_bytes(OLD)
    # files called so lie in a network file system, each rank's process is a node
    under = ["env", f"LD_PRELOAD={program('shmemio_late_writes.so')}"]
    run("openmpi", 3, f"CHECKSUMS = {checksums}\n" + CHANGE, tmp_path, under=under)
    want = bytearray(OLD)
    for at in ROWS:
        for rank in (1, 2):
            want[at + 300 * rank : at + 300 * rank + 100] = b"r" * 100
    assert (tmp_path / "file").read_bytes() == want
