"""Whatever fails, on whatever node: every process ends soon and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import LAUNCHERS, Bench, need_launcher

N = 4
SOON_S = 15.0


def check_clean(bench: Bench, nodes: int = N) -> None:
    for node in range(nodes):
        assert bench.left_on(node) == [], f"node {node}"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("stage.write:300000@2", "No space left"),
        ("stage.write:1@0", "No space left"),
        ("stage.block:9@3", "does not match its checksum"),
        ("stage.block:0@0", "does not match its checksum"),
        ("stage.read:0@0", "Input/output error"),
        ("stage.read:1@2", "Input/output error"),
        ("stage.read:3@0", "Input/output error"),
        ("stage.publish@1", "cannot publish"),
        ("stage.term:4@1", "signal 15"),
    ],
)
def test_a_failure_on_one_node_leaves_nothing_on_any(
    bench: Bench, mpi: str, fault: str, words: str
) -> None:
    start = time.monotonic()
    result = bench.put(N, mpi, fault=fault)
    assert time.monotonic() - start < SOON_S
    assert result["ok"] is False and result["status"] == 3, result
    assert words in result["reason"] and result["host"] == os.uname().nodename
    check_clean(bench)


def test_a_failure_beside_an_older_staged_folder_leaves_that_alone(bench: Bench) -> None:
    need_launcher("openmpi")
    bench.put(N, "openmpi", job="older")
    for node in (0, 1, 3):
        bench.drop(node, job="older")
    result = bench.put(N, "openmpi", job="newer", fault="stage.publish@3")
    assert result["ok"] is False
    assert bench.left_on(2) == [bench.id]
    assert os.listdir(bench.staged(2) / "jobs") == ["older"]
    bench.check_same(2)


@pytest.fixture
def small_memory(bench: Bench, as_root: None) -> Iterator[Path]:
    """Node 2 has a tmpfs of 1 MiB."""
    base = bench.base(2)
    base.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", base], check=True)
    yield base
    subprocess.run(["umount", base], check=True)


def test_too_little_memory_is_told_before_any_byte_moves(
    bench: Bench, mpi: str, small_memory: Path
) -> None:
    result = bench.put(N, mpi)
    assert result["ok"] is False and result["status"] == 3
    tree = sum(
        f.stat().st_size for f in bench.tree.rglob("*") if f.is_file() and not f.is_symlink()
    )
    assert tree < result["needed"] < 2 * tree + (2 << 20)
    assert 900_000 < result["free"] <= 1 << 20
    assert "has room for" in result["reason"]
    check_clean(bench)


def test_memory_that_runs_out_on_the_way_is_told(bench: Bench, as_root: None) -> None:
    """A file that grows beside the staged folder takes what was free when all agreed."""
    need_launcher("openmpi")
    base = bench.base(1)
    base.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=11m", "small", base], check=True)
    try:
        process = bench.start(N, "openmpi", fault="stage.slow:100000")
        deadline = time.monotonic() + SOON_S
        while not any(".tmp-" in name for name in bench.left_on(1)) and time.monotonic() < deadline:
            time.sleep(0.005)
        (base / "hog").write_bytes(b"x" * (9 << 20))
        out, err = process.communicate(timeout=60)
        assert process.returncode == 3 and "No space left" in out, out + err
        assert '"needed":' in out and '"free":null' not in out
        check_clean(bench)
    finally:
        subprocess.run(["umount", base], check=True)


def test_too_few_inodes_are_told(bench: Bench, as_root: None) -> None:
    bench.base(0).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=50", "few", bench.base(0)], check=True)
    try:
        result = bench.put(1, "none")
        assert result["ok"] is False and "more files" in result["reason"]
    finally:
        subprocess.run(["umount", bench.base(0)], check=True)


def test_a_killed_process_never_leaves_the_final_name_and_the_next_put_cleans_up(
    bench: Bench, mpi: str
) -> None:
    result = bench.put(N, mpi, fault="stage.kill:5@1")
    assert result["status"] != 0 and result["ok"] is not True
    for node in range(N):
        assert bench.id not in bench.left_on(node)
    assert any(bench.left_on(node) for node in range(N)), "kill -9 leaves what nobody could remove"
    assert bench.put(N, mpi)["ok"] is True
    for node in range(N):
        assert bench.left_on(node) == [bench.id]
        bench.check_same(node)


def tells_its_ranks(launcher: list[str], folder: Path, number: signal.Signals) -> bool:
    """Whether it tells ranks to end before it kills them; that of Open MPI 6.0rc2 does not."""
    script = (
        'trap "touch told; exit" TERM INT; touch ready; for i in $(seq 500); do sleep .02; done'
    )
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    job = subprocess.Popen([*launcher, "1", "sh", "-c", script], cwd=folder, env=env)
    deadline = time.monotonic() + SOON_S
    while not (folder / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    job.send_signal(number)
    job.wait(timeout=SOON_S)
    time.sleep(0.5)  # mpirun does not wait for its children
    return (folder / "told").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_launcher_cleans_all_nodes(
    bench: Bench, number: signal.Signals, tmp_path: Path
) -> None:
    need_launcher("openmpi")
    if not tells_its_ranks(LAUNCHERS["openmpi"], tmp_path, number):
        pytest.skip("needs an mpirun that tells its ranks to end")
    process = bench.start(N, "openmpi", fault="stage.slow:200000")
    deadline = time.monotonic() + SOON_S
    while not bench.left_on(N - 1) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=SOON_S)
    assert process.returncode != 0
    deadline = time.monotonic() + 5  # mpirun does not wait for its children
    while any(bench.left_on(node) for node in range(N)) and time.monotonic() < deadline:
        time.sleep(0.05)
    check_clean(bench)


def test_a_process_that_stands_still_is_given_up(bench: Bench) -> None:
    need_launcher("openmpi")
    wrap = ("sh", "-c", f'echo $$ > {bench.work}/pid$OMPI_COMM_WORLD_RANK; exec "$@"', "sh")
    process = bench.start(3, "openmpi", "--timeout", "2", wrap=wrap, fault="stage.slow:100000")
    first = f"{bench.id}.tmp-*/root{bench.tree}/lib/exactly_a_block"  # blocks are on their way
    deadline = time.monotonic() + SOON_S
    while not list(bench.folder(1).glob(first)) and time.monotonic() < deadline:
        time.sleep(0.005)
    stopped = int((bench.work / "pid1").read_text())
    os.kill(stopped, signal.SIGSTOP)
    try:
        out, err = process.communicate(timeout=SOON_S)
    finally:
        if process.poll() is None:
            os.kill(stopped, signal.SIGCONT)
    assert process.returncode != 0
    assert "no word from" in out + err or "did not answer" in out + err
    for node in (0, 2):
        assert bench.left_on(node) == []


def damage(image: Path, offset: int) -> None:
    with image.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize("where", [20, 5000, -3000, -900_000])
def test_a_damaged_image_is_refused_on_all_nodes(bench: Bench, mpi: str, where: int) -> None:
    copy = bench.work / "damaged.brg"
    copy.write_bytes(bench.image.read_bytes())
    damage(copy, where % copy.stat().st_size)
    bench.image = copy
    result = bench.put(N, mpi)
    assert result["ok"] is False and result["status"] == 3
    assert str(copy) in result["reason"]
    check_clean(bench)


@pytest.mark.parametrize("size", [0, 100, 4096, 30_000, -5])
def test_a_truncated_image_is_refused(bench: Bench, size: int) -> None:
    copy = bench.work / "short.brg"
    copy.write_bytes(bench.image.read_bytes()[:size])
    bench.image = copy
    result = bench.put(1, "none")
    assert result["ok"] is False and str(copy) in result["reason"]
    check_clean(bench, 1)


def test_an_image_that_only_some_readers_can_open_is_refused(bench: Bench) -> None:
    need_launcher("openmpi")
    image = bench.image
    bench.image = bench.work / "node/sw.brg"
    wrap = (
        "unshare", "-m", "sh", "-c",
        "[ $OMPI_COMM_WORLD_RANK = 2 ] || "
        f'mount --bind {image.parent} {bench.work}/node; exec "$@"',
        "sh",
    )  # fmt: skip
    (bench.work / "node").mkdir()
    if os.geteuid() != 0:
        pytest.skip("needs root")
    result = bench.put(N, "openmpi", wrap=wrap)
    assert result["ok"] is False and "cannot open the image" in result["reason"]
    check_clean(bench)


# ---- the folder that others might have prepared ----


def refused(bench: Bench, words: str) -> None:
    result = bench.put(1, "none")
    assert result["ok"] is False and words in result["reason"], result


def test_a_link_in_place_of_the_folder_is_refused(bench: Bench) -> None:
    bench.base(0).mkdir()
    trap = bench.work / "trap"
    trap.mkdir(mode=0o700)
    bench.folder(0).symlink_to(trap)
    refused(bench, "is not a directory")
    assert os.listdir(trap) == []


def test_a_folder_of_another_user_is_refused(bench: Bench, as_root: None) -> None:
    bench.folder(0).mkdir(parents=True, mode=0o700)
    os.chown(bench.folder(0), 65534, 65534)
    refused(bench, "belongs to another user")
    os.chown(bench.folder(0), 0, 0)


def test_a_folder_that_others_can_enter_is_refused(bench: Bench) -> None:
    bench.folder(0).mkdir(parents=True)
    bench.folder(0).chmod(0o750)
    refused(bench, "can be entered by others")


def test_a_file_in_place_of_the_folder_is_refused(bench: Bench) -> None:
    bench.base(0).mkdir()
    bench.folder(0).touch()
    refused(bench, "is not a directory")


def test_a_missing_base_is_told(bench: Bench) -> None:
    bench.put(1, "none")
    bench.base(0).rename(bench.work / "moved")
    result = bench.put(1, "none", "--base", str(bench.work / "nowhere"))
    assert result["ok"] is False and str(bench.work / "nowhere") in result["reason"]


@pytest.mark.parametrize("job", ["", "..", "a/b", ".hidden", "x" * 201])
def test_a_job_name_that_is_no_folder_name_is_refused(bench: Bench, job: str) -> None:
    result = bench.put(1, "none", job=job)
    assert result["ok"] is False and "cannot name a job" in result["reason"]
    check_clean(bench, 1)


def test_removal_follows_no_link(bench: Bench) -> None:
    bench.put(1, "none")
    precious = bench.work / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (bench.staged(0) / "root/trap").symlink_to(precious)
    (bench.staged(0) / "jobs/job/trap").symlink_to(precious)
    (bench.folder(0) / f"{bench.id}.tmp-999").symlink_to(precious)
    assert bench.drop(0)[0]["removed"] is True
    assert os.listdir(precious) == ["file"]


def test_a_launcher_whose_mpi_is_another_one_is_told(bench: Bench) -> None:
    need_launcher("openmpi")
    need_launcher("mpich")
    process = bench.start(2, "mpich", "--mpi", "libmpi.so.40")
    out, err = process.communicate(timeout=60)
    assert process.returncode != 0 and "MPI sees one" in out + err
    check_clean(bench, 2)


def test_an_mpi_that_is_not_there_is_told(bench: Bench) -> None:
    """As an answer, not as a message: `brigade run` then lets sbcast carry the image."""
    command = bench.command("--mpi", "/nowhere/libmpi.so")
    done = subprocess.run(command, text=True, capture_output=True, timeout=60)
    said = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 3
    assert (said["ok"], said["mpi"]) == (False, False)
    assert "/nowhere/libmpi.so" in said["reason"]
