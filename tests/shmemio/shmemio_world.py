"""Programs of brigade/shmemio.h, run as jobs of OpenSHMEM or of MPI."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from mpi_world import LAUNCHERS, LIBRARIES
from pgas_world import OSHMEM_ENVIRONMENT, OSHRUN, program

#: ("shmem", ranks), or (an MPI, ranks) for its windows
Job = tuple[str, int]


def job_environment(hints: str, **more: str) -> dict[str, str]:
    """Nothing is synced unless a test asks for it: it would wait for the disk."""
    chosen = f"*:sync=no{hints and ':' + hints}"
    return {**os.environ, **OSHMEM_ENVIRONMENT, "BRIGADE_IO": chosen, **more}


def run_job(job: Job, name: str, *words: object, hints: str = "", **more: str) -> list[str]:
    """The lines that its ranks print; each must end well."""
    kind, ranks = job
    if kind == "shmem":
        command = [*OSHRUN, str(ranks), program(f"{name}_shmem"), "shmem", "liboshmem.so.40"]
    else:
        command = [*LAUNCHERS[kind], str(ranks), program(name), "windows", LIBRARIES[kind]]
    if not shutil.which(str(command[0])):
        pytest.skip(f"needs {command[0]}")
    done = subprocess.run(
        [str(word) for word in (*command, *words)],
        text=True,
        capture_output=True,
        timeout=120,
        env=job_environment(hints, **more),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert sorted(line for line in lines if line.startswith("ok")) == sorted(
        f"ok {rank} of {ranks}" for rank in range(ranks)
    )
    return [line for line in lines if not line.startswith("ok")]
