"""Files of parts: one file to its readers, whoever wrote it, and whole at any moment."""

from __future__ import annotations

import errno
import random
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from mpi_world import MPIS
from store_world import (
    CHANGING,
    MIB,
    assert_whole,
    compile_alone,
    compile_for,
    killed_everywhere,
    names,
    pattern,
    run_ranks,
    told,
    verify,
    words,
)

from brigade import io as brigade_io

PARTS = "layout=parts:sync=no:transport=direct"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_alone(tmp_path_factory.mktemp("alone") / "driver")


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def driver(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_for(mpi, tmp_path_factory.mktemp(mpi) / "driver")


def call(alone: Path, path: Path, way: str, hints: str, size: int, calls: int, salt: int) -> int:
    command = [alone, *words(path, way, hints, size, calls, salt)]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    return told(done.stdout)[0].code


def parts_of(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f".{path.name}.brg-*.parts/*"))


def test_any_number_of_ranks_reads_what_others_wrote(
    mpi: str, driver: Path, alone: Path, tmp_path: Path
):
    path = tmp_path / "ckpt"
    size = 3 * MIB // 4
    for line in run_ranks(mpi, 4, driver, path, "create", PARTS, size, 3, 2):
        assert line.code == 0, line
    assert [part.name for part in parts_of(path)] == [f"{n:06}" for n in range(4)]
    assert all(line.code == 0 for line in run_ranks(mpi, 3, driver, path, "read", "", MIB, 1, 2))
    assert call(alone, path, "read", "verify=yes", 3 * MIB, 1, 2) == 0
    assert verify(path)["damaged"] == 0
    assert verify(path)["parts"] == 4


def test_a_failure_is_everybodys_and_nothing_stays(mpi: str, driver: Path, tmp_path: Path):
    path = tmp_path / "ckpt"
    for fault, code in (("io.write:1000", errno.ENOSPC), ("io.fsync", errno.EIO)):
        hints = PARTS.replace("sync=no", "sync=yes")
        args = (path, "create", hints, MIB, 1, 2)
        lines = run_ranks(mpi, 3, driver, *args, BRIGADE_FAULT=f"{fault}@1")
        assert {line[1:3] for line in lines} == {(-code, 1)}
        assert {line.path for line in lines} == {str(path)}
        assert names(tmp_path) == []


def test_layouts_replace_each_other(alone: Path, tmp_path: Path):
    path = tmp_path / "ckpt"
    for salt, layout in enumerate(("parts", "parts", "shared", "shared", "parts", "shared")):
        assert call(alone, path, "create", f"layout={layout}", MIB, 2, salt) == 0
        assert call(alone, path, "read", "verify=yes", MIB, 1, salt) == 0
        assert verify(path)["damaged"] == 0
        assert len(parts_of(path)) == (layout == "parts")
    assert_whole(path, pattern(MIB, 5))
    assert names(tmp_path) == ["ckpt", "ckpt.sums"]


def test_any_flipped_bit_is_found(alone: Path, tmp_path: Path):
    path = tmp_path / "ckpt"
    assert call(alone, path, "create", "layout=parts:stripe=64K", 300000, 3, 4) == 0
    (part,) = parts_of(path)
    chance = random.Random(3)
    index = path.read_bytes()
    places = [(path, at) for at in chance.sample(range(4096), 60)]
    places += [(path, at) for at in range(4096, len(index))]
    places += [(part, at) for at in (0, 65535, 65536, 299999)]
    for file, at in places:
        whole = file.read_bytes()
        broken = bytearray(whole)
        broken[at] ^= 1 << chance.randrange(8)
        file.write_bytes(broken)
        outcome = verify(path)
        if file == part:
            (bad,) = outcome["listed"]
            assert (bad["path"], bad["offset"]) == (str(part), at // 65536 * 65536)
            assert call(alone, path, "read", "verify=yes", 300000, 1, 4) == -errno.EBADMSG
        else:
            assert "error" in outcome, at
        file.write_bytes(whole)
    assert verify(path)["damaged"] == 0


def test_a_part_that_is_missing_or_shorter_is_found(alone: Path, tmp_path: Path):
    path = tmp_path / "ckpt"
    assert call(alone, path, "create", "layout=parts", MIB, 3, 4) == 0
    (part,) = parts_of(path)
    part.write_bytes(part.read_bytes()[:-1])
    assert verify(path)["damaged"] == 2  # its size, and its last block
    assert call(alone, path, "read", "", MIB, 1, 4) == -errno.EIO
    part.unlink()
    assert verify(path)["listed"][0]["what"] == "it is not there"
    assert call(alone, path, "read", "", MIB, 1, 4) == -errno.ENOENT


def test_a_renamed_file_keeps_its_parts_when_its_name_is_used_again(alone: Path, tmp_path: Path):
    path, kept, copy = tmp_path / "ckpt", tmp_path / "kept", tmp_path / "copy"
    assert call(alone, path, "create", PARTS, MIB, 1, 1) == 0
    path.rename(kept)
    assert call(alone, path, "create", PARTS, MIB, 1, 2) == 0
    assert call(alone, kept, "read", "", MIB, 1, 1) == 0
    shutil.copy(path, copy)
    assert call(alone, copy, "create", PARTS, MIB, 1, 3) == 0
    assert call(alone, path, "read", "", MIB, 1, 2) == 0


def test_a_file_of_parts_is_not_changed_but_replaced(alone: Path, tmp_path: Path):
    path = tmp_path / "ckpt"
    assert call(alone, path, "create", PARTS, MIB, 1, 1) == 0
    assert call(alone, path, "update", "", MIB, 1, 2) == -errno.EOPNOTSUPP
    assert call(alone, path, "read", "", MIB, 1, 1) == 0


def test_killed_at_every_system_call_the_old_file_or_the_new_is_there(alone: Path, tmp_path: Path):
    path = tmp_path / "ckpt"
    hints = "layout=parts"
    assert call(alone, path, "create", hints, MIB, 1, 0) == 0
    now, new, kills = 0, 1, 0

    def command() -> list[str]:
        return [str(alone), *words(path, "create", hints, MIB, 1, new)]

    for where, killed in killed_everywhere(CHANGING, command):
        if call(alone, path, "read", "verify=yes", MIB, 1, new) == 0:
            now = new
        assert call(alone, path, "read", "verify=yes", MIB, 1, now) == 0, where
        assert killed or now == new
        new = now % 100 + 1
        kills += killed
    assert kills > 12


def test_parts_that_cannot_be_removed_go_away_with_the_next_write(tmp_path: Path):
    path, before = tmp_path / "f", resource.getrlimit(resource.RLIMIT_NOFILE)
    f = brigade_io.open(None, path, "w", layout="parts")
    f.write(0, b"some")
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))  # nor can the folder be opened
    try:
        f.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    with brigade_io.open(None, path, "w", layout="parts") as f:
        f.write(0, b"all")
    assert sum(name.endswith(".parts") for name in names(tmp_path)) == 1
    assert len(names(tmp_path)) == 2
