"""With sync=yes a rank syncs what it wrote before the file is published. Where ranks are on several
nodes nobody else can: another node's sync knows nothing of these bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi_python import run
from store_world import calls_of_ranks, verify

DATA = ".f.brg"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    return made


def synced(body: str, folder: Path) -> list[list[str]]:
    """What each of three ranks that wrote did to the data, in order: writing, or syncing."""
    _, made = calls_of_ranks(body, folder, "pwrite64,fsync,fdatasync")
    did = [
        ["sync" if "sync" in call else "write" for call, name in calls if name == DATA]
        for calls in made
    ]
    assert verify(folder / "f")["damaged"] == 0
    return [calls for calls in did if calls]


# The index touches bytes of the arrays: all let what they wrote arrive.
ARRAYS = """
n = 200_000
with brigade.io.open(comm, PATH, "w", share=False) as f:
    for name in "abc":
        f.write_array(name, numpy.ones(n), shape=(size * n,), start=(rank * n,))
"""
# Each call is over bytes of the one before, so that every rank lets go of the file each time; and
# after the last time only rank 0 writes.
AGAIN = """
n = 1 << 20
with brigade.io.open(comm, PATH, "w", share=False) as f:
    for i in range(5):
        f.write((rank + i) % size * n, bytes([i + 1]) * n)
    f.write(0, b"end" * (rank == 0))
"""


@pytest.mark.parametrize("body", [ARRAYS, AGAIN])
def test_each_rank_syncs_what_it_wrote_once_and_at_the_end(body: str, folder: Path) -> None:
    did = synced(body, folder)
    assert len(did) == 3
    for calls in did:
        assert calls[-1] == "sync" and calls.count("sync") == 1, did


THERE = """
with brigade.io.open(comm, PATH, "w", share=False, sync=False) as f:
    f.write(rank << 21, bytes(2 << 20))
"""
UPDATE = """
with brigade.io.open(comm, PATH, "r+", share=False) as f:
    for i in range(2):
        f.write(rank << 21, b"x" * (2 << 20) * (rank > 0))
"""


def test_what_was_copied_of_the_file_that_is_there_is_synced_by_rank_0(folder: Path) -> None:
    run("openmpi", 3, THERE, folder)
    did = synced(UPDATE, folder)
    assert len(did) == 3 and all(calls[-1] == "sync" for calls in did), did
