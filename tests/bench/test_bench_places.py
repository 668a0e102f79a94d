"""Benchmarks write and remove files of their own alone, whatever the folder is called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_world import ENVIRONMENT

pytestmark = pytest.mark.skipif(not shutil.which("mpicc.openmpi"), reason="no Open MPI")
SHORT = {
    "overlap": ["--size", "64k", "--barriers", "10", "--step", "0", "--rounds", "1"],
    "interfere": ["--size", "64k", "--barriers", "10", "--step", "0", "--rounds", "1"],
    "checkpoint": ["--pattern", "strided", "--record", "1k", "--rounds", "1"],
    "align": ["--header", "256", "--block", "64k", "--rounds", "1"],
    "ior": ["-a", "POSIX,LAMINAR", "-b", "64k", "-t", "64k"],
}
MORE = {
    "overlap": ["--variants", "plain,sync"],
    "interfere": ["--variants", "plain,async"],
    "checkpoint": ["--variants", "brigade,posix-shared,posix-fpp", "--publish"],
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def measure(kind: str, cache: Path, folder: Path, others: list[Path]) -> None:
    """`brigade bench KIND` in a folder whose name, cut short, is one of the others."""
    folder.mkdir()
    for other in others:
        other.write_text("the user's own")
    words = [*SHORT[kind], *MORE.get(kind, []), "-n", "2", "--mpicc", "mpicc.openmpi"]
    done = subprocess.run(
        [sys.executable, "-m", "brigade", "bench", kind, "--dir", str(folder), *words],
        env={**os.environ, **ENVIRONMENT, "BRIGADE_CACHE": str(cache)},
        cwd="/", capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(folder.parent.iterdir()) == sorted([folder, *others])
    assert {other.read_text() for other in others} == {"the user's own"}
    assert list(folder.iterdir()) == [], "nothing is left"


@pytest.mark.parametrize("kind", SHORT)
def test_a_folder_with_a_blank_in_its_name_is_the_one_that_is_used(
    kind: str, cache: Path, tmp_path: Path
) -> None:
    others = [tmp_path / name for name in ("a", "a.0", "a.sums", "a.new")]
    measure(kind, cache, tmp_path / "a b", others)


def test_a_folder_with_an_at_in_its_name_is_no_list_of_files(cache: Path, tmp_path: Path) -> None:
    measure("ior", cache, tmp_path / "me@here", [tmp_path / name for name in ("me.a0", "me.a1")])
