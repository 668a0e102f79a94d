"""libbrigade_mpiio linked instead of preloaded; and the calls for large counts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_world import run_mpi

from brigade.paths import native_dir

HERE = Path(__file__).parent
#: such as gcc has by itself in some distributions
UNUSED_GO = "-Wl,--as-needed"


def build(compiler: str, words: list[str], folder: Path, *libraries: str) -> Path:
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    command = [compiler, "-o", str(folder / "app"), UNUSED_GO, *words, *libraries]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return folder / "app"


def by_io_config() -> list[str]:
    command = [sys.executable, "-m", "brigade", "io-config", "--mpiio", "--libs"]
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout.split()


def by_pkg_config() -> list[str]:
    where = {**os.environ, "PKG_CONFIG_PATH": str(native_dir() / "pkgconfig")}
    command = ["pkg-config", "--libs", "brigade-mpiio"]
    return subprocess.run(
        command, text=True, capture_output=True, check=True, env=where
    ).stdout.split()


def report_of(mpi: str, ranks: int, app: Path, path: Path) -> str:
    done = run_mpi(mpi, ranks, [app, path], BRIGADE_MPIIO="verbose")
    assert done.returncode == 0 and "WRONG" not in done.stdout, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize("words", [by_io_config, by_pkg_config])
def test_a_program_in_c_is_linked_with_it(words, tmp_path):
    app = build("mpicc.openmpi", [str(HERE / "linked_driver.c")], tmp_path, *words())
    report = report_of("openmpi", 2, app, tmp_path / "file")
    assert "reads: 1 calls taken over" in report and "writes: 1 calls taken over" in report


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_a_program_in_fortran_is_linked_with_it_though_it_names_nothing_of_it(mpi, tmp_path):
    source = ["-DBINDING=2", "-fallow-argument-mismatch", str(HERE / "bindings_driver.F90")]
    app = build(f"mpifort.{mpi}", source, tmp_path, *by_io_config())
    report = report_of(mpi, 2, app, tmp_path / "file")
    assert "reads: 2 calls taken over" in report and "writes: 1 calls taken over" in report


def test_calls_for_large_counts_are_taken_over_with_all_their_bits(tmp_path):
    source = ["-DHAVE_LARGE", str(HERE / "linked_driver.c")]
    app = build("mpicc.mpich", source, tmp_path, *by_io_config())
    report = report_of("mpich", 2, app, tmp_path / "file")
    assert "reads: 7 calls taken over" in report and "writes: 5 calls taken over" in report
    assert "left to MPI" not in report
