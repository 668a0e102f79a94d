"""Collective writing and reading by put and get, through views and datatypes of memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pgas_world import Ground, run_on

SEED = os.environ.get("BRIGADE_TEST_SEED", "1")


@pytest.mark.parametrize(
    "ground",
    [
        Ground("single"),
        Ground("windows", "openmpi", 3),
        *(
            pytest.param(Ground(*where), marks=pytest.mark.all)
            for where in (
                ("windows", "mpich", 2),
                ("apart", "openmpi", 4),
                ("apart", "mpich", 2),
                ("shmem", "", 3),
            )
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("window", ["4096", pytest.param("1048576", marks=pytest.mark.all)])
def test_what_views_show_is_written_and_read_and_the_rest_stays(
    ground: Ground, tmp_path: Path, window: str
) -> None:
    words = [str(tmp_path), window, SEED, "60"]
    assert run_on(ground, "pgas_onesided_views", *words).startswith("ok")
