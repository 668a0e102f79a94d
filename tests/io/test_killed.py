"""A rank is killed at some step: those that live are told the same, soon, whoever it was."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from mpi_world import MPIS, compile_mpi, needs_nodes, on_nodes, run_mpi

SOURCE = Path(__file__).with_name("killed_driver.c")
OWNERDEAD = -130
KILLED, ABORTED, HUNG = 137, 134, 142
BOUND_S = 5.0

# UCX, under Debian's MPICH, ends a process that has a large message under way with one that died:
# by its rendezvous, in which one side copies from the other's memory, or puts into it over TCP and
# waits for its word. Without it nobody is ended.
NO_RENDEZVOUS = "inf"

# How Open MPI's ranks on one machine speak as those of different machines do.
TCP = {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo"}

# A launcher ends the whole job when one process dies; behind a shell it does not hear of it, until
# all have ended. `ended.RANK` is the exit code: 142 of one that hung.
SHELL = """
folder=$1 ranks=$2 rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; shift 2
"$@"
echo $? > "$folder/new.end.$rank" && mv "$folder/new.end.$rank" "$folder/ended.$rank"
while [ $(ls "$folder" | grep -c ended) -lt $ranks ]; do sleep 0.05; done
"""


class Told(NamedTuple):
    code: int
    failed_rank: int
    offset: int
    path: str


class Job(NamedTuple):
    """What ranks were told, how each ended, and what they and the launcher wrote."""

    ranks: int
    told: dict[int, Told]
    ended: dict[int, int]
    said: str

    @property
    def went_through(self) -> bool:
        return [told.code for told in self.told.values()] == [0] * self.ranks

    def assert_all_know(self, dead: int) -> None:
        living = [rank for rank in range(self.ranks) if rank != dead]
        assert self.ended == {dead: KILLED, **dict.fromkeys(living, 0)}, self
        assert sorted(self.told) == sorted(living), self
        assert {(told.code, told.failed_rank) for told in self.told.values()} == {(OWNERDEAD, dead)}
        assert len(set(self.told.values())) == 1, self.told


class World:
    def __init__(self, mpi: str, folder: Path) -> None:
        self.mpi, self.folder = mpi, folder
        self.driver = compile_mpi(mpi, SOURCE, folder / "driver")
        self.data = folder / "files/data"

    def run(
        self,
        ranks: int,
        fault: str,
        hints: str,
        way: str = "write",
        *extra: str,
        size: int = 65536,
        nodes: int = 0,
        rendezvous: str = NO_RENDEZVOUS,
        tcp: bool = False,
    ) -> Job:
        """A job in which nobody is told late."""
        place = self.folder / "files"
        place.mkdir(exist_ok=True)
        for kind in ("told", "new", "ended"):
            for old in place.glob(f"{kind}.*"):
                old.unlink()
        command: list[str | Path] = ["sh", "-c", SHELL, "sh", place, str(ranks)]
        command += [self.driver, place, way, hints, str(size), *extra]
        environment = {"BRIGADE_FAULT": fault} if fault else {}
        environment |= TCP if tcp else {}
        done = run_mpi(
            self.mpi, ranks, on_nodes(nodes, command), UCX_RNDV_THRESH=rendezvous, **environment
        )
        told = {}
        for path in place.glob("told.*"):
            code, rank, offset, seconds, *name = path.read_text().rstrip("\n").split(" ")
            assert float(seconds) < BOUND_S, path.read_text()
            told[int(path.suffix[1:])] = Told(int(code), int(rank), int(offset), " ".join(name))
        ended = {int(path.suffix[1:]): int(path.read_text()) for path in place.glob("ended.*")}
        return Job(ranks, told, dict(sorted(ended.items())), done.stdout + done.stderr)


@pytest.fixture(scope="module", params=MPIS)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(request.param, tmp_path_factory.mktemp(f"killed_{request.param}"))


@pytest.mark.parametrize("share", ["yes", "no"])
@pytest.mark.parametrize(("step", "dead"), [(4, 0), (9, 2)])
def test_the_living_are_told_who_died_at_a_meeting(
    world: World, share: str, step: int, dead: int
) -> None:
    world.run(4, f"io.meet:{step}@{dead}", f"share={share}").assert_all_know(dead)
    assert not world.data.exists()


def test_the_living_are_told_who_died_while_the_first_file_was_opened(world: World) -> None:
    world.run(4, "io.join:0@2", "share=yes").assert_all_know(2)
    world.run(4, "io.join:1@1", "share=no").assert_all_know(1)


@needs_nodes
@pytest.mark.parametrize("fault", ["io.join:0@1", "io.join:0@2", "io.join:1@0"])
def test_of_nodes_with_several_ranks_all_are_told_of_a_death_before_leaders_are_tied(
    world: World, fault: str
) -> None:
    world.run(4, fault, "share=yes", nodes=2).assert_all_know(int(fault[-1]))


def test_of_two_ranks_the_other_one_is_told(world: World) -> None:
    world.run(2, "io.meet:6@1", "share=no").assert_all_know(1)


def test_a_process_that_the_dead_rank_has_forked_does_not_hide_its_death(world: World) -> None:
    world.run(4, "io.meet:7@2", "share=no", "fork").assert_all_know(2)


@pytest.mark.parametrize("share", ["no", pytest.param("yes", marks=pytest.mark.all)])
def test_a_rank_that_computes_is_not_taken_for_dead_and_is_told_later(
    world: World, share: str
) -> None:
    hints = f"share={share}"
    world.run(4, "io.meet:7@2", hints, "write", "1").assert_all_know(2)
    job = world.run(4, "", hints, "write", "1")
    assert job.went_through, job
    world.data.unlink()


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
    world.run(4, fault, f"{hints}:{SMALL}").assert_all_know(int(fault[-1]))


@pytest.mark.parametrize("fault", ["io.pass:0@2", "io.pass:1@0", "io.pass:4@0", "io.meet:3@3"])
def test_the_living_are_told_who_died_while_few_bytes_were_carried_to_rank_0(
    world: World, fault: str
) -> None:
    world.run(4, fault, "share=no", size=8192).assert_all_know(int(fault[-1]))
    assert not world.data.exists()


@pytest.mark.parametrize("fault", ["io.pass:0@0", "io.pass:1@0", "io.pass:1@3"])
def test_the_living_are_told_who_died_while_few_bytes_came_from_rank_0(
    world: World, fault: str
) -> None:
    assert world.run(4, "", "share=no", size=8192).went_through
    world.run(4, fault, "share=no", "read", size=8192).assert_all_know(int(fault[-1]))
    world.data.unlink()


@pytest.mark.parametrize("share", ["yes", "no"])
@pytest.mark.parametrize("step", [1, 3, 6, 11])
def test_the_living_are_told_who_died_while_ranks_wrote_in_turns(
    world: World, share: str, step: int
) -> None:
    """Every call's pieces overlap: the first is done once more in turns, the others are so at
    once."""
    hints = f"share={share}:transport=simple:{SMALL}"
    world.run(4, f"io.slot:{step}@{step % 3}", hints, "overlap").assert_all_know(step % 3)


def test_the_living_are_told_who_died_in_the_middle_of_a_read(world: World) -> None:
    hints = f"share=no:transport=brigade:{SMALL}"
    assert world.run(4, "", hints).went_through
    world.run(4, "io.pass:5@1", hints, "read").assert_all_know(1)
    world.data.unlink()


@needs_nodes
@pytest.mark.parametrize("fault", ["io.pass:4@1", "io.slot:3@2", "io.meet:9@0"])
def test_of_nodes_with_several_ranks_all_are_told(world: World, fault: str) -> None:
    """A leader, one that is none, and rank 0: ranks 0 and 2 are a node, 1 and 3 another."""
    job = world.run(4, fault, f"transport=simple:writers=2:{SMALL}", nodes=2)
    job.assert_all_know(int(fault[-1]))


@pytest.mark.all
@needs_nodes
@pytest.mark.parametrize("world", ["openmpi"], indirect=True)
def test_a_word_of_a_death_arrives_over_a_connection_that_is_yet_to_be_made(world: World) -> None:
    """Ranks 0 and 4 are a node; MPI has had little reason to connect 4 with 1, 2 and 3."""
    world.run(8, "io.join:0@0", "", nodes=4, tcp=True).assert_all_know(0)


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.parametrize("world", ["openmpi"], indirect=True)
def test_writing_to_a_connection_that_ended_ends_nobody(world: World) -> None:
    """Without care of ours SIGPIPE ends a survivor in some of these jobs. Open MPI may hang itself:
    docs/explanation/laminar.md."""
    whole = 0
    for step in range(24):
        hints = f"share=no:transport=simple:writers=1:{SMALL}"
        job = world.run(4, f"io.slot:{8 + step % 6}@0", hints, tcp=True)
        assert not world.data.exists()
        assert set(job.ended.values()) <= {0, KILLED, HUNG}, job
        if HUNG not in job.ended.values():
            job.assert_all_know(0)
            whole += 1
    assert whole >= 12, "nothing is seen of jobs that hang"


@pytest.mark.parametrize("world", ["mpich"], indirect=True)
@pytest.mark.parametrize("step", [5, 16])
def test_whom_ucx_ends_has_published_nothing_and_whom_it_does_not_is_told(
    world: World, step: int
) -> None:
    dead, hints = step % 2, f"share=no:transport=simple:{SMALL}"
    job = world.run(2, f"io.pass:{step}@{dead}", hints, size=131072, rendezvous="auto")
    assert not world.data.exists()
    if job.ended.get(1 - dead) == ABORTED:
        assert "libuct" in job.said and not job.told, job
    else:
        job.assert_all_know(dead)


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
    # Most messages has the simple way of 5 ranks, read: 3 calls of 16 windows of 16 KiB, 84 times
    # from or to another rank, each time a question, a header and a body: 252 on a rank.
    for step in [*range(6), *range(7, 270, 9)]:
        dead = step * 3 % ranks
        job = world.run(ranks, f"{point}:{step}@{dead}", f"{hints}:{SMALL}", way, size=size)
        if job.went_through:
            assert step > 1
            return
        job.assert_all_know(dead)
    raise AssertionError("it never came to its end")


@pytest.mark.all
@pytest.mark.parametrize("ranks", [2, 3, 7, 16])
@pytest.mark.parametrize("share", ["yes", "no"])
def test_any_rank_at_any_meeting(world: World, share: str, ranks: int) -> None:
    if world.mpi == "mpich" and ranks > 7:
        pytest.skip("MPICH spins: 16 ranks take minutes on two cores")
    for step in range(1, 100):
        dead = step * 5 % ranks
        job = world.run(ranks, f"io.meet:{step}@{dead}", f"share={share}")
        if job.went_through:
            assert step > 8
            return
        job.assert_all_know(dead)
    raise AssertionError("it never came to its end")
