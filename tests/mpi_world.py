"""MPI programs of a test: compiled for an MPI that is installed, run on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from brigade.paths import native_dir

INCLUDE = Path(__file__).parents[1] / "include"
MPIS = ("openmpi", "mpich")
#: where it matters little which: `make check` takes one, `make check-all` both
EITHER_MPI = (MPIS[0], pytest.param(MPIS[1], marks=pytest.mark.all))
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--oversubscribe", "-n"],
    "mpich": ["mpiexec.mpich", "-n"],
}
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_orte_execute_quiet": "1",  # -q, which later versions refuse
    "OMPI_MCA_pml": "ob1",  # the one it takes here, after 0.2 s of asking others
    "OMPI_MCA_odls_base_sigkill_timeout": "0",  # a job that fails ends, a second sooner
}

#: how a job's ranks are put on N nodes of one machine: another host name is another node
AS_NODES = r"""
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; n=$1; shift
exec unshare --uts sh -c 'hostname "$0" && exec "$@"' "node$((rank % n))" "$@"
"""


def compile_mpi(mpi: str, source: Path, target: Path, *flags: str) -> Path:
    """A program that uses libbrigade_io; the test is skipped where this MPI is not installed."""
    if not shutil.which(f"mpicc.{mpi}") or not shutil.which(LAUNCHERS[mpi][0]):
        pytest.skip(f"needs Debian package lib{mpi}-dev: mpicc.{mpi}")
    native = native_dir()
    command = [f"mpicc.{mpi}", "-g", f"-I{INCLUDE}", str(source), "-o", str(target), *flags]
    command += [f"-L{native}", "-lbrigade_io", f"-Wl,-rpath,{native}"]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return target


def run_mpi(
    mpi: str, ranks: int, command: list[str | Path], **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LAUNCHERS[mpi], str(ranks), *map(str, command)],
        text=True,
        capture_output=True,
        timeout=120,
        env={**os.environ, **ENVIRONMENT, **environment},
    )


def can_be_nodes() -> bool:
    unshare = shutil.which("unshare")
    return bool(unshare) and subprocess.run(["unshare", "--uts", "true"]).returncode == 0


needs_nodes = pytest.mark.skipif(not can_be_nodes(), reason="needs the right to unshare --uts")
