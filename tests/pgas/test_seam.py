"""One suite (conform.c) for whatever carries one-sided communication."""

from __future__ import annotations

import pytest
from mpi_world import needs_nodes
from pgas_world import Ground, run_on

NAMES = {"single": "one process", "shmem": "OpenSHMEM", "windows": "windows", "apart": "windows"}


def conform(ground: Ground) -> None:
    out = run_on(ground, "pgas_conform")
    nodes = ground.nodes or (ground.ranks if ground.kind == "apart" else 1)
    assert out == f"ok: {NAMES[ground.kind]}, {ground.ranks} ranks, {nodes} nodes\n"


@pytest.mark.parametrize(
    "ground",
    [
        Ground("windows", "openmpi", 4),
        Ground("windows", "mpich", 2),
        Ground("apart", "openmpi", 3),
        Ground("shmem", "", 5),
        *(
            pytest.param(Ground(kind, mpi, ranks), marks=pytest.mark.all)
            for kind, mpi in (("windows", "openmpi"), ("apart", "openmpi"), ("shmem", ""))
            for ranks in (1, 2, 3, 6, 8, 16)
        ),
        pytest.param(Ground("apart", "mpich", 3), marks=pytest.mark.all),
    ],
    ids=str,
)
def test_every_back_end_does_the_same(ground: Ground):
    conform(ground)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_openshmem_does_the_same_over_a_tree(ranks: int):
    """As where its ranks are on several nodes."""
    out = run_on(Ground("shmem", "", ranks), "pgas_conform", BRIGADE_SHMEM_TREE="1")
    assert out == f"ok: OpenSHMEM, {ranks} ranks, 1 nodes\n"


@needs_nodes
@pytest.mark.parametrize(
    "ground",
    [
        Ground("windows", "openmpi", 4, 2),
        pytest.param(Ground("windows", "openmpi", 7, 3), marks=pytest.mark.all),
        pytest.param(Ground("windows", "mpich", 4, 2), marks=pytest.mark.all),
    ],
    ids=str,
)
def test_ranks_of_a_node_share_memory_and_others_are_reached_by_windows(ground: Ground):
    conform(ground)
