"""Arrays where a call of another rank is refused: nothing that was written is lost."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from mpi_python import run
from store_world import verify

# on one node; each rank on a node of its own
WHERE = ["", "*:share=no"]

# Rank 1's block of array N does not fit; then it writes one that does. Rank 0 hears of it where it
# brings what it has kept, at the latest to commit, and asks once more.
REFUSED = """
def again(call):
    try:
        call()
    except brigade.io.BrigadeIOError as error:
        out["heard"] = failure(error)
        call()
def block(i, start):
    mine = numpy.full(4, 10 * (i % 10) + rank + 1, "i4")
    return lambda: f.write_array(f"a{i}", mine, shape=(4 * size,), start=(start,))
with brigade.io.open(comm, PATH, "w", sync=False) as f:
    f.attrs["of"] = "all"
    for i in range(LAST + 1):
        if i == N and rank == 1:
            try:
                block(i, 100)()
            except brigade.io.BrigadeIOError as error:
                out["heard"] = failure(error)
        again(block(i, 4 * rank))
    again(f.commit)
"""
REFUSED_READ = """
with brigade.io.open(comm, PATH) as f:
    ranks = numpy.arange(f["a0"].shape[0] // 4)
    wanted = lambda i: numpy.repeat(10 * (i % 10) + ranks + 1, 4)
    out["found"] = len(f), f.attrs["of"]
    out["wrong"] = [name for i, name in enumerate(f) if (f.read_array(name) != wanted(i)).any()]
"""


@pytest.mark.parametrize("hints", WHERE)
@pytest.mark.parametrize("n, last", [(0, 0), (1, 2), (5, 1100)])
def test_what_was_kept_is_written_after_another_rank_s_call_was_refused(
    n: int, last: int, hints: str, tmp_path: Path
) -> None:
    ranks = run("openmpi", 2, f"N, LAST = {n}, {last}\n" + REFUSED, tmp_path, hints)
    assert ranks[0]["heard"] == ranks[1]["heard"]
    assert ranks[0]["heard"][:2] == [errno.EINVAL, 1]
    (read,) = run("openmpi", 1, REFUSED_READ, tmp_path)
    assert read == {"found": [last + 1, "all"], "wrong": []}
    assert verify(tmp_path / "f")["damaged"] == 0


# Rank HAS has but an attribute, and comes to CALL with it; the other writes bytes at offsets of its
# own. Without those bytes the file may be committed, and is one of arrays.
MIXED = """
f = brigade.io.open(comm, PATH, "w", sync=False)
if rank == HAS:
    f.attrs["step"] = 3
try:
    {call} if rank == HAS else f.write(0, b"x" * {size})
except brigade.io.BrigadeIOError as error:
    out["failure"] = failure(error)
if {commit}:
    f.commit()
f.close()
"""
MIXED_READ = """
with brigade.io.open(None, PATH) as f:
    out["found"] = [len(f), dict(f.attrs)]
"""


@pytest.mark.parametrize("hints", WHERE)
@pytest.mark.parametrize(
    "has, call, size, commit",
    [
        (0, "f.commit()", 200, True),
        (0, "f.commit()", 3_000_000, False),
        (0, "f.write()", 200, False),
        (1, "f.write()", 200, False),
    ],
)
def test_bytes_of_a_rank_s_own_beside_an_attribute_of_another_s_are_refused_on_all(
    has: int, call: str, size: int, commit: bool, hints: str, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("old")
    body = f"HAS = {has}\n" + MIXED.format(call=call, size=size, commit=commit)
    said = [rank["failure"] for rank in run("openmpi", 2, body, tmp_path, hints)]
    assert said[0] == said[1] and said[0][:2] == [errno.EINVAL, 1 - has]
    assert f"rank {1 - has} writes bytes" in said[0][4] and said[0][3] == str(tmp_path / "f")
    if not commit:
        assert (tmp_path / "f").read_text() == "old"
        return
    (read,) = run("openmpi", 1, MIXED_READ, tmp_path)
    assert read["found"] == [0, {"step": 3}] and verify(tmp_path / "f")["damaged"] == 0


# Rank 1 wants no words, and each of its calls is wrong.
UNWANTED = """
from brigade.io import _lib
one, two, out["said"] = _lib.numbers([1]), _lib.numbers([2]), []
memory = numpy.zeros(4)
def wrong(call, *arguments):
    if rank == 1:
        code = _lib.function(call)(f.handle, *arguments, None)
        out["said"].append([-code])
        return
    try:
        f.read(0, 0) if f.mode == "r" else f.write()
    except brigade.io.BrigadeIOError as error:
        out["said"].append([error.errno, error.rank, error.strerror])
address = memory.ctypes.data
with brigade.io.open(comm, PATH, "w", sync=False) as f:
    wrong("file_write_array", b"", 10, 1, two, one, one, None, address)
    wrong("file_set_attribute", None, b"", 10, 1, address)
    f.write_array("a", numpy.ones(2))
    wrong("file_write", 0, address, 8)
with brigade.io.open(comm, PATH) as f:
    wrong("file_read_array", b"none", one, one, None, address)
    wrong("file_read_array", b"a", two, one, None, address)
    wrong("file_read_block", 0, 8, 0, one, one, one, None, address)
"""


def test_the_words_of_a_rank_that_wants_none_reach_the_others(tmp_path: Path) -> None:
    told, silent = (rank["said"] for rank in run("openmpi", 2, UNWANTED, tmp_path))
    words = ["name", "name", "arrays", "no array none in", "array a: ", "dimensions"]
    assert len(told) == len(silent) == len(words)
    for one, (code,), word in zip(told, silent, words):
        assert one[:2] == [code, 1] and word in one[2], one


# Rank 1's first call of arrays is refused, so that the file has none: all write bytes to it.
BYTES_AFTER = """
with brigade.io.open(comm, PATH, "w", sync=False) as f:
    for _ in range(2):
        try:
            {call} if rank == 1 else f.write()
        except brigade.io.BrigadeIOError as error:
            out["failure"] = failure(error)
    f.write(8 * rank, b"%8d" % rank)
"""


@pytest.mark.parametrize("hints", WHERE)
@pytest.mark.parametrize(
    "call",
    [
        "f.attrs.__setitem__('', 1)",
        "f.write_array('', numpy.zeros(2))",
        "f.write_array('far', numpy.zeros(0), shape=(1 << 62,), start=(0,))",
    ],
)
def test_a_file_whose_first_arrays_or_attributes_were_refused_takes_bytes(
    call: str, hints: str, tmp_path: Path
) -> None:
    ranks = run("openmpi", 2, BYTES_AFTER.format(call=call), tmp_path, hints)
    assert [rank["failure"][1] for rank in ranks] == [1, 1]
    assert (tmp_path / "f").read_bytes() == b"%8d%8d" % (0, 1)
    assert verify(tmp_path / "f")["damaged"] == 0
