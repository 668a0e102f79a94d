"""Whatever ranks write, however it is moved: the file is the one that a single process would have
written, and any number of ranks reads it back. Cases are random and written down in one line each
(io_case.h); `make check` has the same few each time, @all thousands from a new seed
(BRIGADE_TEST_SEED repeats one).
"""

from __future__ import annotations

import os
import random
import secrets
from pathlib import Path

import pytest
from io_cases import RANKS, case, driver_of, make
from mpi_world import MPIS

SEED = os.environ.get("BRIGADE_TEST_SEED") or str(secrets.randbelow(10**9))


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def driver(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return driver_of(mpi, tmp_path_factory.mktemp(mpi))


@pytest.mark.parametrize("world", range(3))
def test_the_file_is_that_of_one_process(mpi: str, driver: Path, tmp_path: Path, world: int):
    ranks = RANKS[mpi][world]
    pick = random.Random(f"{ranks}")
    make(mpi, driver, tmp_path, ranks, [case(pick, ranks) for _ in range(25)])


@pytest.mark.all
@pytest.mark.parametrize("chunk", range(20))
def test_a_thousand_more_are_too(mpi: str, driver: Path, tmp_path: Path, chunk: int):
    ranks = RANKS[mpi][chunk % 3 + 1]
    pick = random.Random(f"{SEED} {chunk}")
    try:
        make(mpi, driver, tmp_path, ranks, [case(pick, ranks) for _ in range(50)])
    except BaseException:
        print(f"BRIGADE_TEST_SEED={SEED} repeats it")
        raise
