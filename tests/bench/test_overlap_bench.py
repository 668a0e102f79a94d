"""`brigade bench overlap` as it runs: small, with the MPI that is here; and its arithmetic."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_world import ENVIRONMENT

from brigade.bench import overlap

needs_mpi = pytest.mark.skipif(not shutil.which("mpicc.openmpi"), reason="no Open MPI")
SMALL = ["--size", "1M", "--barriers", "20", "--step", "100", "--mpicc", "mpicc.openmpi"]
LAUNCHER = ["--", "mpirun.openmpi", "--oversubscribe", "-n", "{n}"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def bench(cache: Path, folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "brigade", "bench", "overlap", "--dir", str(folder), *words],
        env={**os.environ, **ENVIRONMENT, "BRIGADE_CACHE": str(cache), "COLUMNS": "80"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_mpi
def test_every_variant_has_its_turn_in_every_round(cache: Path, tmp_path: Path) -> None:
    report = json.loads(bench(cache, tmp_path, *SMALL, "--rounds", "2", "--json", *LAUNCHER))
    turns = [(sample["round"], sample["variant"]) for sample in report["samples"]]
    assert sorted(turns) == sorted((n, name) for n in range(2) for name in overlap.VARIANTS)
    for sample in report["samples"]:
        assert len(sample["before_us"]) == 20 <= len(sample["within_us"])
        assert len(sample["within_us"]) == len(sample["at_us"])
        assert 0 < sample["returned"] <= sample["done"]
    assert [one["variant"] for one in report["variants"]] == list(overlap.VARIANTS)
    assert list(tmp_path.iterdir()) == [], "nothing is left"


@needs_mpi
def test_the_table_fits_eighty_columns(cache: Path, tmp_path: Path) -> None:
    figure = tmp_path / "figure.png"
    text = bench(cache, tmp_path, *SMALL, "--rounds", "1", "--figure", str(figure), *LAUNCHER)
    lines = text.splitlines()
    assert all(len(line) <= 80 and "…" not in line for line in lines[:6]), text
    assert figure.stat().st_size > 1000


def sample(**other: object) -> dict[str, object]:
    made = {
        "variant": "async",
        "returned": 0.001,
        "done": 0.003,
        "before_us": [100, 100],
        "within_us": [200, 300, 100],
        "at_us": [2000, 2900, 4000],
    }
    return {**made, **other}


def test_barriers_count_until_the_file_is_there() -> None:
    assert overlap.affected(sample()) == [200, 300]
    assert overlap.factor(sample()) == 2.5


def test_where_the_write_ends_with_the_call_all_barriers_count() -> None:
    plain = sample(variant="plain", done=0.001)
    assert overlap.affected(plain) == [200, 300, 100]
