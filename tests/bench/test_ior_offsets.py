"""Where brigade-ior's tasks write and read: as IOR 4.1 (commit 5fcf0ba) did under strace."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from brigade.bench.ior import options

pytestmark = pytest.mark.skipif(not shutil.which("mpicc.openmpi"), reason="no Open MPI")
TRANSFER = 8192


@pytest.fixture(scope="module")
def offsets(tmp_path_factory):
    """offsets(PHASE, WORDS): each rank's offsets, in transfers of 8 KiB."""
    made = tmp_path_factory.mktemp("offsets") / "offsets"
    sources = [Path(__file__).with_name("ior_offsets.c"), options.SOURCES / "offsets.c"]
    folders = [f"-I{options.SOURCES}", f"-I{options.SOURCES.parent}"]
    command = ["mpicc.openmpi", "-g", *folders, *sources, "-o", made]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    def run(phase: str, words: str) -> list[list[int]]:
        command = [made, phase, f"transfer={TRANSFER}", f"block={TRANSFER}", *words.split()]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]

    return run


def test_a_segment_has_a_block_of_each_task_in_turn(offsets):
    found = offsets("write", f"ranks=2 block={2 * TRANSFER} segments=3")
    assert found == [[0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11]]
    found = offsets("write", f"ranks=2 block={2 * TRANSFER} segments=2 own_file=1")
    assert found == [[0, 1, 2, 3]] * 2


def test_transfers_of_a_shared_file_in_random_order_are_drawn_as_by_ior(offsets):
    found = offsets("write", f"ranks=4 block={8 * TRANSFER} random_offset=1 random_seed=7")
    assert found == [
        [23, 8, 25, 22, 20, 15, 19, 27],
        [30, 7, 24, 4, 9, 26, 14, 11, 28, 0],
        [17, 13, 31, 18, 6, 16, 29],
        [5, 2, 21, 10, 1, 3, 12],
    ]
    again = offsets(
        "write", f"ranks=4 block={8 * TRANSFER} random_offset=1 random_seed=7 segments=2"
    )
    assert [row[len(row) // 2 :] for row in again] == [[32 + i for i in row] for row in found]


def test_transfers_of_own_files_in_random_order_are_drawn_as_by_ior(offsets):
    words = f"ranks=3 block={8 * TRANSFER} random_offset=1 random_seed=7 own_file=1"
    assert offsets("write", words) == [
        [5, 2, 6, 4, 0, 7, 1, 3],
        [1, 0, 2, 5, 7, 4, 6, 3],
        [3, 2, 4, 7, 6, 1, 0, 5],
    ]


def test_blocks_at_random_places_are_drawn_as_by_ior(offsets):
    words = f"ranks=2 block={2 * TRANSFER} segments=6 random_offset=2 random_seed=7"
    assert offsets("read", words) == [
        [2, 3, 4, 5, 10, 11, 20, 21, 0, 1, 6, 7],
        [20, 21, 8, 9, 4, 5, 2, 3, 14, 15, 18, 19],
    ]


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("ranks=4 reorder_random=1 reorder_seed=16 offset_tasks=16", [0, 2, 0, 0]),
        ("ranks=4 reorder_random=1 reorder_seed=16 offset_tasks=16 repetition=3", [0, 2, 0, 0]),
        ("ranks=4 reorder_random=1 reorder_seed=-5", [3, 2, 3, 3]),
        ("ranks=4 reorder_random=1 reorder_seed=-5 repetition=3", [0, 0, 1, 2]),
        (
            "ranks=8 tasks_on_node0=2 nodes=4 offset_tasks=2 reorder_random=1 reorder_seed=3",
            [4, 6, 7, 0, 1, 2, 3, 6],
        ),
        ("ranks=8 reorder_random=2 reorder_seed=16", [4, 5, 1, 2, 7, 0, 3, 6]),
        ("ranks=8 reorder=1 tasks_on_node0=2 nodes=4 offset_tasks=3", [6, 7, 0, 1, 2, 3, 4, 5]),
    ],
)
def test_tasks_read_what_others_wrote_as_in_ior(words, read, offsets):
    assert [row[0] for row in offsets("read", words)] == read


def test_what_was_written_is_checked_a_node_further_away(offsets):
    words = "ranks=8 reorder=1 tasks_on_node0=2 nodes=4 offset_tasks=2"
    assert [row[0] for row in offsets("check", words)] == [6, 7, 0, 1, 2, 3, 4, 5]
    assert [row[0] for row in offsets("read", words)] == [4, 5, 6, 7, 0, 1, 2, 3]
