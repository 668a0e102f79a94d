"""Files that libbrigade_mpiio opens without MPI are as MPI's own, whatever is asked of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mpi_world import MPIS, WHEELS, compile_mpi, run_mpi, tools

from brigade.paths import native

#: files that MPI has to open after all
WHAT = {
    "late_driver": {
        "asks": 1,
        "alone": 1,
        "shared": 1,
        "turns": 1,
        "refused": 1,
        "returned": 0,
        "many": 4,
        "worlds": 0,
        "laid": 0,
    },
    "late_odd_driver": {
        "gone": 0,
        "removed": 1,
        "defaults": 1,
        "told": 2,
        "exists": 0,
        "replaced": 0,
        "raised": 0,
        "sizes": 0,
        "denied": 2,
        "moved": 0,
    },
    "straight_driver": {"rows": 0, "ends": 1, "past": 0, "swaps": 0, "views": 0},
    "late_closed_driver": {"both": 3, "ordered": 3},
    "late_hints_driver": {"modes": 0, "given": 0, "views": 1, "set": 2},
}
OPENED = [(name, what) for name, cases in WHAT.items() for what in cases]
#: of a program, and of one that may call MPI from several threads at a time
THREADS: list[dict[str, str]] = [{}, {"LATE_THREADS": "yes"}]
either = pytest.mark.parametrize("threads", THREADS, ids=["one", "several"])


@pytest.fixture(scope="module", params=[*MPIS, *WHEELS])
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def drivers(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, here = tmp_path_factory.mktemp(mpi), Path(__file__).parent
    return {
        name: compile_mpi(mpi, here / f"{name}.c", folder / name, "-I", str(here), "-ldl")
        for name in WHAT
    }


@pytest.fixture
def odd(drivers: dict[str, Path]) -> Path:
    return drivers["late_odd_driver"]


def lines(mpi: str, words: list[str], ranks: int = 2, **environment: str) -> tuple[list[str], str]:
    done = run_mpi(mpi, ranks, words, **environment)
    said = sorted(re.findall(r"^rank \d:.*$", done.stdout, re.MULTILINE))
    assert done.returncode == 0 and len(said) == ranks, done.stdout + done.stderr
    return said, done.stderr


def under(
    mpi: str, driver: Path, path: Path, what: str, **environment: str
) -> tuple[list[str], str]:
    preload = f"LD_PRELOAD={native('libbrigade_mpiio.so')}"
    words = ["env", preload, str(driver), str(path), what]
    return lines(mpi, words, BRIGADE_MPIIO="verbose", **environment)


@either
@pytest.mark.parametrize(("name", "what"), OPENED)
def test_a_program_sees_what_it_sees_without_it(name, what, threads, mpi, drivers, tmp_path):
    driver, opened = drivers[name], WHAT[name][what]
    if threads and what == "many":  # each has memory of its own for what ranks share
        opened = 7
    plain, _ = lines(mpi, [str(driver), str(tmp_path / "plain"), what], **threads)
    said, report = under(mpi, driver, tmp_path / "under", what, **threads)
    assert said == plain
    found = re.search(r"(\d+) files opened without MPI, (\d+) by it later", report)
    assert found and int(found[1]) >= 1 and int(found[2]) == opened, report


@pytest.mark.parametrize(
    ("what", "files", "call"),
    [("asks", 1, "seek"), ("alone", 1, "write"), ("many", 4, "write_shared")],
)
def test_the_call_that_mpi_opened_a_file_for_is_named(what, files, call, mpi, drivers, tmp_path):
    _, report = under(mpi, drivers["late_driver"], tmp_path / "file", what)
    named = re.findall(r"(\d+) of these for MPI_File_(\w+)", report)
    assert named == [(str(files), call)], report


@either
@pytest.mark.parametrize(("what", "opened"), [("modes", 1), ("given", 5)])
def test_mpi_opens_one_file_to_tell_the_hints_of_all_that_are_like_it(
    what, opened, threads, mpi, drivers, tmp_path
):
    driver = drivers["late_hints_driver"]
    _, report = under(mpi, driver, tmp_path / "file", what, **threads)
    assert f" {opened} files opened by MPI to know its hints" in report


@pytest.mark.parametrize(
    ("name", "what"), [("late_hints_driver", "modes"), ("late_driver", "asks")]
)
def test_where_hints_go_by_names_mpi_opens_each_file(name, what, mpi, drivers, tmp_path):
    driver, named = drivers[name], {"MPICH_MPIIO_HINTS": "*.none:cb_nodes=1"}
    plain, _ = lines(mpi, [str(driver), str(tmp_path / "plain"), what], **named)
    said, report = under(mpi, driver, tmp_path / "under", what, **named)
    assert said == plain
    assert "files opened without MPI" not in report


def test_a_file_is_mpis_to_make_where_a_hint_says_how_it_shall_lie(mpi, drivers, tmp_path):
    _, report = under(mpi, drivers["late_driver"], tmp_path / "file", "laid")
    assert " 1 files opened without MPI" in report


@pytest.mark.parametrize("name", ["ROMIO_HINTS", "OMPI_MCA_fs_lustre_stripe_width"])
def test_it_is_where_the_environment_does(name, mpi, drivers, tmp_path):
    driver = drivers["late_driver"]
    given = {name: "/dev/null" if name == "ROMIO_HINTS" else "4"}
    _, report = under(mpi, driver, tmp_path / "file", "returned", **given)
    assert "files opened without MPI" not in report


def test_what_is_not_the_same_on_all_ranks_is_mpis(mpi, odd, tmp_path):
    plain, _ = lines(mpi, [str(odd), str(tmp_path / "plain"), "differs"])
    said, report = under(mpi, odd, tmp_path / "under", "differs")
    assert said == plain
    assert "files opened without MPI" not in report


def test_ranks_may_have_asked_for_different_levels_of_threads(mpi, odd, tmp_path):
    if mpi == "mpich-wheel":
        pytest.skip("MPICH 5.0 itself cannot have ranks of different levels")
    plain, _ = lines(mpi, [str(odd), str(tmp_path / "plain"), "levels"])
    said, report = under(mpi, odd, tmp_path / "under", "levels")
    assert said == plain
    assert " 1 files opened without MPI, 0 by it later" in report


def test_what_mpi_opened_is_found_again_where_the_process_has_gone_on(mpi, odd, tmp_path):
    _, report = under(mpi, odd, tmp_path / "file", "moved")
    assert "writes: 2 calls taken over" in report
    assert "c is another file than MPI has opened" in report


@either
def test_all_ranks_hear_that_one_cannot_have_mpi_open_it(threads, mpi, odd, tmp_path):
    said, _ = under(mpi, odd, tmp_path / "file", "full", **threads)
    assert len(said) == 2
    for line in said:
        assert " refused=1 set=1 size=100 " in line


@either
def test_a_handler_is_told_the_file_that_mpi_could_not_open(threads, mpi, odd, tmp_path):
    said, _ = under(mpi, odd, tmp_path / "file", "rights", **threads)
    assert [line.split(":")[1] for line in said] == [
        " refused=1 told=1 set=1 answered=1 strange=0"
    ] * 2


@pytest.mark.parametrize("nodes", ["yes", "no"])
def test_all_ranks_hear_of_a_sync_that_fails_on_one(nodes, mpi, odd, tmp_path):
    fails = {"BRIGADE_FAULT": "io.fsync:0@0", "BRIGADE_IO": f"*:share={nodes}"}
    said, report = under(mpi, odd, tmp_path / "file", "unsynced", **fails)
    assert [line.split(":")[1] for line in said] == [" class=1 handled=1"] * 2
    assert "files opened without MPI" in report


def test_mpis_own_function_takes_its_handle_for_that_of_a_closed_file(mpi, odd, tmp_path):
    said, _ = under(mpi, odd, tmp_path / "file", "beneath", MPI_LIBRARY=tools(mpi).library)
    assert [line.split(":")[1] for line in said] == [" found=1 class=1 strange=0"] * 2
