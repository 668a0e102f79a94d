"""What a rank needs: two segments whatever is written, and nothing for holes."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi_world import EITHER_MPI, MPIS, compile_mpi, run_mpi

MIB = 1 << 20
#: the library's own code and tables, a thread's stack, MPI's buffers on first use
BESIDE = 2 * MIB


class World:
    def __init__(self, mpi: str, folder: Path) -> None:
        self.mpi = mpi
        here = Path(__file__).parent
        self.lean = compile_mpi(mpi, here / "lean.c", folder / "lean")
        self.far = compile_mpi(mpi, here / "far.c", folder / "far")

    def output(self, ranks: int, *command: str | Path | int) -> str:
        done = run_mpi(self.mpi, ranks, [str(word) for word in command])
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module", params=MPIS)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(request.param, tmp_path_factory.mktemp(f"lean_{request.param}"))


def assert_lean(
    world: World, folder: Path, ranks: int, size: int, piece: int, segment_mib: int, hints: str
) -> None:
    hints = f"sync=no:segment={segment_mib}M:{hints}"
    grown = int(world.output(ranks, world.lean, folder / "file", hints, size, piece))
    print(f"{ranks} ranks of {size} bytes in pieces of {piece}, {hints}: {grown} bytes")
    assert grown <= 2 * segment_mib * MIB + BESIDE


@pytest.mark.parametrize("size", [1 << 10, pytest.param(1 << 20, marks=pytest.mark.all), 32 << 20])
@pytest.mark.parametrize("share", ["share=yes", "share=no:transport=brigade"])
def test_a_rank_needs_two_segments(world: World, tmp_path: Path, size: int, share: str):
    for piece in (min(size, 1 << 10), size):
        assert_lean(world, tmp_path, 3, size, piece, 1, share)


def test_a_small_file_in_short_runs_takes_four_small_windows_whatever_the_segment(
    world, tmp_path: Path
):
    hints = "sync=no:segment=16M"
    grown = int(world.output(4, world.lean, tmp_path / "file", hints, 8 * MIB, 1 << 10))
    print(f"32 MiB of 4 ranks in pieces of 1 KiB: {grown} bytes")
    assert grown <= 4 * (MIB // 2 * 9 // 8) + BESIDE


@pytest.mark.all
@pytest.mark.parametrize("piece", [64 << 10, 4 << 30])
def test_it_needs_no_more_for_4_gib(world: World, tmp_path: Path, piece: int):
    assert_lean(world, tmp_path, 2, 4 << 30, piece, 4, "checksums=no")


@pytest.mark.all
@pytest.mark.parametrize("ranks", [2, 8, 16])
def test_it_needs_no_more_for_many_ranks(world: World, tmp_path: Path, ranks: int):
    if world.mpi == "mpich" and ranks > 8:
        pytest.skip("MPICH spins: 16 ranks take minutes on two cores")
    for size in (1 << 10, 256 << 20 if ranks < 4 else 32 << 20):
        for piece in (1 << 10, size):
            assert_lean(world, tmp_path, ranks, size, piece, 4, "share=yes")


@pytest.mark.parametrize("world", EITHER_MPI, indirect=True)
@pytest.mark.parametrize(
    "hints", ["transport=simple", "transport=direct:segment=64K:stripe=64K:writers=3", "share=no"]
)
def test_holes_cost_neither_memory_nor_time(world: World, tmp_path: Path, hints: str):
    """Were holes walked, eight tebibytes would be hundreds of thousands of epochs."""
    hints = f"sync=no:checksums=no:{hints}"
    told = world.output(3, world.far, tmp_path / "far", hints, 100, 1 << 43)
    assert told.startswith("ok ")
    assert (tmp_path / "far").stat().st_size > 1 << 42
