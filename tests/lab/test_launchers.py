"""Every launcher starts real MPI programs over the nodes, without the user adding options."""

from __future__ import annotations

import pwd
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import mpich_launcher
import pytest

from brigade.lab import Lab, namespaces

SOURCE = Path(__file__).with_name("hello_mpi.c")


@pytest.fixture(scope="module")
def programs(moose: Lab) -> dict[str, str]:
    """The MPI program on the shared file system, for each implementation."""
    found = {}
    folder = moose.host_path("n0", moose.shared)
    for mpi in ("openmpi", "mpich"):
        if not shutil.which(f"mpicc.{mpi}"):
            pytest.skip(f"needs Debian package lib{mpi}-dev: mpicc.{mpi}")
        subprocess.run([f"mpicc.{mpi}", "-o", folder / mpi, SOURCE], check=True)
        found[mpi] = f"{moose.shared}/{mpi}"
    return found


def hosts(lab: Lab, argv: list[str], **options) -> Counter[str]:
    """How many ranks of the program ran on each host."""
    done = lab.run(argv, stdout=-1, stderr=-1, text=True, timeout=110, cwd="/", **options)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("ranks ")]
    assert len(lines) == 1, done.stdout + done.stderr
    return Counter(lines[0].split(":")[1].split())


EVEN = {"n0": 2, "n1": 2, "n2": 2}
LAUNCHERS = [
    ("openmpi", ["srun", "-N3", "-n6"]),
    ("openmpi", ["mpirun", "-n", "6"]),
    ("openmpi", ["salloc", "-Q", "-N3", "-n6", "mpirun"]),
    ("mpich", ["mpiexec.mpich", "-n", "6"]),
    ("mpich", ["srun", "--mpi=pmi2", "-N3", "-n6"]),
]


@pytest.mark.parametrize(("mpi", "launcher"), LAUNCHERS)
def test_ranks_spread_evenly(moose, programs, mpi, launcher):
    mpich_launcher.need_own(mpi, *launcher)
    assert hosts(moose, [*launcher, programs[mpi]]) == EVEN


@pytest.mark.parametrize(("mpi", "launcher"), [LAUNCHERS[0], LAUNCHERS[1], LAUNCHERS[3]])
def test_an_ordinary_user_may_do_the_same(moose, programs, mpi, launcher):
    mpich_launcher.need_own(mpi, *launcher)
    user = pwd.getpwuid(65534).pw_name
    assert hosts(moose, [*launcher, programs[mpi]], user=user) == EVEN


def test_more_ranks_than_processors_need_no_option(moose, programs):
    assert hosts(moose, ["srun", "-N3", "-n48", programs["openmpi"]]).total() == 48


def test_sbatch_runs_a_script_and_keeps_its_folder(moose, programs):
    moose.run(["mkdir", "-p", f"{moose.shared}/batch"], check=True)
    script = f"#!/bin/sh\npwd\nsrun {programs['openmpi']}\n"
    moose.host_path("n0", moose.shared).joinpath("batch/job").write_text(script)
    argv = ["sbatch", "-W", "-Q", "-N3", "-n6", "-o", "out", "job"]
    moose.run(argv, cwd=f"{moose.shared}/batch", check=True, timeout=110)
    said = moose.host_path("n0", f"{moose.shared}/batch/out").read_text().splitlines()
    assert said[0] == f"{moose.shared}/batch"
    assert Counter(said[1].split(":")[1].split()) == EVEN


@pytest.mark.parametrize("launcher", [["srun", "-n1"], ["mpirun", "-n", "1"]])
def test_the_exit_code_is_passed_on(moose, programs, launcher):
    argv = [*launcher, programs["openmpi"], "7"]
    assert moose.run(argv, stdout=-1, stderr=-1, cwd="/", timeout=60).returncode == 7


def test_a_signal_reaches_the_ranks(moose):
    with moose.popen("n0", ["srun", "-N3", "-n3", "sleep", "987"], stderr=-1, cwd="/") as process:
        while sum(running(moose, node) for node in moose.nodes) < 3:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) != 0
    deadline = time.monotonic() + 10
    while any(running(moose, node) for node in moose.nodes) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(running(moose, node) for node in moose.nodes)


def running(lab: Lab, node: str) -> bool:
    pids = namespaces.processes([lab.plan.pins(node)])
    return any(command_line(pid).endswith(b"/sleep\0987\0") for pid in pids)


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_the_working_folder_is_kept(moose):
    done = moose.run(["srun", "-n1", "pwd"], cwd=moose.shared, stdout=-1, text=True)
    assert done.stdout.strip() == moose.shared


def test_a_folder_that_nodes_do_not_have_is_explained(moose, tmp_path):
    done = moose.run(["true"], cwd=str(tmp_path), stderr=-1, text=True)
    assert done.returncode == 126
    assert str(tmp_path) in done.stderr and "--bind" in done.stderr


def test_tmp_and_shared_memory_belong_to_the_node(moose):
    for folder in ("/tmp", "/dev/shm", moose.local):
        moose.exec("n0", ["touch", f"{folder}/only-here"], cwd="/", check=True)
        assert moose.exec("n1", ["test", "-e", f"{folder}/only-here"], cwd="/").returncode == 1
        assert not Path(f"{folder}/only-here").exists()
