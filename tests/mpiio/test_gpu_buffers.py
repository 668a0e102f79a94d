"""Buffers in the memory of a device are left to the MPI, on all ranks of a collective call."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from mpi_world import EITHER_MPI, WHEELS, compile_mpi, run_mpi

from brigade.paths import native

HERE = Path(__file__).parent
LIBRARIES = {"cuda": "libcuda.so.1", "hip": "libamdhip64.so.6"}


@pytest.fixture(scope="module", params=[*EITHER_MPI, *WHEELS])
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def driver(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp(mpi) / "driver"
    return compile_mpi(mpi, HERE / "device_driver.c", target, "-I", str(HERE), "-ldl")


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp(request.param) / LIBRARIES[request.param]
    words = [
        "cc",
        "-shared",
        "-fPIC",
        f"-DFAKE_{request.param.upper()}",
        f"-Wl,-soname,{target.name}",
    ]
    subprocess.run([*words, HERE / "device_fake.c", "-o", target], check=True)
    return target


def run(mpi: str, driver: Path, library: Path, path: Path, what: str) -> tuple[dict[str, int], int]:
    """Of rank 0's calls those that were left to MPI, and the writes that were not."""
    command = ["env", f"LD_PRELOAD={native('libbrigade_mpiio.so')}", driver, path, what, library]
    done = run_mpi(mpi, 2, command, BRIGADE_MPIIO="verbose")
    assert done.returncode == 0, done.stdout + done.stderr
    left = re.findall(r"(\d+) calls left to MPI: (.*)", done.stderr)
    writes = re.search(r"writes: (\d+) calls", done.stderr)
    return {why: int(n) for n, why in left}, int(writes[1]) if writes else 0


@pytest.mark.parametrize("what", ["none", "managed"])
def test_memory_that_the_host_reaches_is_written_here(mpi, driver, library, tmp_path, what):
    left, writes = run(mpi, driver, library, tmp_path / "f", what)
    assert writes >= 3 and "memory of a device" not in left


@pytest.mark.parametrize(("what", "calls"), [("rank", 5), ("later", 6)])
def test_memory_of_a_device_is_mpis(mpi, driver, library, tmp_path, what, calls):
    run(mpi, driver, library, tmp_path / "plain", "none")
    left, writes = run(mpi, driver, library, tmp_path / "f", what)
    assert left == {"memory of a device": calls} and writes == 0
    assert (tmp_path / "f").read_bytes() == (tmp_path / "plain").read_bytes()
