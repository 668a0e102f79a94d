"""What a rank has written by itself it reads in the next collective call."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mpi_world import MPIS, WHEELS, compile_mpi, run_mpi

from brigade.paths import native

HERE = Path(__file__).parent
RANKS = 3  # two read their own
FOUND = [" failed=0 failed=0"] * RANKS
FOUND[1] = " failed=0 count=64000 same=1" * 2


@pytest.fixture(scope="module", params=[*MPIS, *WHEELS])
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def driver(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp(mpi) / "driver"
    return compile_mpi(mpi, HERE / "own_bytes_driver.c", target, "-I", str(HERE))


def found(mpi: str, driver: Path, path: Path, how: str, **environment: str) -> list[str]:
    preload = f"LD_PRELOAD={native('libbrigade_mpiio.so')}"
    words = ["env", preload, str(driver), str(path), how]
    done = run_mpi(mpi, RANKS, words, BRIGADE_MPIIO="verbose", **environment)
    assert done.returncode == 0 and "reads: 2 calls taken over" in done.stderr, done
    return [line.split(":")[1] for line in sorted(re.findall(r"rank \d:[ =\w]*", done.stdout))]


@pytest.mark.parametrize("how", ["at", "begun", "shared", "ordered"])
def test_a_collective_call_reads_what_the_rank_wrote_alone(how, mpi, driver, tmp_path):
    assert found(mpi, driver, tmp_path / "file", how) == FOUND


@pytest.mark.parametrize("how", ["at", "begun"])
def test_it_does_on_several_nodes(how, mpi, driver, tmp_path):
    assert found(mpi, driver, tmp_path / "file", how, BRIGADE_IO="*:share=no") == FOUND


def test_other_nodes_are_shown_it_before_they_read(mpi, driver, tmp_path):
    closing = {"BRIGADE_IO": "*:share=no", "BRIGADE_FAULT": "io.close:0@1"}
    for line in found(mpi, driver, tmp_path / "file", "at", **closing):
        assert line.startswith(" failed=1")
