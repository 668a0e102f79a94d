"""Named arrays written by some ranks and read by others, with both MPIs."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from mpi_python import run
from mpi_world import EITHER_MPI, MPIS
from store_world import verify

HINTS = [
    {},
    {"transport": "direct", "async_": True},
    {"transport": "simple", "writers": 2, "segment": "64K"},
    {"transport": "brigade", "writers": 2, "segment": "64K"},
    {"transport": "rotate", "writers": 2},
    {"transport": "brigade", "share": False, "segment": "64K"},
    {"layout": "parts", "writers": 2},
]
WRITE = """
N, M = 37, 11
whole = numpy.arange(N * M, dtype="f8").reshape(N, M)
first, last = rank * N // size, (rank + 1) * N // size
for k, hints in enumerate(HINTS):
    with brigade.io.open(comm, PATH + str(k), "w", sync=False, **hints) as f:
        f.write_array("rows", whole[first:last], shape=(N, M), start=(first, 0))
        columns = numpy.asfortranarray(whole[:, rank::size])
        for i in range(columns.shape[1]):  # the number of calls differs from rank to rank
            f.write_array("columns", columns[:, i:i+1], shape=(N, M), start=(0, rank + i * size))
        for i in range(100):
            mine = numpy.full(3 if i % size == rank else 0, i, "i4")
            f.write_array(f"small/{i}", mine, shape=(3,))
        f.write_array("late", None if rank else numpy.arange(90_000), shape=(90_000,), dtype="i8")
        f.attrs["size"] = size + rank  # rank 0's is kept
        f["rows"].attrs["unit"] = "K"
"""
READ = """
N, M = 37, 11
whole = numpy.arange(N * M, dtype="f8").reshape(N, M)
first, last = rank * M // size, (rank + 1) * M // size
out["wrong"] = []
for k, hints in enumerate(HINTS):
    hints.pop("layout", None)
    with brigade.io.open(comm, PATH + str(k), **hints) as f:
        found = len(f), f.attrs["size"], f["rows"].attrs["unit"]
        right = found == (103, WRITERS, "K")
        for name in ("rows", "columns"):
            got = f.read_array(name, start=(0, first), count=(N, last - first))
            right = right and bool((got == whole[:, first:last]).all())
        if rank == size - 1:  # one rank reads on, the others close
            right = right and all((f.read_array(f"small/{i}") == i).all() for i in range(100))
            right = right and bool((f.read_array("late") == numpy.arange(90_000)).all())
    if not right:
        out["wrong"].append([hints, found])
"""


@pytest.mark.parametrize(
    "mpi, writers, readers",
    [
        ("openmpi", 1, 3),
        ("mpich", 3, 2),
        pytest.param("openmpi", 3, 2, marks=pytest.mark.all),
        pytest.param("mpich", 1, 3, marks=pytest.mark.all),
    ],
)
def test_any_number_of_ranks_reads_what_any_other_wrote_however_it_travels(
    mpi: str, writers: int, readers: int, tmp_path: Path
) -> None:
    hints = f"HINTS, WRITERS = {HINTS!r}, {writers}\n"
    run(mpi, writers, hints + WRITE, tmp_path)
    ranks = run(mpi, readers, hints + READ, tmp_path)
    assert [rank["wrong"] for rank in ranks] == [[]] * readers


CHANGE = """
with brigade.io.open(comm, PATH, "w", sync=False) as f:
    f.write_array("old", numpy.full(10, rank, "i4"), shape=(10 * size,), start=(10 * rank,))
    f.attrs["time"], f.attrs["kept"] = 1.0, "yes"
with brigade.io.open(comm, PATH, "r+", sync=False) as f:
    out["before"] = [f.attrs["time"], list(f)]
    seven = numpy.full(int(rank == 1), 7, "i4")
    f.write_array("old", seven, shape=(10 * size,), start=(3,))
    f.write_array("new", numpy.full(100_000, rank, "i4"), shape=(size * 100_000,),
                  start=(rank * 100_000,))
    f.attrs["time"] = 2.0
with brigade.io.open(comm, PATH) as f:
    out["after"] = [f.attrs["time"], f.attrs["kept"], list(f)]
    out["old"] = f.read_array("old").tolist()
    out["new"] = bool((f.read_array("new") == numpy.repeat(numpy.arange(size), 100_000)).all())
"""


def test_a_file_that_is_changed_keeps_what_was_not(tmp_path: Path) -> None:
    old = [*[0] * 10, *[1] * 10]
    old[3] = 7
    for rank in run("openmpi", 2, CHANGE, tmp_path):
        assert rank["before"] == [1.0, ["old"]]
        assert rank["after"] == [2.0, "yes", ["old", "new"]]
        assert rank["old"] == old and rank["new"]


# on one node; each rank on a node of its own
WHERE = ["", "*:share=no"]

DISAGREE = """
try:
    with brigade.io.open(comm, PATH, "w") as f:
        for i in range(20):
            f.write_array("same%d" % i, numpy.zeros(5))
        {different}
        f.write_array("after", numpy.zeros(100_000))
except brigade.io.BrigadeIOError as error:
    out["failure"] = failure(error)
"""


@pytest.mark.parametrize("hints", WHERE)
@pytest.mark.parametrize(
    "different, words",
    [
        (
            'f.write_array("a" if rank < 2 else "b", numpy.zeros(5))',
            "is a, float64 [5] on rank 0, and b, float64 [5] on rank 2",
        ),
        (
            'f.write_array("a", numpy.zeros(5, "f8" if rank != 1 else "i8"))',
            "is a, float64 [5] on rank 0, and a, int64 [5] on rank 1",
        ),
        (
            'f.write_array("a", numpy.zeros((2, 3)), shape=(2 + (rank == 1), 3))',
            "is a, float64 [2, 3] on rank 0, and a, float64 [3, 3] on rank 1",
        ),
    ],
)
def test_ranks_that_define_different_arrays_all_hear_which_and_who(
    different: str, words: str, hints: str, tmp_path: Path
) -> None:
    ranks = run("openmpi", 3, DISAGREE.format(different=different), tmp_path, hints)
    said = [rank["failure"] for rank in ranks]
    assert said[0] == said[1] == said[2]
    code, _, _, path, text = said[0]
    assert code == errno.EINVAL and path == str(tmp_path / "f")
    assert words in text and "array 20 of" in text
    assert not (tmp_path / "f").exists()


LACKING = """
try:
    with brigade.io.open(comm, PATH, "w") as f:
        f.write_array("all", numpy.zeros(5))
        if rank != 1:
            f.write_array("some", numpy.zeros({size}))
except brigade.io.BrigadeIOError as error:
    out["failure"] = failure(error)
"""


@pytest.mark.parametrize("hints", WHERE)
@pytest.mark.parametrize("size", [5, 100_000])
def test_a_rank_that_commits_without_an_array_of_the_others_is_named(
    size: int, hints: str, tmp_path: Path
) -> None:
    ranks = run("openmpi", 3, LACKING.format(size=size), tmp_path, hints)
    said = [rank["failure"] for rank in ranks]
    assert said[0] == said[1] == said[2] and said[0][:2] == [errno.EINVAL, 1]
    assert "without array some" in said[0][4] and not (tmp_path / "f").exists()


MISTAKEN = """
try:
    with brigade.io.open(comm, PATH, "w") as f:
        f.write_array("good", numpy.zeros(5))
        n = {size}
        f.write_array("bad", numpy.zeros(n), shape=(2 * n,), start=(2 * n * rank // 3,))
        f.write_array("more", numpy.zeros(100_000))
except brigade.io.BrigadeIOError as error:
    out["failure"] = failure(error)
"""


@pytest.mark.parametrize("hints", WHERE)
@pytest.mark.parametrize("mpi", EITHER_MPI)
@pytest.mark.parametrize("size", [6, 100_002])
def test_a_block_that_does_not_fit_on_one_rank_is_an_error_on_all(
    mpi: str, size: int, hints: str, tmp_path: Path
) -> None:
    ranks = run(mpi, 3, MISTAKEN.format(size=size), tmp_path, hints)
    said = [rank["failure"] for rank in ranks]
    assert said[0] == said[1] == said[2] and said[0][:2] == [errno.EINVAL, 2]
    assert "array bad: dimension 0" in said[0][4] and said[0][3] == str(tmp_path / "f")
    assert not (tmp_path / "f").exists()


RAISES = """
try:
    with brigade.io.open(comm, PATH, "w") as f:
        f.write_array("a", numpy.zeros({size}))
        if rank == 1:
            raise ZeroDivisionError
        f.write_array("b", numpy.zeros({size}))
except (brigade.io.BrigadeIOError, ZeroDivisionError) as error:
    out["raised"] = type(error).__name__
    out["errno"] = getattr(error, "errno", None)
"""


@pytest.mark.parametrize("hints", WHERE)
@pytest.mark.parametrize("mpi", EITHER_MPI)
@pytest.mark.parametrize("size", [5, 100_000])
def test_an_exception_on_one_rank_cancels_the_commit_of_all(
    mpi: str, size: int, hints: str, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("old")
    ranks = run(mpi, 3, RAISES.format(size=size), tmp_path, hints)
    assert ranks[1]["raised"] == "ZeroDivisionError"
    for rank in (ranks[0], ranks[2]):
        assert (rank["raised"], rank["errno"]) == ("BrigadeIOError", errno.ECANCELED)
    assert (tmp_path / "f").read_text() == "old"


REWRITTEN = """
with brigade.io.open(comm, PATH, "w") as f:
    f.write_array("over", numpy.full(8, rank, "i4"))  # the highest rank's stays
    if rank == 0:
        f.write_array("over", numpy.full(2, 7, "i4"), shape=(8,), start=(3,))  # a later call's
    f.write_array("first", numpy.full(int(rank == 1), 1, "i4"), shape=(1,))
    if rank == 0:  # by now rank 1 may have come to its commit, with all of its arrays kept
        f.write_array("first", numpy.full(1, 5, "i4"))
    f.write_array("a", numpy.arange(10, 18 if rank == 1 else 10, dtype="i4"), shape=(8,))
    if rank == 0:
        f.write_array("a", numpy.full(2, 7, "i4"), shape=(8,), start=(3,))  # a later call wins
    f.write_array("b", numpy.full(2, rank, "i4"), shape=(6,), start=(2 * rank,))
    if rank == 0:
        f.write_array("b", numpy.full(1, 9, "i4"), shape=(6,), start=(2,))
        f.write_array("a", numpy.full(1, 8, "i4"), shape=(8,), start=(7,))
with brigade.io.open(comm, PATH) as f:
    out["over"] = f.read_array("over").tolist()
    out["first"] = f.read_array("first").tolist()
    out["a"], out["b"] = f.read_array("a").tolist(), f.read_array("b").tolist()
"""


@pytest.mark.parametrize("hints", WHERE)
@pytest.mark.parametrize("mpi", MPIS)
def test_small_arrays_that_are_kept_obey_the_order_of_calls(
    mpi: str, hints: str, tmp_path: Path
) -> None:
    for rank in run(mpi, 3, REWRITTEN, tmp_path, hints):
        assert rank["over"] == [2, 2, 2, 7, 7, 2, 2, 2]
        assert rank["first"] == [5]
        assert rank["a"] == [10, 11, 12, 7, 7, 15, 16, 8]
        assert rank["b"] == [0, 0, 9, 1, 2, 2]


# Rank 1 would die at the meeting after the last one that this may take, and with it the job.
MEETINGS = """
os.environ["BRIGADE_FAULT"] = "io.meet:52@1"
with brigade.io.open(comm, PATH, "w", sync=False) as f:
    for i in range(20):
        f.write_array(f"a{i}", numpy.zeros(5000), shape=(5000 * size,), start=(5000 * rank,))
out["written"] = True
"""


def test_a_new_array_takes_two_meetings_where_all_define_the_same(tmp_path: Path) -> None:
    assert [said["written"] for said in run("openmpi", 2, MEETINGS, tmp_path)] == [True, True]


# The index begins a block, or lies in the one in which the array ends. The last rank fills that by
# itself, so that it knows its checksum before the index makes the file longer.
ENDS = """
BLOCK = 65536
for short in (0, 1, 10, 63, 64, 65, 1000):
    n = size * 4 * BLOCK - short
    mine = min(4 * BLOCK, n - rank * 4 * BLOCK)
    with brigade.io.open(comm, f"{PATH}.{short}", "w", sync=SYNC) as f:
        f.write_array("a", numpy.ones(mine, "u1"), shape=(n,), start=(rank * 4 * BLOCK,))
"""


@pytest.mark.parametrize("hints", WHERE)
@pytest.mark.parametrize("sync", [False, True])
def test_a_block_that_an_array_does_not_fill_has_its_checksum(
    hints: str, sync: bool, tmp_path: Path
) -> None:
    run("openmpi", 2, f"SYNC = {sync}\n" + ENDS, tmp_path, hints)
    for short in (0, 1, 10, 63, 64, 65, 1000):
        told = verify(tmp_path / f"f.{short}")
        assert (told["damaged"], told["block_bytes"]) == (0, 65536), short


UNREADABLE = """
with brigade.io.open(comm, PATH, "w", sync=False) as f:
    f.write_array("a", numpy.zeros(5000), shape=(5000 * size,), start=(5000 * rank,))
os.environ["BRIGADE_FAULT"] = "io.read:100@0"  # behind the header
try:
    brigade.io.open(comm, PATH).close()
except brigade.io.BrigadeIOError as error:
    out["failure"] = failure(error)
"""


@pytest.mark.parametrize("hints", WHERE)
def test_an_index_that_rank_0_cannot_read_is_the_same_failure_on_all(
    hints: str, tmp_path: Path
) -> None:
    said = [rank["failure"] for rank in run("openmpi", 3, UNREADABLE, tmp_path, hints)]
    assert said[0] == said[1] == said[2]
    assert said[0][:2] == [errno.EIO, 0] and said[0][3] == str(tmp_path / "f")


# Rank 0 has a column of each array, a piece for each of its elements, and soon enough of them;
# the others have few.
COLUMNS = """
with brigade.io.open(comm, PATH, "w", sync=False, segment="64K") as f:
    for i in range(12):
        if rank == 0:
            column = numpy.full((400, 1), i + 1, "u1")
            f.write_array(f"a{i}", column, shape=(400, 2), start=(0, 1))
            out.setdefault("sizes", []).append(f.size)
        else:
            f.write_array(f"a{i}", numpy.full((1, 1), 100 + rank, "u1"), shape=(400, 2),
                          start=(rank, 0))
        if i == 9 and rank == 1:  # and others write what they have kept before it has come so far
            f.write_array("a0", numpy.full((1, 1), 99, "u1"), shape=(400, 2), start=(9, 1))
"""
COLUMNS_READ = """
with brigade.io.open(comm, PATH) as f:
    found = [f.read_array(name) for name in f]
    out["columns"] = [numpy.unique(array[:, 1]).tolist() for array in found]
    out["others"] = [array[:5, 0].tolist() for array in found]
"""


@pytest.mark.parametrize("hints", WHERE)
@pytest.mark.parametrize("mpi", EITHER_MPI)
def test_a_rank_that_has_kept_more_than_others_settles_earlier(
    mpi: str, hints: str, tmp_path: Path
) -> None:
    ranks = run(mpi, 3, COLUMNS + COLUMNS_READ, tmp_path, hints)
    sizes = ranks[0]["sizes"]  # of what is written; three arrays are 1,200 pieces
    assert sizes[:3] == [0, 0, 0] and sizes[3] > 0
    for rank in ranks:
        assert rank["columns"] == [[1, 99], *([i + 1] for i in range(1, 12))]
        assert rank["others"] == [[0, 101, 102, 0, 0]] * 12


def test_and_then_keeps_again_until_it_has_as_much(tmp_path: Path) -> None:
    """Some 30 meetings; with one for each array, twice as many."""
    body = 'os.environ["BRIGADE_FAULT"] = "io.meet:40@1"\n' + COLUMNS + 'out["written"] = True'
    assert [said["written"] for said in run("openmpi", 3, body, tmp_path)] == [True] * 3
