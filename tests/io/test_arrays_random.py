"""Random arrays, cut into random blocks, written by random ranks in any number of calls: the file
holds what NumPy holds, whichever way the bytes went and whoever reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi_python import run
from mpi_world import MPIS, needs_nodes
from random_arrays import PLAN, READ, WRITE


def check(mpi: str, writers: int, readers: int, seeds: range, folder: Path, nodes: int = 0) -> None:
    head = f"SEEDS = {seeds!r}\n" + PLAN
    run(mpi, writers, head + WRITE, folder, nodes=nodes)
    for rank in run(mpi, readers, head + READ, folder, nodes=nodes):
        assert rank["wrong"] == []


@pytest.mark.parametrize("mpi, writers, readers", [("openmpi", 2, 3), ("mpich", 3, 1)])
def test_random_arrays_come_back(mpi: str, writers: int, readers: int, tmp_path: Path) -> None:
    check(mpi, writers, readers, range(30), tmp_path)


@needs_nodes
@pytest.mark.parametrize("mpi, ranks", [("openmpi", 4), ("mpich", 3)])
def test_random_arrays_of_ranks_on_two_nodes_come_back(mpi: str, ranks: int, tmp_path: Path):
    check(mpi, ranks, ranks, range(100, 130), tmp_path, nodes=2)


@pytest.mark.all
@needs_nodes
@pytest.mark.parametrize("mpi, ranks", [("openmpi", 5), ("mpich", 4)])
def test_many_random_arrays_of_ranks_on_two_nodes_come_back(mpi: str, ranks: int, tmp_path: Path):
    check(mpi, ranks, 2, range(2000, 2300), tmp_path, nodes=2)


@pytest.mark.all
@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("writers, readers", [(2, 3), (3, 2), (4, 1), (1, 4)])
def test_many_random_arrays_come_back(mpi: str, writers: int, readers: int, tmp_path: Path) -> None:
    check(mpi, writers, readers, range(1000, 1200), tmp_path)
