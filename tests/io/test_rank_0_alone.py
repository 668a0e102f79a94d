"""What rank 0 does by itself for ranks on several nodes, and what nobody does to the file: on a
shared file system each such call is a request, which all ranks wait for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mpi_python import run
from store_world import MIB, calls_of_ranks, verify

ARRAYS = """
data = numpy.full(30, rank, "u1")
whole = numpy.arange(size, dtype="u1").repeat(30)
with brigade.io.open(comm, PATH, "w", share=False) as f:
    for i in range(20):
        f.write_array(f"a{i}", data, shape=whole.shape, start=(30 * rank,))
"""
READ_ARRAYS = """
whole = numpy.arange(3, dtype="u1").repeat(30)
with brigade.io.open(None, PATH) as f:
    out["wrong"] = [name for name in f if (f.read_array(name) != whole).any()]
    out["n"] = len(list(f))
"""
OURS = ("f", ".f.")
CALLS = "openat,pread64,preadv,preadv2,pwrite64,pwritev,rename,unlink,fsync"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    return made


def traced(body: str, folder: Path) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """What three ranks said, and what each that did anything did to the file and what lies beside
    it, in order: call and name."""
    said, made = calls_of_ranks(body, folder, CALLS)
    did = [[f"{call} {name}" for call, name in calls if name.startswith(OURS)] for calls in made]
    return said, [calls for calls in did if calls]


def test_small_arrays_and_their_index_are_written_at_once_and_not_read_back(folder: Path):
    assert traced(ARRAYS, folder)[1] == [
        [  # of rank 0; the others have nothing to do with the file
            "openat .f.brg",
            "pwrite64 .f.brg",
            "openat .f.brg.sums",
            "pwrite64 .f.brg.sums",
            "fsync .f.brg",
            "fsync .f.brg.sums",
            "rename .f.brg.sums",
            "rename .f.brg",
        ]
    ]
    assert run("openmpi", 1, READ_ARRAYS, folder) == [{"wrong": [], "n": 20}]
    assert verify(folder / "f")["damaged"] == 0


FOR_UPDATE = """
with brigade.io.open(comm, PATH, "w", share=False, sync=False) as f:
    f.write(rank * 70_000, bytes(70_000))
"""
UPDATE = """
with brigade.io.open(comm, PATH, "r+", update=HOW, share=False) as f:
    f.write(rank * 20_000, b"x" * 100)
"""


@pytest.mark.parametrize("how", ["in-place", "copy"])
def test_few_bytes_of_a_file_that_is_there_are_changed_by_rank_0(how: str, folder: Path):
    """What it knows of the file's checksums stays in memory; that block, and the last one, which is
    not whole, are read back."""
    run("openmpi", 3, FOR_UPDATE, folder)
    (did,) = traced(f"HOW = {how!r}\n" + UPDATE, folder)[1]
    written = "f" if how == "in-place" else ".f.brg"
    last = len(did) - did[::-1].index(f"pwrite64 {written}")
    assert did[last:].count(f"pread64 {written}") == 2
    assert did.count(f"pwrite64 {written}") == 3
    assert not [one for one in did if "blocks" in one]
    assert verify(folder / "f")["damaged"] == 0
    want = bytearray(210_000)
    for rank in range(3):
        want[rank * 20_000 : rank * 20_000 + 100] = b"x" * 100
    assert (folder / "f").read_bytes() == bytes(want)


FOR_MORE = """
with brigade.io.open(comm, PATH, "w", share=False, sync=False) as f:
    f.write(rank << 21, bytes(2 << 20))
"""
MORE = """
with brigade.io.open(comm, PATH, "r+", update=HOW, share=False, sync=False) as f:
    f.write(rank * 1000, b"x" * 100)
    f.write((1 + rank) << 20, b"y" * (1 << 20))
    f.write((5 << 20) + rank, b"z")
    out["how"] = f.explain()
"""


@pytest.mark.parametrize("how", ["in-place", "copy"])
def test_others_know_the_checksums_of_what_they_write_to_a_file_that_is_there(
    how: str, folder: Path
):
    run("openmpi", 3, FOR_MORE, folder)
    said, did_each = traced(f"HOW = {how!r}\n" + MORE, folder)
    for rank in said:
        assert "carried to rank 0" in rank["how"]  # the last call
    did = [call for calls in did_each for call in calls]
    # the head, as it is opened, the copying, and the two blocks that are not written whole; not 48
    assert did.count("pread64 f") + did.count("pread64 .f.brg") <= 6
    want = bytearray(6 * MIB)
    for rank in range(3):
        want[rank * 1000 : rank * 1000 + 100] = b"x" * 100
    want[MIB : 4 * MIB] = b"y" * (3 * MIB)
    want[5 * MIB : 5 * MIB + 3] = b"zzz"
    assert (folder / "f").read_bytes() == bytes(want)
    assert verify(folder / "f")["damaged"] == 0


CANCELLED = """
try:
    with brigade.io.open(comm, PATH, "r+", update="in-place", share=False) as f:
        f.write(rank * 20_000, b"x" * 100)
        if rank == 1:
            raise ZeroDivisionError
except (brigade.io.BrigadeIOError, ZeroDivisionError) as error:
    out["raised"] = type(error).__name__
"""


def test_checksums_of_a_file_in_place_are_changed_when_all_commit(tmp_path: Path):
    run("openmpi", 3, FOR_UPDATE, tmp_path)
    before = (tmp_path / "f.sums").read_bytes()
    ranks = run("openmpi", 3, CANCELLED, tmp_path)
    assert [rank["raised"] for rank in ranks] == [
        "BrigadeIOError", "ZeroDivisionError", "BrigadeIOError",
    ]  # fmt: skip
    assert (tmp_path / "f.sums").read_bytes() == before
