"""The program of `brigade bench overlap` and `interfere`: what it is told, and says of failures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from mpi_world import ENVIRONMENT

from brigade.bench import overlap
from brigade.bench.checkpoint import program
from brigade.bench.drivers.pynamic import MARK

pytestmark = pytest.mark.skipif(not shutil.which("mpicc.openmpi"), reason="no Open MPI")
MPIRUN = ["mpirun.openmpi", "--oversubscribe"]
HINTS = {"sync": "sync=yes", "async": overlap.behind(overlap.Settings(Path(), (), 2, 4096), 1.1)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = overlap.words(["mpicc.openmpi"])
    return program.compiled(tmp_path_factory.mktemp("made"), "overlap", words, overlap.SOURCES)


def turn(mode: str, barriers: int = 5) -> str:
    return f"0 {mode} {HINTS.get(mode, 'sync=yes')} 4096 0 {barriers} 0 0\n"


def heard(command: list[object], **variables: str) -> list[dict[str, object]]:
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **ENVIRONMENT, **variables}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return [json.loads(x.partition(MARK)[2]) for x in done.stdout.splitlines() if MARK in x]


def test_the_schedule_need_be_seen_by_the_first_rank_alone(made: Path, tmp_path: Path) -> None:
    schedule, file = tmp_path / "schedule", tmp_path / "file"
    schedule.write_text(turn("sync"))
    there = ["-n", "1", made, schedule, file]
    said = heard([*MPIRUN, *there, ":", "-n", "1", made, tmp_path / "nowhere", file])
    assert [one.get("turn") for one in said] == [None, 0]
    (failed,) = heard([*MPIRUN, "-n", "1", made, tmp_path / "nowhere", file])
    assert failed["failed"] == f"{tmp_path / 'nowhere'}: cannot be read"


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_nothing_of_a_file_in_parts_is_left_when_its_turn_is_over(
    mode: str, made: Path, tmp_path: Path
) -> None:
    schedule, folder = tmp_path / "schedule", tmp_path / "files"
    schedule.write_text(turn(mode))
    folder.mkdir()
    command = [*MPIRUN, "-n", "2", made, schedule, folder / "file"]
    said = heard(command, BRIGADE_IO="*:layout=parts:writers=2")
    assert (said[-1]["turn"], list(folder.iterdir())) == (0, [])


def test_no_step_of_a_long_turn_is_dropped(made: Path, tmp_path: Path) -> None:
    schedule = tmp_path / "schedule"
    schedule.write_text(turn("plain", barriers=60000))
    said = heard([made, schedule, tmp_path / "file"])
    assert [len(said[1][key]) for key in ("before_us", "within_us", "at_us")] == [60000] * 3


@pytest.mark.parametrize("mode", ["plain", "fsync", "direct", "sync", "async"])
def test_a_write_that_fails_says_where_and_why(mode: str, made: Path, tmp_path: Path) -> None:
    schedule, folder = tmp_path / "schedule", tmp_path / 'no "folder"'
    schedule.write_text(turn(mode))
    said = heard([*MPIRUN, "-n", "2", made, schedule, folder / "file"])
    failed = [str(one["failed"]) for one in said if "failed" in one]
    assert failed, said
    for one in failed:
        assert str(folder) in one and "No such file or directory" in one


@pytest.mark.parametrize("mode", ["plain", "fsync"])
def test_a_rank_that_fails_alone_ends_the_job(mode: str, made: Path, tmp_path: Path) -> None:
    schedule, file = tmp_path / "schedule", tmp_path / "file"
    schedule.write_text(turn(mode))
    (tmp_path / "file.1").mkdir()
    said = heard([*MPIRUN, "-n", "2", made, schedule, file])
    failed = [one for one in said if "failed" in one]
    assert failed == [{"rank": 1, "failed": f"{file}.1: Is a directory"}], said
