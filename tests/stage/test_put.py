"""What `brigade-stage put` brings into the nodes' memory, and what it reads for that."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from .conftest import Bench, need_launcher

TRAILER = 32  #: the image's last bytes say nothing that staging does not know


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_every_node_gets_the_same_tree_byte_by_byte(bench: Bench, mpi: str, n: int) -> None:
    result = bench.put(n, mpi)
    assert result["ok"] is True and result["status"] == 0, result
    assert len(result["nodes"]) == n and result["image_id"] == bench.id
    for node in range(n):
        bench.check_same(node)
        assert bench.left_on(node) == [bench.id]
        assert (bench.staged(node) / "jobs/job/state").stat().st_size > 0


@pytest.mark.parametrize("readers", [1, 2, 4, 5])
def test_each_byte_of_the_image_is_read_once_in_all(bench: Bench, readers: int) -> None:
    need_launcher("openmpi")
    result = bench.put(5, "openmpi", "--readers", str(readers))
    assert result["read_bytes"] == bench.image.stat().st_size - TRAILER
    per_node = [node["read_bytes"] for node in result["nodes"]]
    assert sum(1 for n in per_node if n) == readers
    assert per_node[0] > 0, "rank 0 reads the head"


def test_the_kernel_saw_each_byte_read_once(bench: Bench) -> None:
    need_launcher("mpich")
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    trace = bench.work / "trace"
    wrap = ("strace", "-ff", "-y", "-qq", "-e", "trace=read,pread64,preadv,mmap", "-o", str(trace))
    assert bench.put(3, "mpich", "--readers", "3", wrap=wrap)["ok"] is True
    ranges = []
    for file in bench.work.glob("trace.*"):
        for line in file.read_text(errors="replace").splitlines():
            if f"<{bench.image}>" not in line:
                continue
            match = re.match(r"pread64\(.*, (\d+), (\d+)\) += (\d+)$", line)
            assert match, f"the image was read in another way: {line}"
            ranges.append((int(match.group(2)), int(match.group(3))))
    at = 0
    for offset, size in sorted(ranges):
        assert offset == at, f"bytes from {min(at, offset)} were read twice or not at all"
        at += size
    assert at == bench.image.stat().st_size - TRAILER


def test_a_second_put_reads_the_header_only_and_writes_nothing(bench: Bench, mpi: str) -> None:
    bench.put(3, mpi, job="first")
    before = (bench.staged(1) / "root").stat().st_ino
    result = bench.put(3, mpi, job="second")
    assert result["ok"] is True and result["read_bytes"] == 4096
    assert [node["already"] for node in result["nodes"]] == [True] * 3
    assert (bench.staged(1) / "root").stat().st_ino == before
    assert sorted(os.listdir(bench.staged(1) / "jobs")) == ["first", "second"]


def test_a_node_that_has_the_image_only_hands_it_on(bench: Bench, mpi: str) -> None:
    bench.put(4, mpi)
    for node in (0, 2, 3):
        bench.drop(node)
    before = (bench.staged(1) / "root").stat().st_ino
    result = bench.put(4, mpi)
    assert [node["already"] for node in result["nodes"]] == [False, True, False, False]
    assert (bench.staged(1) / "root").stat().st_ino == before
    for node in range(4):
        bench.check_same(node)


def test_entries_found_changed_before_the_job_are_marked_in_its_state(bench: Bench) -> None:
    beyond = 10**6
    for job in ("first", "second"):  # into a new folder, and into one that is there
        bench.put(1, "none", "--changed", f"3,70,64,{beyond}", job=job)
        state = (bench.staged(0) / "jobs" / job / "state").read_bytes()
        dirty_at = struct.unpack_from("<Q", state, 40)[0]
        words = struct.unpack_from("<2Q", state, dirty_at)
        assert words == (1 << 3, 1 << 6 | 1)
        assert struct.unpack_from("<Q", state, 64)[0] == 1, "readers test this word first"
    bench.put(1, "none", job="third")
    state = (bench.staged(0) / "jobs/third/state").read_bytes()
    assert not any(state[dirty_at : dirty_at + 16])


def changed_in(state: bytes) -> tuple[int, int]:
    return struct.unpack_from("<2Q", state, struct.unpack_from("<Q", state, 40)[0])


def test_what_an_earlier_job_of_the_same_name_has_left_is_replaced(bench: Bench) -> None:
    """Process numbers come again; what it counted is not this job's."""
    bench.put(1, "none", "--changed", "5")
    state = bench.staged(0) / "jobs/job/state"
    before = state.stat().st_ino
    bench.put(1, "none", "--changed", "3")
    assert state.stat().st_ino == before, "another process of the same put has made it"
    assert changed_in(state.read_bytes()) == (1 << 3 | 1 << 5, 0), "and is told what has changed"
    os.utime(state, (0, 0))
    with state.open("rb") as user, mmap.mmap(user.fileno(), 0, access=mmap.ACCESS_READ):
        bench.put(1, "none", "--changed", "3")
        assert state.stat().st_ino == before, "somebody uses it"
    os.utime(state, (0, 0))
    bench.put(1, "none", "--changed", "70")
    assert state.stat().st_ino != before
    assert changed_in(state.read_bytes()) == (0, 1 << 6)


def test_a_job_is_told_what_its_stager_sees(bench: Bench) -> None:
    """A rank that sees something else is in a container (src/base/root.h)."""
    top, mounts = os.stat("/"), os.stat("/proc/self/ns/mnt").st_ino
    for job in ("first", "second"):  # into a new folder, and into one that is there
        bench.put(1, "none", job=job)
        folder = bench.staged(0) / "jobs" / job
        home = struct.unpack_from("<3Q", (folder / "state").read_bytes(), 104)
        assert home == (mounts, top.st_dev, top.st_ino)
        assert (folder / "mounts").read_text() == Path("/proc/self/mountinfo").read_text()


def test_one_process_needs_no_mpi(bench: Bench) -> None:
    result = bench.put(1, "none")
    assert result["ok"] is True
    bench.check_same(0)


def test_an_ordinary_user_stages_too(bench: Bench, mpi: str, as_root: None) -> None:
    bench.uid = 65534
    home = bench.work / "home"
    home.mkdir(mode=0o700)
    os.chown(home, bench.uid, -1)
    bench.work.chmod(0o1777)  # Open MPI has its memory there
    settings = {"user": bench.uid, "group": 65534, "extra_groups": [], "cwd": home}
    result = bench.put(3, mpi, **settings)
    assert result["ok"] is True, result
    for node in range(3):
        bench.check_same(node)
        subprocess.run(
            [*bench.command()[:1], "drop", "--image-id", bench.id, "--job", "job",
             "--base", bench.base(node)],
            check=True, **settings,
        )  # fmt: skip
        assert bench.left_on(node) == []


def test_two_jobs_at_once_on_one_node_share_what_one_of_them_made(bench: Bench) -> None:
    jobs = [f"job{i}" for i in range(4)]
    running = [bench.start(1, "none", job=job, fault="stage.slow:20000") for job in jobs]
    for process in running:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, out + err
    bench.check_same(0)
    assert bench.left_on(0) == [bench.id], "what the others made is removed"
    assert sorted(os.listdir(bench.staged(0) / "jobs")) == jobs
    for job in jobs[:-1]:
        assert bench.drop(0, job=job)[0]["removed"] is False
        bench.check_same(0)
    assert bench.drop(0, job=jobs[-1])[0]["removed"] is True
    assert bench.left_on(0) == []


def test_progress_grows_to_the_size_of_the_image(bench: Bench) -> None:
    need_launcher("openmpi")
    process = bench.start(2, "openmpi", "--progress", "2", fault="stage.slow:20000")
    _, err = process.communicate(timeout=60)
    seen = [
        tuple(map(int, line.split())) for line in err.splitlines() if re.match(r"\d+ \d+$", line)
    ]
    size = bench.image.stat().st_size
    assert len(seen) > 2 and seen == sorted(seen) and seen[-1] == (size, size)


def test_memory_stays_within_the_stated_bound(
    stage_image: tuple[Path, Path, str], bench: Bench
) -> None:
    """Head, segments in flight, one block a worker; beside what MPI itself takes (seen with the
    image already there)."""
    need_launcher("openmpi")
    segment, workers = 256 << 10, 2
    extra = ("--segment", str(segment), "--workers", str(workers), "--readers", "2")
    full = bench.put(4, "openmpi", *extra)
    idle = bench.put(4, "openmpi", *extra, job="idle")
    head = 1 << 20
    bound = (
        head + (3 + workers + 1 + 2) * segment + workers * ((64 << 10) + (256 << 10)) + (2 << 20)
    )
    for with_bytes, without in zip(full["nodes"], idle["nodes"]):
        assert with_bytes["peak_bytes"] - without["peak_bytes"] < bound
