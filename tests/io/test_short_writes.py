"""Short writes of several ranks that lie next to each other start on their way to the disk while
the ranks write more, and not all when they sync."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mpi_python import run
from mpi_world import EITHER_MPI
from store_world import assert_whole, need_strace

KIB, RANKS, CALLS = 1 << 10, 3, 8
STARTS = 256 * KIB
BODY = """
with brigade.io.open(comm, PATH, "w", sync={sync}) as f:
    for call in range({calls}):
        f.write({at}, bytes([1 + rank]) * {length})
"""
#: a rank's place in call `call`, of `n` bytes each
IN_TURN = "(call * size + rank) * {n}"
WITH_HOLES = "(call * size + rank) * {n} * 2"
BACKWARDS = "((7 - call) * size + rank) * {n}"


def sent(
    mpi: str, folder: Path, at: str, length: int, sync: bool = True
) -> list[list[tuple[int, int]]]:
    """What each rank that did told the kernel to send of the data: [from, until) each time."""
    need_strace()
    at = at.format(n=length)
    body = BODY.format(sync=sync, calls=CALLS, at=at, length=length)
    log = folder / "log"
    under = ["strace", "-ff", "-y", "-o", log, "-e", "trace=sync_file_range"]
    run(mpi, RANKS, body, folder, under=under)
    call = re.compile(r"sync_file_range\(\d+<[^>]*/\.f\.brg[^>]*(?<!sums)>, (\d+), (\d+), ")
    ranks = [
        [(int(m[1]), int(m[1]) + int(m[2])) for m in call.finditer(one.read_text())]
        for one in sorted(folder.glob("log.*"))
    ]
    return [one for one in ranks if one]


@pytest.mark.parametrize("mpi", EITHER_MPI)
def test_they_go_as_they_come_and_each_rank_sends_some(mpi: str, tmp_path: Path) -> None:
    n = 48 * KIB  # two calls are worth a request
    ranks = sent(mpi, tmp_path, IN_TURN, n)
    two = 2 * RANKS * n
    assert sorted(one for rank in ranks for one in rank) == [
        (k * two, (k + 1) * two) for k in range(CALLS // 2)
    ]
    assert len(ranks) == RANKS, "in turns"
    content = b"".join(bytes([1 + rank]) * n for rank in range(RANKS)) * CALLS
    assert_whole(tmp_path / "f", content)


@pytest.mark.parametrize(
    ("at", "length", "sync"),
    [
        pytest.param(IN_TURN, 48 * KIB, False, id="nobody syncs"),
        pytest.param(WITH_HOLES, 96 * KIB, True, id="they lie apart"),
        pytest.param(BACKWARDS, 48 * KIB, True, id="calls do not follow each other"),
        pytest.param(IN_TURN, 8 * KIB, True, id="all of them are few"),
    ],
)
def test_they_are_left_to_the_sync(at: str, length: int, sync: bool, tmp_path: Path) -> None:
    assert sent("openmpi", tmp_path, at, length, sync) == []


def test_long_ones_go_by_themselves_and_only_once(tmp_path: Path) -> None:
    ranks = sent("openmpi", tmp_path, IN_TURN, STARTS)
    stretches = sorted(one for rank in ranks for one in rank)
    assert stretches == [(k * STARTS, (k + 1) * STARTS) for k in range(RANKS * CALLS)]
