"""What programs do with files besides writing and reading, with both MPIs: it works, or every rank
is told the same; nothing crashes, and nothing is left that was not finished."""

from __future__ import annotations

import errno
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
from mpi_world import MPIS, compile_mpi, run_mpi

RANKS, BYTES = 3, 100_000
WORKS = {
    "a_communicator_that_is_freed": ("freed", "freed2"),
    "files_at_the_same_time": ("all",),
    "hints_of_each_rank": ("hints0", "hints1", "hints2", "hints3"),
    "a_file_that_is_replaced": (),
    "a_child_that_exits": ("forked",),
    "descriptors_that_are_given_back": ("reread",),
    "another_folder": ("relative",),
    "a_link": ("target/file",),
}
FAILS = {
    "a_link_to_nothing": errno.ENOENT,
    "no_name": errno.EINVAL,
    "a_file_that_did_not_open": errno.EBADF,
    "no_memory_for_an_array": errno.EINVAL,
    "no_communicator": errno.EINVAL,
    "a_communicator_of_two_groups": errno.EINVAL,
    "no_number_of_a_communicator": errno.EINVAL,
    "two_names": errno.EINVAL,
    "other_flags": errno.EINVAL,
    "a_name_without_room_for_sums": errno.ENAMETOOLONG,
    "a_byte_past_all_checksums": errno.EFBIG,
    "an_array_past_all_checksums": errno.EFBIG,
    "one_rank_after_the_commit": errno.EBADF,
    "a_limit_of_file_sizes": errno.EFBIG,
    "a_file_that_shrinks": errno.ENODATA,
}


class Line(NamedTuple):
    code: int
    failed_rank: int
    offset: int


class Used(NamedTuple):
    """What was done in a folder: the line of each rank."""

    folder: Path
    lines: dict[str, list[Line]]


@pytest.fixture(scope="module", params=MPIS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    source = Path(__file__).with_name("usage_driver.c")
    mpi = str(request.param)
    return mpi, compile_mpi(mpi, source, tmp_path_factory.mktemp(mpi) / "driver")


@pytest.fixture(scope="module", params=["share=yes", "share=no:transport=brigade"])
def used(program, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Used:
    mpi, driver = program
    folder = tmp_path_factory.mktemp("used")
    (folder / "target").mkdir()
    (folder / "target/file").write_text("before")
    (folder / "link").symlink_to("target/file")
    (folder / "dangling").symlink_to("nothing")
    done = run_mpi(mpi, RANKS, ["env", "-C", folder, driver, request.param])
    assert done.returncode == 0, done.stdout + done.stderr
    lines: dict[str, list[Line]] = defaultdict(list)
    for line in done.stdout.splitlines():
        what, _, *numbers = line.split()
        lines[what].append(Line(*map(int, numbers)))
    return Used(folder, lines)


@pytest.mark.parametrize("what", WORKS)
def test_it_works(used: Used, what: str) -> None:
    assert [line.code for line in used.lines[what]] == [0] * RANKS
    for name in WORKS[what]:
        data = (used.folder / name).read_bytes()
        assert data == b"".join(bytes([ord("a") + rank]) * BYTES for rank in range(RANKS))


@pytest.mark.parametrize("what", FAILS)
def test_all_ranks_are_told_the_same(used: Used, what: str) -> None:
    lines = used.lines[what]
    assert len(lines) == RANKS and len(set(lines)) == 1
    assert lines[0].code == -FAILS[what]


def test_the_file_of_one_rank_is_its_own(used: Used) -> None:
    for rank in range(RANKS):
        assert (used.folder / f"own{rank}").read_bytes() == bytes([ord("a") + rank]) * 10


def test_a_link_stays_one(used: Used) -> None:
    assert (used.folder / "link").is_symlink()


def test_a_file_that_is_open_when_mpi_ends_is_not_there(used: Used) -> None:
    assert [line.code for line in used.lines["open_until_the_end"]] == [0] * RANKS
    names = {path.name for path in used.folder.iterdir()}
    assert "unfinished" not in names and "limited" not in names and "nothing" not in names
    assert all(name.startswith(".unfinished") for name in names if name.startswith("."))
