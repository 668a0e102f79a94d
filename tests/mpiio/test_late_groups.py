"""Files of some of the ranks, opened without MPI, are as MPI's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mpi_world import AS_NODES, MPIS, WHEELS, compile_mpi, needs_nodes
from test_late import either, lines

from brigade.paths import native

RANKS = 4
#: files that rank 0 opens without MPI, and that MPI opens after all
OPENED = {
    "halves": (3, 0),
    "crossed": (2, 0),
    "orders": (24, 0),
    "pointers": (1, 1),
    "hints": (3, 0),
    "refused": (3, 0),
}
#: what the program is compiled with: to name a call is to ask for what it needs
NAMES = {"hints": ["-DHINTS"], "pointers": ["-DPOINTERS"]}


@pytest.fixture(scope="module", params=[*MPIS, *WHEELS])
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def drivers(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, here = tmp_path_factory.mktemp(mpi), Path(__file__).parent
    source, include = here / "late_groups_driver.c", ["-I", str(here)]
    plain = compile_mpi(mpi, source, folder / "plain", *include)
    named = {
        what: compile_mpi(mpi, source, folder / what, *include, *names)
        for what, names in NAMES.items()
    }
    return {what: named.get(what, plain) for what in OPENED}


def compare(
    mpi: str, start: list[str], driver: Path, folder: Path, what: str, **environment: str
) -> None:
    plain, _ = lines(mpi, [*start, str(driver), str(folder / "plain"), what], RANKS, **environment)
    preload = f"LD_PRELOAD={native('libbrigade_mpiio.so')}"
    words = [*start, "env", preload, str(driver), str(folder / "under"), what]
    said, report = lines(mpi, words, RANKS, BRIGADE_MPIIO="verbose", **environment)
    assert said == plain
    found = re.search(r"(\d+) files opened without MPI, (\d+) by it later", report)
    assert found and (int(found[1]), int(found[2])) == OPENED[what], report


@either
@pytest.mark.parametrize("what", OPENED)
def test_some_ranks_see_what_they_see_without_it(what, threads, mpi, drivers, tmp_path):
    compare(mpi, [], drivers[what], tmp_path, what, **threads)


@needs_nodes
@pytest.mark.parametrize("what", [what for what in OPENED if what != "pointers"])
def test_some_ranks_of_two_nodes_do(what, mpi, drivers, tmp_path):
    compare(mpi, ["sh", "-c", AS_NODES, "sh", "2"], drivers[what], tmp_path, what)
