"""A fault on one rank: every rank is told the same, nothing comes under the name, nothing stays."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpi_world import EITHER_MPI, MPIS
from store_world import (
    MIB,
    Told,
    assert_whole,
    compile_alone,
    compile_for,
    names,
    need_strace,
    pattern,
    run_ranks,
    told,
    verify,
    words,
)

from brigade import io as brigade_io

#: point of src/world/fault.h with its number -> errno
FAULTS = {
    "io.write:1500000": errno.ENOSPC,
    "io.write:0": errno.ENOSPC,
    "io.quota:1048576": errno.EDQUOT,
    "io.eio:2097151": errno.EIO,
    "io.fsync": errno.EIO,
    "io.open": errno.EACCES,
}
#: those of rank 0's own steps
PUBLISHING = {
    "io.open": errno.EACCES,  # the temporary file cannot be made
    "io.open:1": errno.EACCES,  # nor that of the checksums
    "io.fsync:1": errno.EIO,
    "io.rename": errno.EIO,
    "io.rename:1": errno.EIO,
}
OLD = 5


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def driver(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_for(mpi, tmp_path_factory.mktemp(mpi) / "driver")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_alone(tmp_path_factory.mktemp("alone") / "driver")


@pytest.fixture
def old(alone: Path, tmp_path: Path) -> Path:
    """A file that is there, with its checksums, alone in its folder."""
    path = tmp_path / "files" / "ckpt"
    path.parent.mkdir()
    subprocess.run([alone, *words(path, "create", "sync=no", MIB, 1, OLD)], check=True)
    return path


def assert_old(path: Path) -> None:
    assert names(path.parent) == ["ckpt", "ckpt.sums"]
    assert_whole(path, pattern(MIB, OLD))


def same(lines: list[Told]) -> Told:
    first = lines[0]
    assert {line[1:] for line in lines} == {first[1:]}, lines
    return first


def fails(
    mpi: str, ranks: int, driver: Path, path: Path, fault: str, hints: str = "transport=direct"
) -> Told:
    args = (path, "create", hints, 2 * MIB, 1, 9)
    return same(run_ranks(mpi, ranks, driver, *args, BRIGADE_FAULT=fault))


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
@pytest.mark.parametrize("fault", FAULTS)
def test_all_ranks_are_told_of_one_ranks_failure(mpi: str, driver: Path, old: Path, fault: str):
    failure = fails(mpi, 3, driver, old, f"{fault}@1")
    assert (failure.code, failure.failed_rank) == (-FAULTS[fault], 1)
    assert failure.path == str(old)
    point, _, number = fault.partition(":")
    if point in ("io.write", "io.quota", "io.eio"):
        assert failure.offset == 2 * MIB + int(number)
    else:
        assert failure.offset == -1
    assert_old(old)


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
def test_nodes_are_told_that_one_cannot_keep_checksums(mpi: str, driver: Path, old: Path):
    """In the background they are kept in a file, which is the second that a rank opens."""
    failure = fails(mpi, 3, driver, old, "io.open:1@1", "transport=direct:share=no:async=yes")
    assert (failure.code, failure.failed_rank) == (-errno.EACCES, 1)
    assert failure.offset == 2 * MIB  # its first block; -1 would be the file itself
    assert_old(old)


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
def test_nodes_are_told_whatever_rank_0_cannot_open(mpi: str, driver: Path, old: Path):
    """Among it the file of the sums of blocks that two nodes wrote to, which are read back."""
    for number in range(20):
        told = fails(mpi, 3, driver, old, f"io.open:{number}@0", "share=no:stripe=64M")
        if not told.code:
            break
        assert (told.code, told.failed_rank) == (-errno.EACCES, 0), number
        assert_old(old)
    assert 4 < number < 19
    assert verify(old)["damaged"] == 0


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
@pytest.mark.parametrize("fault", PUBLISHING)
def test_all_ranks_are_told_when_publishing_fails(mpi: str, driver: Path, old: Path, fault: str):
    failure = fails(mpi, 3, driver, old, f"{fault}@0")
    assert (failure.code, failure.failed_rank) == (-PUBLISHING[fault], 0)
    assert failure.path == str(old)
    assert_old(old)


@pytest.fixture(scope="module")
def full_at_close(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("full") / "full.so"
    source = Path(__file__).with_name("full_at_close.c")
    words = ["gcc", "-std=gnu17", "-shared", "-fPIC", "-o", library, source, "-ldl"]
    subprocess.run(words, check=True)
    return library


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
@pytest.mark.parametrize("hints", ("sync=no", "sync=yes", "sync=no:transport=simple:writers=3"))
def test_nothing_is_published_where_closing_says_that_there_is_no_room(
    mpi: str, driver: Path, old: Path, full_at_close: Path, hints: str
):
    args = (old, "create", hints, 2 * MIB, 1, 9)
    preload = {"LD_PRELOAD": str(full_at_close), "FULL_RANK": "1"}
    failure = same(run_ranks(mpi, 3, driver, *args, **preload))
    assert (failure.code, failure.failed_rank) == (-errno.EDQUOT, 1)
    assert_old(old)


@pytest.mark.all
@pytest.mark.parametrize("ranks", (2, 4, 8, 16))
@pytest.mark.parametrize("fault", FAULTS)
def test_all_of_many_ranks_are_told(mpi: str, driver: Path, old: Path, ranks: int, fault: str):
    failure = fails(mpi, ranks, driver, old, f"{fault}@{ranks - 1}")
    assert (failure.code, failure.failed_rank) == (-FAULTS[fault], ranks - 1)
    assert_old(old)


def test_the_lowest_of_several_failing_ranks_is_named(mpi: str, driver: Path, old: Path):
    failure = fails(mpi, 3, driver, old, "io.write:1000")
    assert (failure.code, failure.failed_rank, failure.offset) == (-errno.ENOSPC, 0, 1000)
    assert_old(old)


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
@pytest.mark.parametrize("fault", ("io.short:70001", "io.eintr"))
def test_what_a_system_call_left_is_written_by_the_next(
    mpi: str, driver: Path, old: Path, fault: str
):
    args = (old, "create", "transport=direct", 2 * MIB, 3, 9)
    assert same(run_ranks(mpi, 2, driver, *args, BRIGADE_FAULT=fault)).code == 0
    assert_whole(old, pattern(4 * MIB, 9))


def test_a_failed_read_is_everybodys(mpi: str, driver: Path, alone: Path, tmp_path: Path):
    path = tmp_path / "ckpt"
    subprocess.run([alone, *words(path, "create", "sync=no", 4 * MIB, 1, 3)], check=True)
    args = (path, "read", "transport=direct", 2 * MIB, 1, 3)
    assert same(run_ranks(mpi, 2, driver, *args)).code == 0
    failure = same(run_ranks(mpi, 2, driver, *args, BRIGADE_FAULT="io.read:5000@1"))
    assert (failure.code, failure.failed_rank, failure.path) == (-errno.EIO, 1, str(path))
    assert 2 * MIB <= failure.offset <= 2 * MIB + 5000


@pytest.fixture
def small_tmpfs(tmp_path: Path) -> Iterator[Path]:
    """3 MiB of room."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "brigade-test", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs to mount a tmpfs")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
@pytest.mark.parametrize("layout", ("shared", "parts"))
def test_a_full_file_system_is_everybodys_failure(
    mpi: str, driver: Path, small_tmpfs: Path, layout: str
):
    path = small_tmpfs / "ckpt"
    hints = f"transport=direct:layout={layout}"
    failure = same(run_ranks(mpi, 2, driver, path, "create", hints, 2 * MIB, 1, 9))
    assert (failure.code, failure.path) == (-errno.ENOSPC, str(path))
    assert 0 <= failure.offset < 4 * MIB
    assert names(small_tmpfs) == []


def limited(command: list[str], limit: int) -> list[Told]:
    done = subprocess.run(
        command,
        text=True,
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 0, (done.returncode, signal.SIGXFSZ, done.stderr)
    return told(done.stdout)


def test_a_limit_on_file_sizes_is_an_error_and_no_signal(alone: Path, old: Path):
    command = [str(alone), *words(old, "create", "", 3 * MIB, 1, 9)]
    (failure,) = limited(command, 2 * MIB - 100)
    assert failure == (0, -errno.EFBIG, 0, 2 * MIB - 100, str(old))
    assert_old(old)


def as_nobody(alone: Path, path: Path, way: str, hints: str = "") -> Told:
    if os.geteuid() or not shutil.which("runuser"):
        pytest.skip("needs root, to become an ordinary user")
    runner = Path("/tmp") / f"brigade-test-{os.getpid()}"
    shutil.copy(alone, runner)
    try:
        args = words(path, way, hints, MIB, 1, 9)
        command = ["runuser", "-u", "nobody", "--", str(runner), *args]
        done = subprocess.run(command, text=True, capture_output=True)
    finally:
        runner.unlink()
    if "error while loading shared libraries" in done.stderr:
        pytest.skip("nobody cannot read the library's folder")
    return told(done.stdout)[0]


@pytest.fixture
def open_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that anybody can reach."""
    folder = Path("/tmp") / f"brigade-test-folder-{os.getpid()}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("way", ("create", "update"))
def test_a_read_only_file_is_refused(alone: Path, open_folder: Path, way: str):
    path = open_folder / "ckpt"
    path.write_bytes(b"old")
    path.chmod(0o444)
    assert as_nobody(alone, path, way) == (0, -errno.EACCES, 0, -1, str(path))
    assert names(open_folder) == ["ckpt"] and path.read_bytes() == b"old"


def test_a_read_only_folder_is_refused(alone: Path, open_folder: Path):
    open_folder.chmod(0o755)
    path = open_folder / "ckpt"
    assert as_nobody(alone, path, "create") == (0, -errno.EACCES, 0, -1, str(path))
    assert names(open_folder) == []


@pytest.mark.parametrize("layout", ("shared", "parts"))
def test_nothing_is_published_in_a_folder_that_cannot_be_synced(
    alone: Path, open_folder: Path, layout: str
):
    """Names in it may be changed, but not listed, so that it cannot be opened."""
    path = open_folder / "ckpt"
    hints = f"layout={layout}"
    assert as_nobody(alone, path, "create", "sync=no") == (0, 0, -1, -1, "")
    inode = path.stat().st_ino
    open_folder.chmod(0o333)
    assert as_nobody(alone, path, "create", hints) == (0, -errno.EACCES, 0, -1, str(path))
    assert names(open_folder) == ["ckpt", "ckpt.sums"]
    assert_whole(path, pattern(MIB, 9))
    assert path.stat().st_ino == inode
    assert as_nobody(alone, path, "create", f"{hints}:sync=no").code == 0
    assert verify(path)["damaged"] == 0


@pytest.mark.parametrize("layout", ("shared", "parts"))
def test_a_file_that_has_its_name_stays_where_that_cannot_be_synced(
    alone: Path, tmp_path: Path, layout: str
):
    need_strace()
    path = tmp_path / "files" / "ckpt"
    path.parent.mkdir()
    inject = ["-e", "trace=fsync", "-e", "inject=fsync:error=EIO", "-P", str(path.parent)]
    args = words(path, "create", f"layout={layout}", MIB, 1, 9)
    done = subprocess.run(
        ["strace", "-f", "-o", "/dev/null", *inject, alone, *args], text=True, capture_output=True
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("needs ptrace")
    assert told(done.stdout) == [(0, -errno.EIO, 0, -1, str(path))]
    assert path.read_bytes() == pattern(MIB, 9) or layout == "parts"
    assert verify(path)["damaged"] == 0
    args = words(path, "read", "", MIB, 1, 9)
    assert told(subprocess.run([alone, *args], text=True, capture_output=True).stdout)[0].code == 0


@pytest.mark.parametrize("checksums", (True, False))
def test_the_job_that_comes_too_late_for_a_name_leaves_the_others_checksums(
    tmp_path: Path, checksums: bool
):
    path = tmp_path / "ckpt"
    late = brigade_io.open(None, path, "x", checksums=checksums)
    late.write(0, b"late")
    with brigade_io.open(None, path, "x") as f:
        f.write(0, b"first")
    with pytest.raises(brigade_io.BrigadeIOError, match="File exists"):
        late.commit()
    late.close()
    assert_whole(path, b"first")
    assert names(tmp_path) == ["ckpt", "ckpt.sums"]


def test_opening_refuses_what_is_no_file_of_this_name(alone: Path, tmp_path: Path):
    cases = {
        ("here", "exclusive"): errno.EEXIST,
        ("missing", "update"): errno.ENOENT,
        ("missing", "read"): errno.ENOENT,
        ("nowhere/ckpt", "create"): errno.ENOENT,
        ("folder", "create"): errno.EISDIR,
        ("pipe", "create"): errno.EINVAL,
        ("dangling", "create"): errno.ENOENT,
        ("taken", "create"): errno.EEXIST,
    }
    (tmp_path / "here").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "taken.sums").write_text("somebody's own notes")
    before = names(tmp_path)
    for (name, way), code in cases.items():
        command = [alone, *words(tmp_path / name, way, "", 10, 1, 1)]
        done = subprocess.run(command, text=True, capture_output=True, check=True)
        assert told(done.stdout)[0].code == -code, (name, way)
    assert names(tmp_path) == before
