"""Random datatypes against MPI: what it packs, measures and places in a file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from mpi_world import MPIS, compile_mpi, run_mpi

ROOT = Path(__file__).parents[2]
#: compiled with the driver, as no library exports them
PARTS = [*(ROOT / "src/type").glob("*.c"), *(ROOT / "src/mpi").glob("*.c")]
PARTS += [ROOT / "src/base" / name for name in ("error.c", "pause.c")]
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", f"-I{ROOT / 'src'}", f"-I{ROOT / 'tests'}", "-ldl"]


DRIVER = Path(__file__).with_name("mpi_types_driver.c")


def driver_of(mpi: str, folder: Path) -> Path:
    return compile_mpi(mpi, DRIVER, folder / "driver", *map(str, PARTS), *FLAGS)


def check(mpi: str, folder: Path, first: int, rounds: int) -> None:
    command = [driver_of(mpi, folder), folder / "file", str(first), str(rounds)]
    done = run_mpi(mpi, 1, command)
    assert done.returncode == 0 and " 0 failures" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("mpi", MPIS)
def test_random_types_are_what_mpi_packs_and_where_it_places_them(mpi: str, tmp_path: Path) -> None:
    check(mpi, tmp_path, 0, 1000)


@pytest.mark.all
@pytest.mark.parametrize("mpi", MPIS)
def test_many_more_random_types_are(mpi: str, tmp_path: Path) -> None:
    check(mpi, tmp_path, 1000, 20000)


def test_types_of_the_interface_that_mpi_5_fixes_are(tmp_path: Path) -> None:
    compiler = shutil.which("mpicc_abi")
    if not compiler:
        pytest.skip("needs an MPI with MPI 5.0's binary interface: mpicc_abi on PATH")
    include = f"-I{ROOT / 'include'}"
    driver = tmp_path / "driver"
    subprocess.run([compiler, DRIVER, *PARTS, include, *FLAGS, "-o", driver], check=True)
    command = [
        Path(compiler).with_name("mpiexec"),
        "-n",
        "1",
        driver,
        tmp_path / "file",
        "0",
        "1000",
    ]
    done = subprocess.run(command, text=True, capture_output=True, timeout=120)
    assert " 0 failures" in done.stdout, done.stdout + done.stderr
