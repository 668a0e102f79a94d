"""Pieces that lie far apart are read by their rank itself, and all the same fail alike."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest
from mpi_world import compile_mpi, needs_nodes, on_nodes, run_mpi

RANKS = 6
OWN, WINDOWS = "each rank moves its own bytes", "window: "


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apart")
    return compile_mpi("openmpi", Path(__file__).with_name("apart.c"), folder / "apart")


def read(
    program: Path, folder: Path, hints: str, whose: str, pitch: int, nodes: int = 0, **more: str
) -> tuple[set[str], str]:
    """What the ranks say, and what the file does."""
    words = on_nodes(nodes, [program, folder / "file", hints, whose, str(pitch)])
    done = run_mpi("openmpi", RANKS, words, **more)
    said = re.findall(r"^rank \d: (.*)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and len(said) == RANKS, done.stdout + done.stderr
    return set(said), done.stdout.partition("explained: ")[2]


@pytest.mark.parametrize(
    ("whose", "pitch", "how"),
    [
        ("all", 8000, OWN),  # each knows by itself
        ("all", 2000, WINDOWS),
        ("own", 8000, OWN),  # known when they have met: 48,000 would do before
        ("own", 2000, WINDOWS),
    ],
)
def test_what_is_in_memory_is_read_piece_by_piece_if_windows_were_mostly_holes(
    apart: Path, tmp_path: Path, whose: str, pitch: int, how: str
) -> None:
    said, explained = read(apart, tmp_path, "sync=no", whose, pitch)
    assert said == {"right"} and how in explained


@pytest.mark.parametrize("hints", ["transport=simple", "writers=2", "verify=yes"])
@pytest.mark.parametrize("whose", ["all", "own"])
def test_who_asks_for_windows_or_whole_blocks_gets_them(
    apart: Path, tmp_path: Path, whose: str, hints: str
) -> None:
    said, explained = read(apart, tmp_path, hints, whose, 8000)
    assert said == {"right"} and WINDOWS in explained


@pytest.mark.parametrize("whose", ["all", "own"])
def test_one_rank_that_cannot_read_is_everybodys_error(
    apart: Path, tmp_path: Path, whose: str
) -> None:
    said, _ = read(apart, tmp_path, "sync=no", whose, 8000, BRIGADE_FAULT="io.read:400@3")
    offset = (19 * RANKS + 3) * 8000 if whose == "all" else 3 * (512 << 10) + 19 * 8000
    assert said == {f"error {-errno.EIO} of rank 3 at byte {offset}"}


@needs_nodes
@pytest.mark.parametrize("layout", ["shared", "parts"])
def test_parts_and_nodes_have_the_same_bytes(apart: Path, tmp_path: Path, layout: str) -> None:
    for whose in ("all", "own"):
        said, _ = read(apart, tmp_path, f"layout={layout}", whose, 8000, nodes=2)
        assert said == {"right"}
