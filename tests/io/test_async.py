"""Commits in the background: what programs are promised, with both MPIs."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import NamedTuple

import numpy
import pytest
from mpi_world import EITHER_MPI, MPIS, compile_mpi, run_mpi

MIB = 1 << 20
ASYNC = "async=yes:buffer=2M:sync=no"


class Line(NamedTuple):
    """What a rank of the driver says."""

    rank: int
    code: int
    failed_rank: int
    offset: int
    tests: int
    memory_kib: int
    path: str


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def driver(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).with_name("async_driver.c")
    return compile_mpi(mpi, source, tmp_path_factory.mktemp(mpi) / "driver")


def run(mpi: str, ranks: int, *command: str | Path, **environment: str) -> list[Line]:
    done = run_mpi(mpi, ranks, list(command), **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split(maxsplit=6) for line in done.stdout.splitlines()]
    found = [Line(*map(int, line[:6]), line[6] if line[6:] else "") for line in lines]
    assert sorted(line.rank for line in found) == list(range(ranks)), done.stdout
    return found


def pattern(size: int) -> bytes:
    """What the driver writes: a function of the offset."""
    offsets = numpy.arange(size, dtype=numpy.uint64) * numpy.uint64(2654435761)
    return bytes((offsets >> numpy.uint64(13)).astype(numpy.uint8))


def names(folder: Path) -> list[str]:
    """What is there, but for checksums of what is there."""
    found = {path.name for path in folder.iterdir()}
    return sorted(name for name in found if name.removesuffix(".sums") not in found - {name})


@pytest.mark.parametrize(
    "how, hints", [("test", "sync=no"), ("test", ASYNC), ("busy", ASYNC), ("close", ASYNC)]
)
def test_a_commit_in_the_background_publishes_the_bytes(
    mpi: str, driver: Path, tmp_path: Path, how: str, hints: str
) -> None:
    lines = run(mpi, 2, driver, how, tmp_path / "f", hints, str(3 * MIB + 7))
    assert [line.code for line in lines] == [0, 0], lines
    assert len({line.tests for line in lines}) == 1, "a request is done on all ranks at once"
    assert (tmp_path / "f").read_bytes() == pattern(2 * (3 * MIB + 7))
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
def test_two_files_are_committed_at_once(mpi: str, driver: Path, tmp_path: Path) -> None:
    lines = run(mpi, 2, driver, "two", tmp_path / "f", ASYNC, str(3 * MIB))
    assert [line.code for line in lines] == [0, 0], lines
    for name in ("f.0", "f.1"):
        assert (tmp_path / name).read_bytes() == pattern(6 * MIB)


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
def test_of_two_calls_the_later_stays_however_late_the_earlier_is_drained(
    mpi: str, driver: Path, tmp_path: Path
) -> None:
    hints = "async=yes:buffer=32M:sync=no:transport=direct:rate=40M"
    lines = run(mpi, 2, driver, "rewrite", tmp_path / "f", hints, str(2 * MIB))
    assert [line.code for line in lines] == [0, 0], lines
    assert (tmp_path / "f").read_bytes() == pattern(16 * MIB)


@pytest.mark.parametrize("how", ["test", "close"])
def test_a_failure_in_the_background_is_the_same_on_every_rank_and_publishes_nothing(
    mpi: str, driver: Path, tmp_path: Path, how: str
) -> None:
    (tmp_path / "f").write_text("old")
    limit = 4 * MIB + 4096  # of rank 1's files: it writes [3 MiB, 6 MiB)
    hints = ASYNC + ":transport=direct"
    lines = run(mpi, 2, driver, how, tmp_path / "f", hints, str(3 * MIB), str(limit))
    said = {(line.code, line.failed_rank, line.offset, line.path) for line in lines}
    assert said == {(-errno.EFBIG, 1, limit, str(tmp_path / "f"))}, lines
    assert (tmp_path / "f").read_text() == "old"
    assert names(tmp_path) == ["f"], "nothing is left beside the old file"


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
@pytest.mark.parametrize(
    "fault, code, rank, how, layout",
    [
        ("io.write:1000000@1", errno.ENOSPC, 1, "test", "shared"),
        ("io.write:1000000@1", errno.ENOSPC, 1, "close", "parts"),
        ("io.eio:0@1", errno.EIO, 1, "wait", "shared"),
        ("io.fsync:0@1", errno.EIO, 1, "test", "shared"),
        ("io.rename:1", errno.EIO, 0, "close", "shared"),
    ],
)
def test_a_fault_at_any_point_in_the_background_fails_all_alike(
    driver: Path, tmp_path: Path, mpi: str, fault: str, code: int, rank: int, how: str, layout: str
) -> None:
    (tmp_path / "f").write_text("old")
    hints = f"async=yes:buffer=2M:transport=direct:layout={layout}"
    where = tmp_path / "f"
    lines = run(mpi, 3, driver, how, where, hints, str(3 * MIB), BRIGADE_FAULT=fault)
    said = {(line.code, line.failed_rank, line.offset) for line in lines}
    assert len(said) == 1, lines
    assert (lines[0].code, lines[0].failed_rank) == (-code, rank), lines
    assert where.read_text() == "old"
    assert names(tmp_path) == ["f"], "nothing is left beside the old file"


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
def test_memory_is_bounded_by_the_buffer(mpi: str, driver: Path, tmp_path: Path) -> None:
    hints = ASYNC + ":segment=1M"
    small = run(mpi, 2, driver, "wait", tmp_path / "f", hints, str(MIB // 4))
    large = run(mpi, 2, driver, "wait", tmp_path / "f", hints, str(48 * MIB))
    most = max(line.memory_kib for line in large) - min(line.memory_kib for line in small)
    assert most < 2048 + 2 * 1024 + 1024, "two segments, the buffer, and a MiB for chance"


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
def test_a_file_that_is_closed_before_it_is_committed_leaves_nothing(
    mpi: str, driver: Path, tmp_path: Path
) -> None:
    lines = run(mpi, 2, driver, "drop", tmp_path / "f", ASYNC, str(3 * MIB))
    assert [line.code for line in lines] == [0, 0], lines
    assert names(tmp_path) == []


def test_a_process_that_ends_with_a_request_open_publishes_nothing(
    mpi: str, driver: Path, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("old")
    run_mpi(mpi, 2, [driver, "leave", tmp_path / "f", ASYNC, str(3 * MIB)])
    assert (tmp_path / "f").read_text() == "old"
