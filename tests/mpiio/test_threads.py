"""Programs that may call MPI from several threads at a time, beneath libbrigade_mpiio."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi_world import MPIS, WHEELS, compile_mpi
from test_late import lines, under


@pytest.fixture(scope="module", params=[*MPIS, *WHEELS])
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def driver(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, here = tmp_path_factory.mktemp(mpi), Path(__file__).parent
    source = here / "threads_driver.c"
    return compile_mpi(mpi, source, folder / "threads", "-I", str(here), "-pthread")


@pytest.mark.parametrize("what", ["after", "beside", "pointer"])
def test_files_of_several_threads_are_as_without_it(what, mpi, driver, tmp_path):
    if what == "beside" and "mpich" in mpi:
        pytest.skip("MPICH's own files of two threads wait for each other")
    plain, _ = lines(mpi, [str(driver), str(tmp_path / "plain"), what])
    said, report = under(mpi, driver, tmp_path / "under", what)
    assert said == plain
    opened = {"after": 12, "beside": 24, "pointer": 1}[what]
    assert f" {opened} files opened without MPI, 0 by it later" in report
