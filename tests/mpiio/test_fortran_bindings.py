"""All three bindings of Fortran reach libbrigade_mpiio, with everything translated."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy
import pytest
from mpi_world import EITHER_MPI, run_mpi

from brigade.paths import native

SOURCE = Path(__file__).with_name("bindings_driver.F90")
BINDINGS = {"mpif.h": 1, "mpi": 2, "mpi_f08": 3}


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("mpi", EITHER_MPI)
def test_a_matrix_is_written_and_read(mpi: str, binding: str, tmp_path: Path) -> None:
    compiler = f"mpifort.{mpi}"
    if not shutil.which(compiler):
        pytest.skip(f"needs Debian package lib{mpi}-dev: {compiler}")
    number = f"-DBINDING={BINDINGS[binding]}"
    command = [compiler, number, "-fallow-argument-mismatch", "-o", tmp_path / "driver", SOURCE]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    preload = f"LD_PRELOAD={native('libbrigade_mpiio.so')}"
    words = ["env", preload, tmp_path / "driver", tmp_path / "file"]
    done = run_mpi(mpi, 2, words, BRIGADE_MPIIO="verbose")
    assert done.stdout.count("wrong 0") == 2, done.stdout + done.stderr
    assert "reads: 2 calls" in done.stderr and "writes: 1 calls" in done.stderr
    assert numpy.array_equal(numpy.fromfile(tmp_path / "file", "i4"), numpy.arange(1, 801))
