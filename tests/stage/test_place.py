"""Nodes stand in the ring by the switches above them; a wrong topology is a warning, no more."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from mpi_world import EITHER_MPI

from .conftest import Bench, need_launcher

# what Slurm tells the tasks of a step: one leaf switch for the even ranks, one for the odd ones
SLURM = (
    "/bin/sh", "-c",
    'r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; export SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node; '
    'export SLURM_TOPOLOGY_ADDR=top.leaf$((r % 2)).n$r; exec "$@"', "sh",
)  # fmt: skip


@pytest.fixture(params=EITHER_MPI)
def mpi(request: pytest.FixtureRequest) -> str:
    """The order is found from what each rank says; that both MPIs carry it, test_put.py shows."""
    need_launcher(request.param)
    return str(request.param)


def check(bench: Bench, n: int) -> None:
    for node in range(n):
        bench.check_same(node)
        assert bench.left_on(node) == [bench.id]


def test_slurms_addresses_order_the_ring(bench: Bench, mpi: str) -> None:
    bench.before = SLURM
    result = bench.put(6, mpi, "--readers", "2")
    assert result["ok"] is True, result
    assert result["topology"] == {"from": "slurm", "crossings": 2, "crossings_before": 6}
    check(bench, 6)
    assert len([node for node in result["nodes"] if node["read_bytes"]]) == 2


def test_told_none_or_told_nothing_ranks_stand_as_they_were_started(bench: Bench, mpi: str) -> None:
    assert bench.put(3, mpi)["topology"] == {"from": None}
    bench.before = SLURM
    assert bench.put(3, mpi, "--topology", "none", job="two")["topology"] == {"from": None}


def test_an_address_that_came_with_another_nodes_environment_is_not_believed(
    bench: Bench, mpi: str
) -> None:
    bench.before = ("/usr/bin/env", "SLURM_TOPOLOGY_ADDR=top.leaf.n0",
                    "SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node")  # fmt: skip
    assert bench.put(3, mpi)["topology"] == {"from": None}
    check(bench, 3)


def test_a_file_in_slurms_syntax_orders_the_ring(bench: Bench, mpi: str) -> None:
    bench.before = ("/bin/sh", "-c", 'export SLURMD_NODENAME=n${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; '
                    'exec "$@"', "sh")  # fmt: skip
    file = bench.work / "topology.conf"
    file.write_text(
        "SwitchName=a Nodes=n[0,3]\nSwitchName=b Nodes=n[1-2,4]\nSwitchName=c Switches=a,b\n"
    )
    result = bench.put(5, mpi, "--topology", str(file))
    assert result["topology"] == {"from": "file", "crossings": 2, "crossings_before": 4}
    check(bench, 5)


def test_a_topology_that_is_wrong_is_a_warning_and_the_default_order(
    bench: Bench, mpi: str, tmp_path: Path
) -> None:
    file = tmp_path / "topology.conf"
    for text, said in (("what is this\n", "line 1 "), ("SwitchName=a Nodes=x1\n", "no switch")):
        file.write_text(text)
        result = bench.put(3, mpi, "--topology", str(file), job=f"job{len(text)}")
        assert result["ok"] is True and result["topology"]["from"] is None
        assert said in result["topology"]["warning"] and str(file) in result["topology"]["warning"]
    assert socket.gethostname() in result["topology"]["warning"]
    check(bench, 3)


def test_a_node_that_fails_is_named_in_any_order(bench: Bench, mpi: str) -> None:
    bench.before = SLURM
    result = bench.put(6, mpi, fault="stage.write:1000@3")
    assert result["ok"] is False and result["status"] != 0 and "No space" in result["reason"]
    assert [bench.left_on(node) for node in range(6)] == [[]] * 6
