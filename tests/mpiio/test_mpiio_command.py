"""`brigade mpiio` says what is wrong before a program runs without it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from brigade.paths import native_dir

SAYS = ["sh", "-c", 'echo "$BRIGADE_MPIIO $BRIGADE_IO"']


def brigade(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "brigade", *words]
    env = {**os.environ, **environment}
    return subprocess.run(command, text=True, capture_output=True, env=env)


@pytest.mark.parametrize(
    ("hints", "says"),
    [
        ("writers=8", "BRIGADE_IO, entry writers=8: it should read PATTERN:hint=value"),
        ("*.a:writers=8,*.b:writters=8", "BRIGADE_IO, entry *.b: "),
        ("*.a:writers=many", "BRIGADE_IO, entry *.a: "),
    ],
)
def test_hints_that_cannot_be_read_are_refused(hints, says):
    for done in (
        brigade("mpiio", "--hints", hints, "--", "echo", "ran"),
        brigade("mpiio", "--", "echo", "ran", BRIGADE_IO=hints),
    ):
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr


def test_hints_that_are_right_go_on_to_the_program():
    hints = "*.a:writers=8:stripe=4M,*:checksums=no"
    done = brigade("mpiio", "--hints", hints, "--", *SAYS, BRIGADE_IO="writers=8")
    assert (done.returncode, done.stdout) == (0, f" {hints}\n"), done.stderr


def test_what_is_switched_off_stays_off_with_a_report():
    assert brigade("mpiio", "--report", "--", *SAYS).stdout == "verbose \n"
    assert brigade("mpiio", "--report", "--", *SAYS, BRIGADE_MPIIO="off").stdout == "off \n"


@pytest.mark.parametrize("command", ["mpiio", "buffer"])
@pytest.mark.parametrize("name", ["a b", "a:b"])
def test_a_library_that_cannot_be_preloaded_is_refused(command, name, tmp_path):
    folder = tmp_path / name
    folder.symlink_to(native_dir())
    done = brigade(command, "--", "echo", "ran", BRIGADE_NATIVE=str(folder))
    assert (done.returncode, done.stdout) == (3, "")
    assert "cannot be preloaded: LD_PRELOAD ends a name at a blank or a colon" in done.stderr


def test_a_library_that_cannot_be_loaded_is_said_in_a_line(tmp_path):
    for path in native_dir().iterdir():
        (tmp_path / path.name).symlink_to(path.absolute())
    (tmp_path / "libbrigade_mpiio.so").unlink()
    (tmp_path / "libbrigade_mpiio.so").write_text("no library")
    done = brigade("mpiio", "--hints", "*:writers=8", "--", *SAYS, BRIGADE_NATIVE=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"brigade: cannot load {tmp_path}/libbrigade_mpiio.so: ")
    assert len(done.stderr.splitlines()) == 1
