"""Faults on a cluster: what strikes one node of four ends the staging of all, and nothing stays."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from subprocess import PIPE

import mpich_launcher
import pytest
from lab_needs import missing

from brigade.lab import Lab

LIMIT_S = 90.0  #: a quiet machine needs less than 10 s for each (docs/design/0011-faults.md)
LAUNCHERS = {
    "srun": ["srun", "--mpi=pmix", "-N4", "-n4"],
    "mpirun": ["mpirun", "-n", "4", "--map-by", "ppr:1:node"],
    "mpiexec": ["mpiexec.mpich", "-ppn", "1", "-n", "4"],
}


pytestmark = [
    pytest.mark.all,
    pytest.mark.skipif(bool(missing()), reason=missing() or "the lab can be brought up"),
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    lab = Lab.up(name="testfaults", nodes=4)
    try:
        script = (
            f"/usr/bin/python3 -m venv --without-pip {lab.shared}/venv; "
            f"echo 'print(1, flush=True)' > {lab.shared}/app.py"
        )
        lab.exec("n0", ["/bin/sh", "-ec", script], check=True)
        for launcher in LAUNCHERS:
            if launcher == "mpiexec" and mpich_launcher.why_not_own():
                continue
            job = start(lab, launcher)
            _, said = job.communicate(timeout=LIMIT_S)
            assert job.returncode == 0 and "without an image" not in said, said
        yield lab
    finally:
        lab.down()


def start(lab: Lab, launcher: str, *options: str, **env: str) -> subprocess.Popen[str]:
    mpich_launcher.need_own(*LAUNCHERS[launcher])
    program = [f"{lab.shared}/venv/bin/python", f"{lab.shared}/app.py"]
    return lab.popen(
        "n0",
        [sys.executable, "-m", "brigade", "run", *options, "--", *LAUNCHERS[launcher], *program],
        cwd="/", env={"BRIGADE_CACHE": f"{lab.shared}/images", **env},
        stdout=PIPE, stderr=PIPE, text=True,
    )  # fmt: skip


def in_memory(lab: Lab, nodes: list[str]) -> list[str]:
    """Nodes whose memory holds something, finished or not."""
    found = {n: lab.host_path(n, "/dev/shm").glob("brigade-*/[0-9a-f]*") for n in nodes}
    return [node for node, paths in found.items() if any(paths)]


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.05)


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("fault", ["stage.kill:0@0", "stage.kill:0@2", "stage.step:4@1"])
def test_a_killed_staging_process_leaves_nothing_and_the_job_runs(
    lab: Lab, launcher: str, fault: str
) -> None:
    job = start(lab, launcher, BRIGADE_FAULT=fault)
    out, said = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0 and out.count("1") == 4, said
    assert "the job starts without an image" in said
    wait_for(lambda: not in_memory(lab, lab.nodes))


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_signal_while_staging_leaves_nothing(lab: Lab, launcher: str) -> None:
    job = start(lab, launcher, BRIGADE_FAULT="stage.slow:3000000")
    wait_for(lambda: len(in_memory(lab, lab.nodes)) == 4)
    job.send_signal(signal.SIGTERM)
    _, said = job.communicate(timeout=LIMIT_S)
    assert job.returncode == -signal.SIGTERM and "stopped by SIGTERM" in said
    wait_for(lambda: not in_memory(lab, lab.nodes))


def test_a_node_off_the_network_is_named_and_the_others_are_freed(lab: Lab) -> None:
    """The last one: Slurm does not win the node back soon."""
    job = start(lab, "srun", "--strict", BRIGADE_FAULT="stage.slow:3000000", BRIGADE_PATIENCE="20")
    wait_for(lambda: len(in_memory(lab, lab.nodes)) == 4)
    lab.exec("n2", ["ip", "link", "set", "eth0", "down"], check=True)
    _, said = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 6 and "n2" in said, said
    wait_for(lambda: not in_memory(lab, ["n0", "n1", "n3"]))
