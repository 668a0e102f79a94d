"""The programs of examples/ checkpoint and go on, on other numbers of ranks and in each other's
languages, with both MPIs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from mpi_world import EITHER_MPI, MPIS, run_mpi

import brigade.io
from brigade.paths import native_dir

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PYTHON = [sys.executable, EXAMPLES / "heat.py"]
MPI_OF_PYTHON = "openmpi"  # which mpi4py finds first on a machine that has both


@pytest.fixture(scope="module", params=MPIS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, made by their own Makefile; the folder is named like the MPI."""
    mpi = request.param
    for compiler in (f"mpicc.{mpi}", f"mpifort.{mpi}", "gfortran"):
        if not shutil.which(compiler):
            pytest.skip(f"needs Debian packages gfortran and lib{mpi}-dev: {compiler}")
    folder = tmp_path_factory.mktemp("examples") / mpi
    shutil.copytree(EXAMPLES, folder)
    words = [f"MPICC=mpicc.{mpi}", f"MPIFORT=mpifort.{mpi}", "CFLAGS=-O0", "FFLAGS=-O0"]
    words += [f"CONFIG={sys.executable} -m brigade io-config"]
    environment = {**os.environ, "BRIGADE_NATIVE": str(native_dir().absolute())}
    done = subprocess.run(
        ["make", "-C", folder, *words], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def steps(mpi: str, ranks: int, program: list[object], path: Path, n: int) -> str:
    done = run_mpi(mpi, ranks, [*map(str, program), path, str(n)])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def temperatures(path: Path) -> numpy.ndarray:
    with brigade.io.open(None, path) as file:
        return numpy.asarray(file.read_array("u"))


@pytest.mark.parametrize("language", ["C", "Fortran"])
def test_a_run_that_is_interrupted_ends_as_one_that_is_not(built, language, tmp_path):
    mpi, program = built.name, [built / {"C": "heat", "Fortran": "heat_f"}[language]]
    steps(mpi, 2, program, tmp_path / "whole", 30)
    steps(mpi, 3, program, tmp_path / "parts", 10)
    assert steps(mpi, 1, program, tmp_path / "parts", 20).startswith("30 steps")
    whole = temperatures(tmp_path / "whole")
    assert (whole[:, 0] == 100).all() and 0 < whole[32, 2] < 100
    assert numpy.array_equal(whole, temperatures(tmp_path / "parts"))


@pytest.mark.parametrize("built", EITHER_MPI, indirect=True)
def test_a_checkpoint_of_fortran_goes_on_in_c_and_in_python(built, tmp_path):
    mpi, path = built.name, tmp_path / "u"
    steps(mpi, 2, [built / "heat_f"], path, 5)
    steps(mpi, 2, [built / "heat"], path, 5)
    ranks = 2 if mpi == MPI_OF_PYTHON else 1
    assert steps(mpi, ranks, PYTHON, path, 5) == f"15 steps in {path}\n"
    steps(mpi, 3, [built / "heat_f"], tmp_path / "fortran", 15)
    assert numpy.array_equal(temperatures(path), temperatures(tmp_path / "fortran"))


@pytest.mark.parametrize("built", EITHER_MPI, indirect=True)
def test_a_failed_checkpoint_ends_the_program_and_leaves_the_last_one(built, tmp_path):
    mpi, path = built.name, tmp_path / "u"
    steps(mpi, 2, [built / "heat"], path, 5)
    before = path.read_bytes()
    done = run_mpi(mpi, 2, [built / "heat", path, "5"], BRIGADE_FAULT="io.fsync:0")
    assert done.returncode != 0
    assert "rank" in done.stderr
    assert path.read_bytes() == before
