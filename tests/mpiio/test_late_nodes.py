"""The same on several nodes: with `share=no` each rank counts as one of a node of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mpi_world import AS_NODES, MPIS, compile_mpi, needs_nodes
from test_late import WHAT, lines, under

from brigade.paths import native

#: without a page of memory that all share, which there are four of, any number is opened late
NODES = {**WHAT, "late_driver": {**WHAT["late_driver"], "many": 7}}
OPENED = [(name, what) for name, cases in NODES.items() for what in cases if what != "shared"]
EACH_A_NODE = {"BRIGADE_IO": "*:share=no"}


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def drivers(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, here = tmp_path_factory.mktemp(mpi), Path(__file__).parent
    words = ["-I", str(here), "-ldl", "-DNO_SHARED"]
    return {name: compile_mpi(mpi, here / f"{name}.c", folder / name, *words) for name in WHAT}


@pytest.mark.parametrize(("name", "what"), OPENED)
def test_a_program_on_several_nodes_sees_what_it_sees_without_it(
    name, what, mpi, drivers, tmp_path
):
    driver, opened = drivers[name], NODES[name][what]
    plain, _ = lines(mpi, [str(driver), str(tmp_path / "plain"), what])
    said, report = under(mpi, driver, tmp_path / "under", what, **EACH_A_NODE)
    assert said == plain
    found = re.search(r"(\d+) files opened without MPI, (\d+) by it later", report)
    assert found and int(found[1]) >= 1 and int(found[2]) == opened, report


@pytest.mark.parametrize("what", ["shared", "many"])
def test_mpi_opens_files_of_who_may_want_a_pointer_of_all_nodes(what, mpi, tmp_path):
    here = Path(__file__).parent
    driver = compile_mpi(mpi, here / "late_driver.c", tmp_path / "d", "-I", str(here), "-ldl")
    plain, _ = lines(mpi, [str(driver), str(tmp_path / "plain"), what])
    said, report = under(mpi, driver, tmp_path / "under", what, **EACH_A_NODE)
    assert said == plain
    assert "taken over" in report and "files opened without MPI" not in report


@needs_nodes
@pytest.mark.parametrize(("what", "opened"), [("asks", 1), ("alone", 1), ("turns", 1)])
def test_ranks_with_names_of_hosts_that_differ_are_on_several_nodes(
    what, opened, mpi, drivers, tmp_path
):
    driver = drivers["late_driver"]
    as_nodes = ["sh", "-c", AS_NODES, "sh", "2"]
    plain, _ = lines(mpi, [*as_nodes, str(driver), str(tmp_path / "plain"), what])
    words = [f"LD_PRELOAD={native('libbrigade_mpiio.so')}", str(driver), str(tmp_path / "u"), what]
    said, report = lines(mpi, [*as_nodes, "env", *words], BRIGADE_MPIIO="verbose")
    assert said == plain
    assert f"1 files opened without MPI, {opened} by it later" in report


def test_a_pointer_of_all_nodes_that_nobody_could_know_of_is_refused(mpi, drivers, tmp_path):
    driver, path = drivers["late_odd_driver"], tmp_path / "file"
    said, _ = under(mpi, driver, path, "sought", **EACH_A_NODE)
    assert all(" class=1 " in line for line in said), said
