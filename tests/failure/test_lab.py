"""Failures that need a cluster: a launcher of nodes, and nodes that do not have the same files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from cases import LAB
from lab_needs import missing

from brigade.lab import Lab

TELLS = {
    "local-disk": ["/tmp/solver lies on /tmp (tmpfs) of n0 alone"],
    "launcher-partition": ["Slurm has no partition labb", "closest:  lab"],
    "launcher-plugin": ["Slurm has no MPI plugin", "srun --mpi=list"],
    "not-there": ["./solver is not there"],
}
COMMANDS = {
    "local-disk": ["srun", "-N2", "-n2", "/tmp/solver"],
    "launcher-partition": ["srun", "-p", "labb", "-n2", "hostname"],
    "launcher-plugin": ["srun", "-n2", "--mpi=pmi17", "hostname"],
    "not-there": ["srun", "-N2", "-n2", "./solver"],
}


pytestmark = [
    pytest.mark.all,
    pytest.mark.skipif(bool(missing()), reason=missing() or "the lab can be brought up"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    lab = Lab.up(f"test-f-{os.getpid()}", 2, "moosefs")
    lab.exec("n0", ["cp", "/bin/true", "/tmp/solver"], check=True)
    yield lab
    lab.down()


def run(lab: Lab, *words: str) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = lab.run(
        [sys.executable, "-m", "brigade", "run", *words],
        cwd=str(lab.shared),
        env={"BRIGADE_CACHE": f"{lab.shared}/images", "BRIGADE_PATIENCE": "60"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    return done


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_failure_of_a_cluster_is_explained(lab, kind):
    view = [] if kind != "launcher-partition" else ["--view", "none"]
    done = run(lab, *view, "--", *COMMANDS[kind])
    assert done.returncode != 0
    for words in TELLS[kind]:
        assert words in done.stderr, done.stderr


def test_a_refused_allocation_is_an_error_with_what_to_do(lab):
    done = run(lab, "--", *COMMANDS["launcher-partition"])
    assert done.returncode == 3
    assert "Invalid partition name" in done.stderr and "sinfo -s" in done.stderr


def test_each_failure_of_a_cluster_is_on_the_page():
    assert {kind for _, kind in LAB} <= set(COMMANDS)
