"""Files of OpenSHMEM programs: random calls, as one process would do them (random_calls.c)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pgas_world import program
from shmemio_world import Job, run_job

SEED = os.environ.get("BRIGADE_TEST_SEED", "1")
#: windows of 64 KiB: a call of the whole file is one round of several owners
SMALL = "segment=64K"


def test_puts_that_store_twice_set_no_flag_again(tmp_path: Path) -> None:
    """Else a group takes the answer that another one has had for its own, and waits for ever."""
    twice = str(program("shmemio_stores_twice.so"))
    job = ("shmem", 3)
    assert run_job(job, "shmemio_random_calls", tmp_path, 1, 20, LD_PRELOAD=twice) == []


@pytest.mark.parametrize(
    ("job", "hints", "cases"),
    [
        (("shmem", 3), SMALL, 60),
        (("openmpi", 2), "", 30),
        (("openmpi", 3), "share=no:seam=messages:segment=64K", 30),
        *(
            pytest.param((kind, ranks), hints, 150, marks=pytest.mark.all)
            for kind, most in (("shmem", 6), ("openmpi", 4), ("mpich", 2))
            for ranks in range(1, most + 1)
            for hints in (SMALL, "transport=simple:writers=1", "seam=messages", "share=no")
        ),
    ],
    ids=str,
)
def test_what_calls_ask_for_is_moved_and_the_rest_stays(
    job: Job, hints: str, cases: int, tmp_path: Path
) -> None:
    """Views, datatypes, groups, ways to open, explicit offsets and pointers, together or alone."""
    assert run_job(job, "shmemio_random_calls", tmp_path, SEED, cases, hints=hints) == []
