"""What opening and publishing a file asks the file system for by name: on a shared one each such
call is a request, or two, which all ranks wait for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from store_world import MIB, calls_by_name, compile_alone, words

#: calls that look a name up
CALLS = "openat,statx,newfstatat,lstat,stat,readlink,access,faccessat2,rename,renameat2,unlink"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_alone(tmp_path_factory.mktemp("alone") / "driver")


def lookups(alone: Path, path: Path) -> list[str]:
    """Of the last part of a name, of the file, of what lies beside it, in order: call and name."""
    log = path.parent.parent / "log"
    command = ["strace", "-f", "-o", log, "-e", f"trace={CALLS}", alone]
    subprocess.run([*command, *words(path, "create", "", MIB, 1, 3)], check=True)
    return [f"{call} {name or '.'}" for call, name in calls_by_name(log, path.parent)]


def folder_for(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


def test_a_new_file_is_looked_up_once_to_open_it_and_once_to_publish_it(
    alone: Path, tmp_path: Path
):
    assert lookups(alone, folder_for(tmp_path) / "f") == [
        "statx f",
        "openat .",  # what dead jobs have left
        "openat .f.brg",
        "statx f",
        "openat .f.brg.sums",
        "openat .",  # to sync it once names have changed
        "rename .f.brg.sums",
        "rename .f.brg",
    ]


def test_of_one_that_is_there_what_is_replaced_is_asked_for_as_well(alone: Path, tmp_path: Path):
    path = folder_for(tmp_path) / "f"
    subprocess.run([alone, *words(path, "create", "", MIB, 1, 2)], check=True)
    found = lookups(alone, path)
    assert found.count("statx f") == 2
    assert found.count("openat f.sums") == 2  # is it ours; what is in it
    assert "readlink f" not in found
