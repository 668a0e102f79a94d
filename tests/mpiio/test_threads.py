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


@pytest.mark.parametrize("nodes", ["yes", "no"])
def test_what_a_thread_moves_alone_is_not_closed_by_another(nodes, mpi, driver, tmp_path):
    hints = {"BRIGADE_IO": f"*:share={nodes}"}
    said, report = under(mpi, driver, tmp_path / "file", "beneath", **hints)
    assert all(" failed=0 size=11100 " in line for line in said), said
    assert " 1 files opened without MPI, 0 by it later" in report


@pytest.mark.parametrize("what", ["after", "beside", "pointer"])
def test_files_of_several_threads_are_as_without_it(what, mpi, driver, tmp_path):
    if what == "beside" and "mpich" in mpi:
        pytest.skip("MPICH's own files of two threads wait for each other")
    plain, _ = lines(mpi, [str(driver), str(tmp_path / "plain"), what])
    said, report = under(mpi, driver, tmp_path / "under", what)
    assert said == plain
    opened = {"after": 12, "beside": 24, "pointer": 1}[what]
    assert f" {opened} files opened without MPI, 0 by it later" in report
