"""What fails under libbrigade_mpiio fails as MPI says; what is not for it is done by the MPI."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mpi_world import EITHER_MPI, WHEELS, compile_mpi, run_mpi

from brigade.paths import native


@pytest.fixture(scope="module", params=[*EITHER_MPI, *WHEELS])
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def driver(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).with_name("errors_driver.c")
    return compile_mpi(mpi, source, tmp_path_factory.mktemp(mpi) / "driver", "-ldl")


def run(mpi: str, driver: Path, path: Path, what: str, **environment: str) -> tuple[set[str], str]:
    """What the ranks say of themselves, and what rank 0 reports."""
    command = ["env", f"LD_PRELOAD={native('libbrigade_mpiio.so')}", driver, path, what]
    done = run_mpi(mpi, 2, command, BRIGADE_MPIIO="verbose", **environment)
    said = re.findall(r"^rank \d: (.*)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and len(said) == 2, done.stdout + done.stderr
    return set(said), done.stderr


def test_a_full_disk_is_the_same_error_on_every_rank_and_its_handler_is_called(
    mpi, driver, tmp_path
):
    fault = "io.write:1000000@1"
    said, report = run(mpi, driver, tmp_path / "f", "full", BRIGADE_FAULT=fault)
    assert said == {"no space, success, success; handled 1"}
    assert "at byte 2048576: No space left on device" in report


@pytest.mark.parametrize(
    ("fault", "said", "report"),
    [
        ("io.write:500@1", "no space, success", "at byte 1010000: No space left on device"),
        ("io.eio:0@0", "io, success", "at byte 0: Input/output error"),
        ("io.short:3@1", "success, success", "1000 bytes"),
        ("io.eintr:0@0", "success, success", "1000 bytes"),
        ("io.read:700@1", "success, io", "read /"),
    ],
)
def test_runs_far_apart_fail_alike_on_every_rank(mpi, driver, tmp_path, fault, said, report):
    heard, told = run(mpi, driver, tmp_path / "f", "apart", BRIGADE_FAULT=fault)
    assert heard == {said} and report in told


@pytest.mark.parametrize("hints", ["share=yes", "share=no", "share=no:transport=brigade"])
def test_what_the_file_ends_in_the_middle_of_is_read_up_to_there(mpi, driver, tmp_path, hints):
    said, report = run(mpi, driver, tmp_path / "f", "cut", BRIGADE_IO=f"*:{hints}")
    assert said == {"right, 0 missing, 0 wrong"} and "reads: 1 calls" in report


@pytest.mark.parametrize("what", ["closes", "closes_other"])
def test_a_handler_may_close_the_file_of_a_split_call(mpi, driver, tmp_path, what):
    fault = "io.write:1000000@1"
    said, report = run(mpi, driver, tmp_path / "f", what, BRIGADE_FAULT=fault)
    assert said == {"no space, success, success, 10 bytes"}
    assert "writes: 2 calls" in report and "left to MPI" not in report


@pytest.mark.parametrize(
    ("what", "fault"),
    [
        ("unclosed", "io.close:0@1"),
        ("unclosed_appended", "io.close:0@1"),
        ("unclosed_appended", "io.close:1@1"),  # of what one rank wrote alone
    ],
)
def test_a_quota_that_only_closing_tells_of_is_an_error_of_closing_on_every_rank(
    mpi, driver, tmp_path, what, fault
):
    said, report = run(mpi, driver, tmp_path / "f", what, BRIGADE_FAULT=fault)
    assert said == {"success, success, quota; handled 1, closed"}
    assert ("opened without MPI" in report) == (what == "unclosed")
    assert "Disk quota exceeded" in report


def test_a_count_that_no_form_of_mpi_takes_is_refused_on_every_rank(mpi, driver, tmp_path):
    if mpi != "openmpi":
        pytest.skip("this MPI has forms for large counts")
    said, report = run(mpi, driver, tmp_path / "f", "vast")
    assert said == {"count, count, count, success; handled 3"}
    assert "2 calls left to MPI: another rank cannot" in report


def test_what_one_rank_cannot_read_here_all_read_by_mpi(mpi, driver, tmp_path):
    said, report = run(mpi, driver, tmp_path / "f", "tiles")
    assert said == {"success, right"}
    assert "reads: 1 calls" in report and "1 calls left to MPI: another rank cannot" in report


def test_atomic_mode_is_left_to_mpi(mpi, driver, tmp_path):
    said, report = run(mpi, driver, tmp_path / "f", "atomic")
    assert said == {"success"}
    assert "writes: 1 calls" in report and "1 calls left to MPI: atomic mode" in report


def test_a_communicator_may_be_freed_while_its_file_is_open(mpi, driver, tmp_path):
    said, report = run(mpi, driver, tmp_path / "f", "comm")
    assert said == {"success"}
    assert "writes: 3 calls" in report
