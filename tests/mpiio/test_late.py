"""Files that libbrigade_mpiio opens without MPI are as MPI's own, whatever is asked of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mpi_world import MPIS, compile_mpi, run_mpi

from brigade.paths import native

#: files that MPI has to open after all
WHAT = {
    "asks": 1,
    "alone": 1,
    "shared": 1,
    "turns": 1,
    "refused": 1,
    "many": 4,
    "gone": 0,
    "removed": 1,
    "defaults": 1,
    "hints": 1,
}


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def driver(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).with_name("late_driver.c")
    return compile_mpi(mpi, source, tmp_path_factory.mktemp(mpi) / "driver")


def lines(mpi: str, words: list[str], **environment: str) -> tuple[list[str], str]:
    done = run_mpi(mpi, 2, words, **environment)
    said = sorted(re.findall(r"^rank \d:.*$", done.stdout, re.MULTILINE))
    assert done.returncode == 0 and len(said) == 2, done.stdout + done.stderr
    return said, done.stderr


def under(mpi: str, driver: Path, path: Path, what: str) -> tuple[list[str], str]:
    preload = f"LD_PRELOAD={native('libbrigade_mpiio.so')}"
    words = ["env", preload, str(driver), str(path), what]
    return lines(mpi, words, BRIGADE_MPIIO="verbose")


@pytest.mark.parametrize("what", WHAT)
def test_a_program_sees_what_it_sees_without_it(what, mpi, driver, tmp_path):
    plain, _ = lines(mpi, [str(driver), str(tmp_path / "plain"), what])
    said, report = under(mpi, driver, tmp_path / "under", what)
    assert said == plain
    found = re.search(r"(\d+) files opened without MPI, (\d+) by it later", report)
    assert found and int(found[1]) >= 1 and int(found[2]) == WHAT[what], report


@pytest.mark.parametrize("what", ["differs", "levels"])
def test_what_is_not_the_same_on_all_ranks_is_mpis(what, mpi, driver, tmp_path):
    plain, _ = lines(mpi, [str(driver), str(tmp_path / "plain"), what])
    said, report = under(mpi, driver, tmp_path / "under", what)
    assert said == plain
    assert "files opened without MPI" not in report


def test_all_ranks_hear_that_one_cannot_have_mpi_open_it(mpi, driver, tmp_path):
    said, _ = under(mpi, driver, tmp_path / "file", "full")
    assert len(said) == 2
    for line in said:
        assert " refused=1 set=1 size=100 " in line
