"""Bytes from random ranks to random places, and back: as if one process had done it all.

The program (moving.c) draws pieces that are contiguous, strided, anywhere, overlapping or none, in
an unequal number of calls, and compares byte by byte.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mpi_world import EITHER_MPI, MPIS, compile_mpi, needs_nodes, on_nodes, run_mpi

SOURCE = Path(__file__).with_name("moving.c")
SEED = os.environ.get("BRIGADE_TEST_SEED", "1")


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def moving(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_mpi(mpi, SOURCE, tmp_path_factory.mktemp(mpi) / "moving")


def move(
    mpi: str,
    ranks: int,
    program: Path,
    folder: Path,
    hints: str,
    cases: int,
    most: int = 1 << 20,
    nodes: int = 0,
) -> None:
    words = on_nodes(nodes, [program, folder, f"sync=no:{hints}", SEED, str(cases), str(most)])
    done = run_mpi(mpi, ranks, words)
    assert done.returncode == 0 and done.stdout.startswith("ok"), done.stdout + done.stderr


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
@pytest.mark.parametrize("hints", ["transport=direct", "transport=simple", "transport=rotate"])
@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.all), 4])
def test_on_one_node(mpi: str, moving: Path, tmp_path: Path, ranks: int, hints: str):
    move(mpi, ranks, moving, tmp_path, hints, 15)


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
def test_slots_are_used_again_and_again(mpi: str, moving: Path, tmp_path: Path):
    """The smallest segments hold four windows of 16 KiB: writers have threads."""
    move(mpi, 3, moving, tmp_path, "transport=simple:segment=64K:stripe=64K", 10)


@pytest.mark.parametrize("transport", ["direct", "simple", "brigade"])
def test_ranks_that_share_no_memory(mpi: str, moving: Path, tmp_path: Path, transport: str):
    move(mpi, 3, moving, tmp_path, f"share=no:transport={transport}:segment=64K:stripe=64K", 10)


@needs_nodes
@pytest.mark.parametrize("transport", ["direct", "simple", "brigade"])
def test_nodes_of_several_ranks(mpi: str, moving: Path, tmp_path: Path, transport: str):
    ranks = 6 if mpi == "openmpi" else 4  # MPICH's ranks spin
    move(
        mpi,
        ranks,
        moving,
        tmp_path,
        f"transport={transport}:segment=128K:stripe=64K",
        10,
        1 << 20,
        2,
    )


@needs_nodes
@pytest.mark.all
@pytest.mark.parametrize("transport", ["direct", "simple", "brigade", "rotate"])
@pytest.mark.parametrize("nodes", [0, 2, 5])
@pytest.mark.parametrize("segment", ["64K", "1M", "4M"])
def test_many_cases(
    mpi: str, moving: Path, tmp_path: Path, transport: str, nodes: int, segment: str
):
    ranks = 8 if mpi == "openmpi" else 5
    move(
        mpi, ranks, moving, tmp_path, f"transport={transport}:segment={segment}", 60, 3 << 20, nodes
    )
