"""A rank is killed at some step: those that live are told the same, soon, whoever it was."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from mpi_world import AS_NODES, MPIS, compile_mpi, needs_nodes, run_mpi

SOURCE = Path(__file__).with_name("killed_driver.c")
OWNERDEAD = -130
# UCX, under Debian's MPICH, aborts a process that copies from the memory of one that has died.
NO_FATAL_COPIES = "^cma"
BOUND_S = 5.0

# A launcher ends the whole job when one process dies; behind a shell it does not hear of it, until
# all others have told. A job that succeeds has as many files as ranks.
SHELL = """
folder=$1 tellers=$2; shift 2
"$@" & wait
tries=0
while [ $(ls "$folder" | grep -c told) -lt $tellers ] && [ $tries -lt 100 ]; do
    sleep 0.1; tries=$((tries + 1))
done
"""


class Told(NamedTuple):
    code: int
    failed_rank: int
    offset: int
    path: str


class World:
    def __init__(self, mpi: str, folder: Path) -> None:
        self.mpi, self.folder = mpi, folder
        self.driver = compile_mpi(mpi, SOURCE, folder / "driver")

    def run(
        self,
        ranks: int,
        fault: str,
        hints: str,
        way: str = "write",
        *extra: str,
        size: int = 65536,
        nodes: int = 0,
    ) -> dict[int, Told]:
        """What each rank that lived was told; none of them late."""
        place = self.folder / "files"
        place.mkdir(exist_ok=True)
        for old in [*place.glob("told.*"), *place.glob("new.*")]:
            old.unlink()
        command: list[str | Path] = ["sh", "-c", AS_NODES, "nodes", str(nodes)] if nodes else []
        command += ["sh", "-c", SHELL, "sh", place, str(ranks - bool(fault))]
        command += [self.driver, place, way, hints, str(size), *extra]
        environment = {"BRIGADE_FAULT": fault} if fault else {}
        run_mpi(self.mpi, ranks, command, UCX_TLS=NO_FATAL_COPIES, **environment)
        found = {}
        for path in place.glob("told.*"):
            code, rank, offset, seconds, *name = path.read_text().rstrip("\n").split(" ")
            assert float(seconds) < BOUND_S, path.read_text()
            found[int(path.suffix[1:])] = Told(int(code), int(rank), int(offset), " ".join(name))
        return found

    def assert_all_know(self, ranks: int, dead: int, found: dict[int, Told]) -> None:
        assert sorted(found) == [rank for rank in range(ranks) if rank != dead]
        assert {(told.code, told.failed_rank) for told in found.values()} == {(OWNERDEAD, dead)}
        assert len(set(found.values())) == 1, found


@pytest.fixture(scope="module", params=MPIS)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(request.param, tmp_path_factory.mktemp(f"killed_{request.param}"))


@pytest.mark.parametrize("share", ["yes", "no"])
@pytest.mark.parametrize(("step", "dead"), [(4, 0), (9, 2)])
def test_the_living_are_told_who_died_at_a_meeting(
    world: World, share: str, step: int, dead: int
) -> None:
    found = world.run(4, f"io.meet:{step}@{dead}", f"share={share}")
    world.assert_all_know(4, dead, found)
    assert not (world.folder / "files/data").exists()


def test_of_two_ranks_the_other_one_is_told(world: World) -> None:
    world.assert_all_know(2, 1, world.run(2, "io.meet:6@1", "share=no"))


@pytest.mark.parametrize("share", ["yes", "no"])
def test_a_rank_that_computes_is_not_taken_for_dead_and_is_told_later(
    world: World, share: str
) -> None:
    hints = f"share={share}"
    world.assert_all_know(4, 2, world.run(4, "io.meet:7@2", hints, "write", "1"))
    found = world.run(4, "", hints, "write", "1")
    assert [told.code for told in found.values()] == [0] * 4
    (world.folder / "files/data").unlink()


SMALL = "segment=64K:stripe=64K"


@pytest.mark.parametrize(
    ("fault", "hints"),
    [
        ("io.slot:7@1", "share=yes:transport=simple"),
        ("io.pass:0@2", "share=no:transport=brigade"),
        ("io.pass:6@0", "share=no:transport=simple"),
    ],
)
def test_the_living_are_told_who_died_in_the_middle_of_a_write(
    world: World, fault: str, hints: str
) -> None:
    found = world.run(4, fault, f"{hints}:{SMALL}")
    world.assert_all_know(4, int(fault[-1]), found)


def test_the_living_are_told_who_died_in_the_middle_of_a_read(world: World) -> None:
    hints = f"share=no:transport=brigade:{SMALL}"
    assert {told.code for told in world.run(4, "", hints).values()} == {0}
    world.assert_all_know(4, 1, world.run(4, "io.pass:5@1", hints, "read"))
    (world.folder / "files/data").unlink()


@needs_nodes
@pytest.mark.parametrize("fault", ["io.pass:4@1", "io.slot:3@2", "io.meet:9@0"])
def test_of_nodes_with_several_ranks_all_are_told(world: World, fault: str) -> None:
    """A leader, one that is none, and rank 0: ranks 0 and 2 are a node, 1 and 3 another."""
    found = world.run(4, fault, f"transport=simple:writers=2:{SMALL}", nodes=2)
    world.assert_all_know(4, int(fault[-1]), found)


@pytest.mark.all
@pytest.mark.parametrize("way", ["write", "read"])
@pytest.mark.parametrize(
    ("point", "hints"),
    [
        ("io.slot", "share=yes:transport=simple"),
        ("io.slot", "share=no:transport=brigade"),
        ("io.pass", "share=no:transport=simple"),
        ("io.pass", "share=no:transport=brigade"),
    ],
)
@pytest.mark.parametrize("ranks", [2, 5, 16])
def test_any_rank_at_any_step_of_a_call(
    world: World, ranks: int, point: str, hints: str, way: str
) -> None:
    if world.mpi == "mpich" and ranks > 7:
        pytest.skip("MPICH spins: 16 ranks take minutes on two cores")
    size = 262144 // ranks // 1024 * 1024
    world.run(ranks, "", f"{hints}:{SMALL}", size=size)
    for step in [*range(6), *range(7, 200, 9)]:
        dead = step * 3 % ranks
        found = world.run(ranks, f"{point}:{step}@{dead}", f"{hints}:{SMALL}", way, size=size)
        if len(found) == ranks and {told.code for told in found.values()} == {0}:
            assert step > 1
            return
        world.assert_all_know(ranks, dead, found)
    raise AssertionError("it never came to its end")


@pytest.mark.all
@pytest.mark.parametrize("ranks", [2, 3, 7, 16])
@pytest.mark.parametrize("share", ["yes", "no"])
def test_any_rank_at_any_meeting(world: World, share: str, ranks: int) -> None:
    if world.mpi == "mpich" and ranks > 7:
        pytest.skip("MPICH spins: 16 ranks take minutes on two cores")
    for step in range(1, 100):
        dead = step * 5 % ranks
        found = world.run(ranks, f"io.meet:{step}@{dead}", f"share={share}")
        if len(found) == ranks and {told.code for told in found.values()} == {0}:
            assert step > 8
            return
        world.assert_all_know(ranks, dead, found)
    raise AssertionError("it never came to its end")
