"""kill -9 at any moment leaves the old file or the new one, whole, and matching its checksums."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

import pytest
from mpi_world import MPIS, run_mpi
from store_world import (
    CHANGING,
    EVERY,
    MIB,
    assert_whole,
    compile_alone,
    compile_for,
    killed_everywhere,
    names,
    pattern,
    verify,
    words,
)

FICLONE = 0x40049409  # linux/fs.h
SIZE = MIB + 5000  # a block whose checksum comes from memory, and one that is read back


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_alone(tmp_path_factory.mktemp("alone") / "driver")


def clones(folder: Path) -> bool:
    """Whether its file system can let two files share their bytes."""
    (folder / "of").write_bytes(bytes(4096))
    with open(folder / "of", "rb") as of, open(folder / "to", "wb") as to:
        try:
            fcntl.ioctl(to, FICLONE, of.fileno())
        except OSError:
            return False
    return True


def one_by_one(
    alone: Path, path: Path, way: str, hints: str, calls: tuple[str, ...] = CHANGING
) -> int:
    """Kills at every system call in turn; returns how many there are."""
    path.parent.mkdir()
    now = kills = 0
    subprocess.run([alone, *words(path, "create", "sync=no", SIZE, 1, now)], check=True)
    new = 1

    def command() -> list[str]:
        return [str(alone), *words(path, way, hints, SIZE, 1, new)]

    for where, killed in killed_everywhere(calls, command):
        content = path.read_bytes()
        assert content in (pattern(SIZE, now), pattern(SIZE, new)), where
        assert killed or content == pattern(SIZE, new)
        assert verify(path).get("damaged") == 0, (where, verify(path))
        now = new if content == pattern(SIZE, new) else now
        new = now % 100 + 1
        kills += killed
        if not killed:  # what the killed ones left was swept away by this one
            assert names(path.parent) == ["ckpt", "ckpt.sums"]
    return kills


def test_a_new_file_killed_at_every_system_call(alone: Path, tmp_path: Path):
    assert one_by_one(alone, tmp_path / "files/ckpt", "create", "") >= 8


def test_an_update_killed_at_every_system_call(alone: Path, tmp_path: Path):
    """A file system that can clone the old file, as XFS, takes fewer than one that copies it."""
    least = 8 if clones(tmp_path) else 10
    assert one_by_one(alone, tmp_path / "files/ckpt", "update", "") >= least


@pytest.mark.all
@pytest.mark.parametrize("way", ("create", "update"))
@pytest.mark.parametrize("hints", ("", "stripe=64K", "sync=no", "async=yes"))
def test_other_ways_killed_at_every_system_call(alone: Path, tmp_path: Path, way: str, hints: str):
    assert one_by_one(alone, tmp_path / "files/ckpt", way, hints, EVERY) > 30


def killed_at_step(mpi: str, driver: Path, path: Path, step: int, rank: int) -> bool:
    """Whether that rank was killed at that step of the store (src/world/fault.h, io.kill)."""
    command = [driver, *words(path, "create", "transport=direct", 2 * MIB, 1, 7)]
    done = run_mpi(mpi, 3, list(command), BRIGADE_FAULT=f"io.kill:{step}@{rank}")
    return done.returncode != 0


def steps(mpi: str, tmp_path: Path, alone: Path, rank: int, every: int) -> None:
    driver = compile_for(mpi, tmp_path / "driver")
    path = tmp_path / "files" / "ckpt"
    path.parent.mkdir()
    old, new = pattern(MIB, 1), pattern(6 * MIB, 7)
    for step in range(0, 100, every):
        subprocess.run([alone, *words(path, "create", "sync=no", MIB, 1, 1)], check=True)
        killed = killed_at_step(mpi, driver, path, step, rank)
        content = path.read_bytes()
        assert content in (old, new), step
        assert_whole(path, content)
        if not killed:
            assert content == new
            assert step > 2
            return
    raise AssertionError("that rank was killed at every step")


def test_a_job_whose_rank_0_is_killed_at_steps_of_a_commit(alone: Path, tmp_path: Path):
    steps("openmpi", tmp_path, alone, 0, 4)


@pytest.mark.all
@pytest.mark.parametrize("rank", (0, 1))
@pytest.mark.parametrize("mpi", MPIS)
def test_a_job_killed_at_each_step(mpi: str, alone: Path, tmp_path: Path, rank: int):
    steps(mpi, tmp_path, alone, rank, 1)
