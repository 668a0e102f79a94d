"""Programs of tests that run on a group of ranks (group.h), over any back end."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from mpi_world import AS_NODES, ENVIRONMENT, LAUNCHERS, LIBRARIES

from brigade.bench.checkpoint.program import open_mpi, says
from brigade.paths import native_dir

#: Ubuntu 24.04's OpenSHMEM crashes in shmem_init, one start in three, unless all PEs have the same
#: addresses
SAME_ADDRESSES = ["setarch", "-R"] if "4.1.6" in says(["oshcc", "--showme:version"]) else []
#: how OpenSHMEM's ranks start; without ^rdma, Open MPI 4's crash when they end
OSHRUN = [*SAME_ADDRESSES, "oshrun", "--oversubscribe", "-n"]
OSHMEM_ENVIRONMENT = {
    **ENVIRONMENT,
    **({"OMPI_MCA_osc": "^rdma"} if open_mpi("oshcc") == 4 else {}),
}


class Ground(NamedTuple):
    """What carries a group: a word of group.h, an MPI, ranks, and nodes (0: those there are)."""

    kind: str
    mpi: str = ""
    ranks: int = 1
    nodes: int = 0

    def __str__(self) -> str:
        return "-".join(str(part) for part in self if part)


def program(name: str) -> Path:
    path = native_dir().parent / "tests" / name
    if not path.exists():
        pytest.skip(f"needs {name}: a build with -DBRIGADE_TESTS=ON, and liboshmem-dev for _shmem")
    return path


def run_on(ground: Ground, name: str, *words: str, **environment: str) -> str:
    """What the program prints, which must end well."""
    command: list[str] = []
    more = ENVIRONMENT
    if ground.kind == "single":
        command = [str(program(name)), "single"]
    elif ground.kind == "shmem":
        if not shutil.which("oshrun"):
            pytest.skip("needs Debian package openmpi-bin: oshrun")
        more = OSHMEM_ENVIRONMENT
        path = program(f"{name}_shmem")
        command = [*OSHRUN, str(ground.ranks), str(path), "shmem", "liboshmem.so.40"]
    else:
        launcher = LAUNCHERS[ground.mpi]
        if not shutil.which(launcher[0]):
            pytest.skip(f"needs {launcher[0]}")
        nodes = ["sh", "-c", AS_NODES, "nodes", str(ground.nodes)] if ground.nodes else []
        command = [*launcher, str(ground.ranks), *nodes, str(program(name)), ground.kind]
        command += [LIBRARIES[ground.mpi]]
    done = subprocess.run(
        [*command, *words],
        text=True,
        capture_output=True,
        timeout=120,
        env={**os.environ, **more, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
