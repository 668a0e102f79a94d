"""When the index of a file of arrays is written, when ranks hear that they differ, and that every
byte that anybody wrote has its checksum."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy
import pytest
from mpi_python import run
from store_world import verify

import brigade.io

UPDATES = ["copy", "in-place"]


def is_whole(path: Path) -> bool:
    return bool(verify(path).get("damaged") == 0)


@pytest.mark.parametrize("update", UPDATES)
def test_an_attribute_alone_may_change(tmp_path: Path, update: str) -> None:
    path = tmp_path / "f"
    with brigade.io.open(None, path, "w") as f:
        f.write_array("a", numpy.arange(5))
        f.attrs["time"] = 1
    with brigade.io.open(None, path, "r+", update=update) as f:
        f.attrs["time"] = 2
    with brigade.io.open(None, path) as f:
        assert f.attrs["time"] == 2 and f.read_array("a").tolist() == [0, 1, 2, 3, 4]
    assert is_whole(path)


@pytest.mark.parametrize("update", UPDATES)
def test_elements_alone_may_change_and_have_new_checksums(tmp_path: Path, update: str) -> None:
    path = tmp_path / "f"
    with brigade.io.open(None, path, "w", stripe="64K") as f:
        f.write_array("a", numpy.zeros(100_000))
        f.attrs["time"] = 1
    before = (path.read_bytes()[:64], (tmp_path / "f.sums").stat().st_size)
    for value, stripe in ((1.0, "64K"), (2.0, "1M"), (3.0, "64K")):
        with brigade.io.open(None, path, "r+", update=update, stripe=stripe) as f:
            f.write_array("a", numpy.full(10, value), shape=(100_000,), start=(70_000,))
        assert is_whole(path)
        with brigade.io.open(None, path) as f:
            assert f.attrs["time"] == 1 and f.read_array("a").sum() == 10 * value
    if update == "in-place":
        assert before == (path.read_bytes()[:64], (tmp_path / "f.sums").stat().st_size)


@pytest.mark.parametrize("update", UPDATES)
def test_a_file_that_grows_has_checksums_of_all_of_it(tmp_path: Path, update: str) -> None:
    path = tmp_path / "f"
    with brigade.io.open(None, path, "w", stripe="64K") as f:
        f.write_array("a", numpy.zeros(10))
    with brigade.io.open(None, path, "r+", update=update, stripe="64K") as f:
        f.write_array("b", numpy.arange(50_000))
    with brigade.io.open(None, path) as f:
        assert list(f) == ["a", "b"] and (f.read_array("b") == numpy.arange(50_000)).all()
    assert is_whole(path)


# Rank 0 comes to commit, and may write the index, while rank 1 still writes the block that the
# index is in, from its beginning to where the arrays end.
STREAM = """
n = 128 << 10
with brigade.io.open(comm, PATH, "w", stripe="64K", sync=False) as f:
    f.write_array("a", numpy.full(100 * (rank == 0), 1, "u1"), shape=(n + 1000,), start=(n + 900,))
    for at in [n, n + 500] if rank else []:
        f.write_array("a", numpy.full(500, 2, "u1"), shape=(n + 1000,), start=(at,))
"""


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_the_block_that_the_index_is_in_has_its_checksum(mpi: str, tmp_path: Path) -> None:
    run(mpi, 2, STREAM, tmp_path)
    path = tmp_path / "f"
    with brigade.io.open(None, path) as f:
        assert f.read_array("a").tolist() == [0] * 131072 + [2] * 1000
    assert is_whole(path)


# Nobody writes the array's end, and one rank knows the block in which the bytes end that it writes.
# The index lies blocks further on, or in the next one, or in the same.
SHORT = """
n = 1 << 18
for i, left in enumerate((200_000, 70_000, 100)):
    for who in range(2):
        mine = numpy.ones((n - left) * (rank == who), "u1")
        with brigade.io.open(comm, f"{PATH}.{i}.{who}", "w", sync=SYNC) as f:
            f.write_array("a", mine, shape=(n,))
"""


@pytest.mark.parametrize("hints", ["", "*:share=no", "*:async=yes"])
@pytest.mark.parametrize("sync", [False, True])
def test_an_array_whose_end_nobody_writes_has_its_checksums(
    sync: bool, hints: str, tmp_path: Path
) -> None:
    run("openmpi", 2, f"SYNC = {sync}\n" + SHORT, tmp_path, hints)
    files = sorted(path for path in tmp_path.glob("f.*") if path.suffix != ".sums")
    assert len(files) == 6
    assert [path.name for path in files if not is_whole(path)] == []


DIFFER = """
out["where"] = "open"
try:
    with brigade.io.open(comm, PATH, "w", sync=False, transport="{transport}") as f:
        f.write_array("same", numpy.zeros(100_000))
        out["where"] = "write"
        f.write_array("a", numpy.zeros(100_000 + (rank == 1)))
        out["where"] = "commit"
except brigade.io.BrigadeIOError as error:
    out["failure"] = failure(error)[4]
"""


@pytest.mark.parametrize("transport", ["direct", "simple"])
def test_ranks_that_differ_hear_it_from_the_call(transport: str, tmp_path: Path) -> None:
    for rank in run("openmpi", 3, DIFFER.format(transport=transport), tmp_path):
        assert rank["where"] == "write"
        assert "is a, float64 [100000] on rank 0, and a, float64 [100001] on" in rank["failure"]
    assert not list(tmp_path.glob("*f"))


# Rank 1 writes what all have defined once more while the others define another array.
APART = """
with brigade.io.open(comm, PATH, "w", sync=False) as f:
    f.write_array("a", numpy.full(100_000 * (rank == 0), 1.0), shape=(100_000,))
    for i in range([0, 3, 1][rank]):
        f.write_array("a", numpy.full(10, 2.0), shape=(100_000,), start=(100 * rank + 10 * i,))
    f.write_array("small", numpy.full(int(rank == 2), 5.0), shape=(1,))
    f.write_array("kept", numpy.full(1, rank + 1.0), shape=(3,), start=(rank,))
    f.write_array("b", numpy.full(50_000, rank + 1.0), shape=(150_000,), start=(50_000 * rank,))
    f.write_array("small", numpy.full(int(rank == 1), 6.0), shape=(1,))
"""


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize("transport", ["auto", "simple", "brigade"])
def test_ranks_may_be_at_different_arrays(mpi: str, transport: str, tmp_path: Path) -> None:
    run(mpi, 3, APART, tmp_path, hints=f"*:transport={transport}")
    a = numpy.ones(100_000)
    a[100:130] = a[200:210] = 2
    with brigade.io.open(None, tmp_path / "f") as f:
        assert list(f) == ["a", "small", "kept", "b"]
        assert (f.read_array("a") == a).all() and f.read_array("small") == 6
        assert f.read_array("kept").tolist() == [1, 2, 3]
        assert (f.read_array("b") == numpy.repeat([1.0, 2.0, 3.0], 50_000)).all()
    assert is_whole(tmp_path / "f")


# The index has no room: that is rank 0's failure alone, before the ranks meet.
FULL = """
import resource
try:
    with brigade.io.open(comm, PATH, "w", sync=False, transport="{transport}") as f:
        f.write_array("a", numpy.zeros(100_000), shape=(300_000,), start=(100_000 * rank,))
        f.attrs["text"] = "x" * 100_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_450_000, resource.RLIM_INFINITY))
except brigade.io.BrigadeIOError as error:
    out["failure"] = failure(error)
"""


@pytest.mark.parametrize("transport", ["direct", "brigade"])
def test_an_index_that_has_no_room_fails_everywhere(transport: str, tmp_path: Path) -> None:
    said = [one["failure"] for one in run("openmpi", 3, FULL.format(transport=transport), tmp_path)]
    assert said[0] == said[1] == said[2]
    assert said[0][0] == errno.EFBIG and said[0][1] == 0 and said[0][3] == str(tmp_path / "f")
    assert not list(tmp_path.glob("*f*"))
