"""`brigade bench interfere` as it runs: small, with the MPI that is here; and its arithmetic."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_world import ENVIRONMENT

from brigade.bench import interfere, overlap

needs_mpi = pytest.mark.skipif(not shutil.which("mpicc.openmpi"), reason="no Open MPI")
SMALL = ["--barriers", "20", "--step", "100", "--rounds", "1", "--mpicc", "mpicc.openmpi"]
LAUNCHER = ["--", "mpirun.openmpi", "--oversubscribe", "-n", "{n}"]


def bench(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    cache = folder.parent / "cache"
    return subprocess.run(
        [sys.executable, "-m", "brigade", "bench", "interfere", "--dir", str(folder), *words],
        env={**os.environ, **ENVIRONMENT, "BRIGADE_CACHE": str(cache), "COLUMNS": "80"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("interfere") / "files"
    found.mkdir()
    return found


@needs_mpi
def test_every_way_of_writing_has_both_calls_in_all_phases(folder: Path) -> None:
    done = bench(folder, *SMALL, "-n", "2", "--size", "100k,1M", "--json", *LAUNCHER)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [(cell["ranks"], cell["bytes"]) for cell in report["cells"]] == [
        (2, 100 << 10), (2, 1 << 20),
    ]  # fmt: skip
    for sample in report["samples"]:
        for call in interfere.CALLS:
            for phase in interfere.PHASES:
                values = interfere.calls(sample, call, phase)
                assert values and all(us >= 0 for us in values)
        assert len(sample["before_us"]) == len(sample["after_us"]) == 20
        assert len(sample["reduce_within_us"]) == len(sample["within_us"]) >= 20
        assert ("rate" in sample) == (sample["variant"] == "capped")
    for cell in report["cells"]:
        assert [one["variant"] for one in cell["variants"]] == list(interfere.VARIANTS)
    assert list(folder.iterdir()) == [], "nothing is left"


@needs_mpi
def test_the_table_fits_eighty_columns_and_says_whether_yielding_is_good_enough(
    folder: Path, tmp_path: Path
) -> None:
    figure = tmp_path / "figure.png"
    words = ["--variants", "async,yielding", "--size", "1M", "--figure", str(figure)]
    done = bench(folder, *SMALL, *words, *LAUNCHER)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.partition("yielding: barriers'")[0].splitlines()
    assert len(rows) > 12 and all(len(row) <= 80 and "…" not in row for row in rows), done.stdout
    assert "reached" in done.stdout and figure.stat().st_size > 5000


@needs_mpi
def test_direct_is_left_out_of_what_it_cannot_write(folder: Path) -> None:
    odd = ["--size", "100001", "-n", "2"]
    done = bench(folder, *SMALL, *odd, "--json", *LAUNCHER)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["absent"].keys() == {"direct"}
    found = [one["variant"] for one in report["cells"][0]["variants"]]
    assert found == [name for name in interfere.VARIANTS if name != "direct"]
    done = bench(folder, *SMALL, *odd, "--variants", "plain,direct", *LAUNCHER)
    assert (done.returncode, "direct cannot be measured" in done.stderr) == (2, True)
    assert list(folder.iterdir()) == []


def test_direct_is_left_out_where_a_file_system_does_not_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for takes in (True, False):
        monkeypatch.setattr(interfere, "takes_direct", lambda folder, takes=takes: takes)
        assert ("direct" in interfere.absent(tmp_path, [4096])) is not takes


def test_a_variant_that_is_none_is_an_error(tmp_path: Path) -> None:
    done = bench(tmp_path, "--variants", "async,fast")
    assert done.returncode == 2 and "no variant 'fast'" in done.stderr


def sample(variant: str, within: list[float], done: float, at: list[float]) -> dict[str, object]:
    return {
        "variant": variant, "ranks": 4, "bytes": 1 << 20, "returned": 0.0, "done": done,
        "before_us": [100.0] * 99 + [200.0], "within_us": within, "at_us": at,
        "after_us": [100.0], "reduce_before_us": [10.0], "reduce_within_us": [20.0] * len(at),
        "reduce_after_us": [10.0],
    }  # fmt: skip


def test_what_counts_as_during_ends_when_the_file_is_there() -> None:
    one = sample("async", [300.0, 400.0, 5000.0], 0.002, [0.001e6, 0.002e6, 0.003e6])
    assert interfere.calls(one, "barrier", "during") == [300.0, 400.0]
    assert interfere.calls(one, "allreduce", "during") == [20.0, 20.0]
    assert interfere.times(one, "barrier") == pytest.approx(399 / 101)


@pytest.mark.parametrize(
    ("within", "done", "reached"), [(150.0, 1.1, True), (400.0, 1.1, False), (150.0, 2.0, False)]
)
def test_yielding_is_judged_by_latency_and_by_rate(
    within: float, done: float, reached: bool
) -> None:
    free = sample("async", [2000.0], 1.0, [0.5e6])
    gave = sample("yielding", [within], done, [0.5e6])
    cell = interfere.summarize([free, gave])[0]
    assert cell["yielding"]["reached"] is reached
    assert cell["yielding"]["lost"] == pytest.approx(1 - 1 / done)
    assert cell["yielding"]["times"] == pytest.approx(within / 101, rel=0.01)


def test_only_the_capped_way_has_the_rate_and_only_the_yielding_one_gives_way(
    tmp_path: Path,
) -> None:
    settings = overlap.Settings(tmp_path, ("mpirun",), 2, 1 << 20, slowdown=1.3, rate=5)
    hints = {name: interfere.mode_and_hints(name, settings) for name in interfere.VARIANTS}
    assert [name for name, (_, text) in hints.items() if ":rate=5" in text] == ["capped"]
    assert [name for name, (_, text) in hints.items() if "slowdown=1.3" in text] == ["yielding"]
    assert [name for name, (mode, _) in hints.items() if mode == "async"] == [
        "async", "yielding", "capped",
    ]  # fmt: skip
