"""What ranks of one node wrote, those of another see before they read it or write around it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from pgas_world import program
from shmemio_world import Job, run_job

JOB: Job = ("openmpi", 3)
APART = "share=no:segment=64K:stripe=64K"
WINDOWS = f"{APART}:writers=3"  # all that several ranks move goes through those of others
SEAMS = ["messages", "windows"]
BYTES = 3 * 60_000
OLD = b"u" * BYTES
LATE = "shmemio_late_writes.so"
#: "alone" and so on: apart.c
STEPS = ["alone", "alone-published", "twice", "beside", "back", "cut", "changed", "synced"]


def said(folder: Path, steps: list[str], hints: str, **more: str) -> dict[str, list[str]]:
    """By step, what calls that failed said, which all ranks must say alike."""
    for step in steps:
        (folder / step).mkdir()
        if step in ("changed", "synced"):
            (folder / step / "file").write_bytes(OLD)
    lines = run_job(JOB, "shmemio_apart", folder, *steps, hints=hints, **more)
    counts = Counter(line.partition(" ")[::2] for line in lines)
    assert all(n == JOB[1] for n in counts.values()), lines
    return {step: [line for of, line in counts if of == step] for step in steps}


def rows(before: bytes) -> bytes:
    """With what apart.c writes over it."""
    after = bytearray(before)
    for at in range(70_000, 170_000, 1000):
        for rank in range(3):
            after[at + 300 * rank : at + 300 * rank + 100] = b"r" * 100
    return bytes(after)


def alone() -> bytes:
    turn = bytes(100) + b"M" * 100 + bytes(100)
    return rows((turn * (BYTES // 300))[: BYTES - 100])


@pytest.mark.parametrize("seam", SEAMS)
def test_what_waits_in_a_nodes_client_is_neither_missed_nor_comes_too_late(seam, tmp_path):
    lines = said(tmp_path, STEPS, f"{WINDOWS}:seam={seam}", LD_PRELOAD=str(program(LATE)))
    assert all(not line for line in lines.values()), lines
    for step, whole in {
        "alone": alone(),
        "alone-published": alone(),
        "twice": rows(b"a" * BYTES),
        "beside": b"a" * BYTES + b"z" * 3000,
        "back": b"a" * BYTES,
        "cut": b"s" * 500,
        "changed": rows(OLD),
        "synced": b"v" * BYTES,
    }.items():
        assert (tmp_path / step / "file").read_bytes() == whole, step


def test_who_had_nothing_to_write_looks_again_as_well(tmp_path):
    hints = f"{APART}:transport=direct:seam=messages"
    late = str(program(LATE))
    assert (
        run_job(JOB, "shmemio_apart", tmp_path, "looks-again", hints=hints, LD_PRELOAD=late) == []
    )
    assert (tmp_path / "file").read_bytes() == b"n" * BYTES


def test_a_node_that_cannot_show_its_bytes_fails_the_call_that_needs_them(tmp_path):
    """And no other: who need not does not close the file."""
    closing = {"BRIGADE_FAULT": "io.close:0@1"}
    lines = said(tmp_path, STEPS, f"{WINDOWS}:seam=messages", **closing)
    first = {step: line[0] for step, line in lines.items() if line}
    assert {step: line.partition(":")[0] for step, line in first.items()} == {
        "alone": "read",
        "alone-published": "read",
        "twice": "second",
        "beside": "close",
        "back": "first",
        "cut": "set_size",
        "changed": "rows",
        "synced": "sync",
    }
    for line in first.values():
        assert re.match(r"[\w ]+: 16 \(-122\) rank 1 offset -1 /file: cannot close", line)


def test_a_copy_that_cannot_be_shown_is_not_opened(tmp_path):
    (tmp_path / "file").write_bytes(OLD)
    closing = {"BRIGADE_FAULT": "io.close:0@0"}
    hints = f"{WINDOWS}:seam=messages"
    lines = run_job(JOB, "shmemio_apart", tmp_path, "changed", hints=hints, **closing)
    assert len(lines) == 3 and lines[0].startswith("changed open: 16 (-122) rank 0 ")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == OLD
