"""Worlds as they are compiled, found again, and run: plainly and under each view."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brigade.bench import build
from brigade.bench.plan import Cload, Pynamic, plan

TINY = Pynamic(modules=8, utilities=5, functions=30, depth=4, cross=3, function_bytes=100)
SIZES = "--modules 8 --utilities 5 --functions 30 --depth 4 --cross 3 --function-bytes 100".split()


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """Worlds that the tests of this module share."""
    return tmp_path_factory.mktemp("worlds")


def brigade(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "brigade", *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=100,
    )


def bench(base: Path, *words: str) -> dict:
    done = brigade("bench", words[0], "--json", "--dir", str(base), *words[1:])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("layout", ["flat", "packages", "path"])
def test_every_rank_of_a_pynamic_world_visits_what_was_planned(base, layout):
    report = bench(base, "pynamic", *SIZES, "--layout", layout, "-n", "2")
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
    assert {rank["checksum"] for rank in report["ranks"]} == {report["checksum"]}
    assert list(report["phases"]) == ["launch", "startup", "import", "visit"]
    assert all(report["phases"][name]["min"] >= 0 for name in report["phases"])
    assert report["objects"] == 13


@pytest.mark.parametrize("layout", ["one", "each", "long"])
@pytest.mark.parametrize("way", [[], ["--dlopen"], ["--search", "env"]], ids=str)
def test_a_cload_world_loads_in_every_layout_and_way(base, layout, way):
    sizes = ["--libraries", "6", "--functions", "5", "--directories", "3", "--layout", layout]
    report = bench(base, "cload", *sizes, *way, "-n", "2")
    assert {rank["checksum"] for rank in report["ranks"]} == {report["checksum"]}
    assert report["objects"] == 6


@pytest.mark.parametrize("view", ["interpose", "python", "interpose,python"])
def test_a_pynamic_world_answers_the_same_under_each_view(base, view, tmp_path):
    report = staged(base, tmp_path, view, "pynamic", *SIZES)
    assert len(report["ranks"]) == 2
    assert {rank["checksum"] for rank in report["ranks"]} == {report["checksum"]}


@pytest.mark.parametrize("way", [[], ["--dlopen"], ["--search", "env"]], ids=str)
def test_a_cload_world_comes_out_of_node_memory(base, way, tmp_path):
    sizes = ["--libraries", "6", "--functions", "5", "--directories", "3", "--layout", "long"]
    staged(base, tmp_path, "interpose", "cload", *sizes, *way)
    said = json.loads((tmp_path / "run.json").read_text())
    assert said["unstaged"] is None
    assert said["misses"]["by_cause"] == {}


def staged(base: Path, folder: Path, view: str, *words: str) -> dict:
    """A benchmark under `brigade run`, two ranks, whose report is FOLDER/run.json."""
    run = [sys.executable, "-m", "brigade", "run", "-n", "2", "--view", view, "--cover", str(base)]
    (folder / "node").mkdir()
    variables = {"BRIGADE_CACHE": str(folder / "cache"), "BRIGADE_NODE_DIR": str(folder / "node")}
    done = brigade(
        "bench", words[0], "--json", "--dir", str(base), *words[1:],
        "--", *run, "--json", str(folder / "run.json"), "--", **variables,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_world_is_made_once_and_then_found(tmp_path):
    steps: list[int] = []
    folder = build.generate(plan(TINY), tmp_path, progress=lambda done, total: steps.append(done))
    assert steps == list(range(1, 14))
    again = build.generate(plan(TINY), tmp_path, progress=lambda done, total: steps.append(done))
    assert (again, len(steps)) == (folder, 13)
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_a_world_can_be_copied_elsewhere(tmp_path):
    folder = build.generate(plan(Cload(libraries=3, layout="each", search="env")), tmp_path)
    moved = folder.rename(tmp_path / "elsewhere")
    done = subprocess.run([moved / "bin/cload"], capture_output=True, text=True)
    assert build.read(moved)["checksum"] in done.stdout, done.stderr


def test_ctrl_c_leaves_no_half_made_world(tmp_path):
    command = [sys.executable, "-m", "brigade", "bench", "pynamic", "--dir", str(tmp_path)]
    child = subprocess.Popen(
        [*command, "--modules", "300", "--functions", "400", "--generate"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".making-*/lib/*.so")) and time.monotonic() < deadline:
        assert child.poll() is None
        time.sleep(0.02)
    os.killpg(child.pid, signal.SIGINT)
    assert child.wait(60) != 0
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_generation_left_goes_with_the_next(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = tmp_path / f".making-{gone.pid}-{os.uname().nodename}-pynamic"
    left.mkdir()
    other = tmp_path / f".making-{gone.pid}-another-host-pynamic"
    other.mkdir()
    build.generate(plan(Cload(libraries=1)), tmp_path)
    assert not left.exists()
    assert other.exists()


def test_no_compiler_is_an_error_that_says_what_to_do(tmp_path):
    done = brigade("bench", "cload", "--dir", str(tmp_path), CC="no-such-compiler")
    assert done.returncode == 1
    assert "no-such-compiler" in done.stderr and "set CC" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_that_fails_is_quoted(tmp_path):
    done = brigade("bench", "cload", "--dir", str(tmp_path), CC="cc --no-such-option")
    assert done.returncode == 1
    assert "--no-such-option" in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_rank_that_answers_wrong_is_an_error(base):
    folder = Path(bench(base, "cload", "--libraries", "2", "--generate")["world"])
    described = json.loads((folder / "world.json").read_text())
    try:
        (folder / "world.json").write_text(json.dumps({**described, "checksum": "0" * 16}))
        done = brigade("bench", "cload", "--libraries", "2", "--dir", str(base), "-n", "2")
        assert done.returncode == 1
        assert "rank 0 and 1 more did not visit what was planned" in done.stderr
    finally:
        (folder / "world.json").write_text(json.dumps(described))


def test_a_launcher_that_fails_or_says_nothing_is_an_error(base):
    sizes = ["bench", "cload", "--libraries", "2", "--dir", str(base), "--"]
    assert "ended with status 3" in brigade(*sizes, "sh", "-c", "exit 3").stderr
    assert "no rank has said anything" in brigade(*sizes, "true").stderr
    assert "no-such-launcher" in brigade(*sizes, "no-such-launcher").stderr


@pytest.mark.parametrize(
    "words", [["--layout", "heap"], ["--modules", "0"], ["-n", "2", "--", "srun"]], ids=str
)
def test_wrong_options_are_refused_with_exit_code_2(words):
    done = brigade("bench", "pynamic", *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_table_names_each_phase_and_the_checksum(base):
    done = brigade("bench", "pynamic", *SIZES, "--dir", str(base), COLUMNS="200")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "pynamic:", "seconds", "launch", "startup", "import", "visit", "checksum",
    ]  # fmt: skip
    assert "as planned on every rank" in done.stdout
