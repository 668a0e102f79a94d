"""`brigade bench cache` as it runs: small, on the file system that is here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import until

from brigade.bench.cache import measure, memory
from brigade.model.cache import workload

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
MIB = 1 << 20
SMALL = ["--seconds", "2", "--memory", "32M", "--sizes", "64k", "--sleep", "1ms"]


def can_limit() -> bool:
    with memory.limited(32 * MIB) as room:
        return room.own


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def command(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "brigade", "bench", "cache", "--dir", str(folder), *words]


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "BRIGADE_CACHE": str(cache), "COLUMNS": "80"}


def bench(cache: Path, folder: Path, *words: str) -> str:
    done = subprocess.run(
        command(folder, *words), env=environment(cache), capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def cgroups() -> set[str]:
    """Cgroups that studies have left: each is named after its process."""
    tops = [top for _, top, _ in memory._here()]
    there = [one for top in tops for one in top.rglob("brigade-cache-*")]
    return {str(one) for one in there if not Path("/proc", one.name.rpartition("-")[2]).exists()}


@needs_compiler
def test_every_step_has_its_samples_and_nothing_is_left(cache: Path, tmp_path: Path) -> None:
    before, figure = cgroups(), tmp_path / "cache.png"
    report = json.loads(bench(cache, tmp_path, *SMALL, "--figure", str(figure), "--json"))
    steps = workload.parse("\n".join(report["steps"]))
    assert [one["name"] for one in report["results"]] == [one.name for one in steps]
    named = {one["name"]: one for one in report["results"]}
    series = [one for one in report["results"] if "samples" in one]
    assert {"back-65536", "sleep-65536", "fsync-65536", "large write"} <= {
        s["name"] for s in series
    }
    for one in series:
        assert sum(sample[2] for sample in one["samples"]) * one["size"] == one["bytes"]
        assert 0 < sum(sample[1] for sample in one["samples"]) <= one["seconds"]
    assert len(named["fsync-65536"]["fsyncs"]) > 1
    assert report["rates"]["memory_write"] > 0 < report["rates"]["read"]
    assert len(report["conclusions"]) >= 5
    assert figure.stat().st_size > 10_000
    assert [one.name for one in tmp_path.iterdir()] == ["cache.png"], "no file is left"
    assert cgroups() <= before, "no cgroup is left"


@needs_compiler
def test_the_table_fits_eighty_columns(cache: Path, tmp_path: Path) -> None:
    lines = bench(cache, tmp_path, *SMALL).splitlines()
    table = lines[: next(n for n, line in enumerate(lines) if line.startswith("- "))]
    assert [line.split()[0] for line in table[3:]] == ["back", "sleep", "fsync", "direct"]
    assert all(len(line.rstrip()) <= 80 and "…" not in line for line in table)


@needs_compiler
def test_no_more_of_a_file_is_cached_than_the_memory_has(cache: Path, tmp_path: Path) -> None:
    if not can_limit():
        pytest.skip("no cgroup can be made here")
    report = json.loads(bench(cache, tmp_path, *SMALL, "--patterns", "back", "--json"))
    assert report["room"]["own"] and report["limited"]
    look = next(one for one in report["results"] if one["name"] == "large after write")
    cached = sum(look["parts"]) / look["pages"] * look["bytes"]
    assert look["bytes"] == 64 * MIB
    assert 4 * MIB < cached <= 32 * MIB


def test_an_ordinary_user_is_told_that_no_cgroup_could_be_made() -> None:
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("only root can be somebody else here")
    program = (
        "from brigade.bench.cache import memory\n"
        "with memory.limited(32 << 20) as room: print(room.own, room.bytes >= 32 << 20, room.why)"
    )
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable]
    done = subprocess.run([*words, "-c", program], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("False True ")
    assert "brigade-cache" in done.stdout or "no memory controller" in done.stdout


@needs_compiler
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_leaves_nothing(cache: Path, tmp_path: Path, number: int) -> None:
    before = cgroups()
    words = [
        "--seconds",
        "2",
        "--memory",
        "32M",
        "--sizes",
        "4k",
        "--patterns",
        "sleep",
        "--sleep",
        "5",
    ]
    child = subprocess.Popen(
        command(tmp_path, *words), env=environment(cache), stdout=subprocess.DEVNULL
    )
    try:
        until(lambda: list(tmp_path.glob("brigade-bench-*/sleep-*")))
        child.send_signal(number)
        assert child.wait(30) == 128 + number
    finally:
        child.kill()
        child.wait()
    assert list(tmp_path.iterdir()) == []
    assert cgroups() <= before


@needs_compiler
def test_a_workload_of_ones_own_is_done(cache: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps"
    steps.write_text("write a bytes=3M size=1M\nlook a\nread a bytes=3M size=64k\nremove a\n")
    report = json.loads(
        bench(cache, tmp_path, "--workload", str(steps), "--seconds", "1", "--json")
    )
    results = report["results"]
    assert [one["name"] for one in results] == ["write a", "look a", "read a", "remove a"]
    assert sum(results[1]["parts"]) == results[1]["pages"]
    assert results[2]["bytes"] == 3 * MIB


@needs_compiler
def test_what_the_file_system_has_no_room_for_is_not_begun(cache: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps"
    steps.write_text("write a bytes=900T\n")
    done = subprocess.run(
        command(tmp_path, "--workload", str(steps), "--seconds", "1"),
        env=environment(cache), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2 and "the study needs 943718400 MiB" in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["steps"]


@needs_compiler
def test_a_step_that_fails_is_said_in_one_line(cache: Path, tmp_path: Path) -> None:
    steps = tmp_path / "steps"
    steps.write_text("read nothing bytes=3M\n")
    done = subprocess.run(
        command(tmp_path, "--workload", str(steps), "--seconds", "1"),
        env=environment(cache), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "brigade: read nothing: open nothing: No such file or directory\n"


def test_a_compiler_that_is_not_there_is_an_error_of_usage(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "/no/such/cc")
    done = subprocess.run(command(tmp_path), env=environment(cache), capture_output=True, text=True)
    assert done.returncode == 2 and "/no/such/cc: there is no such C compiler" in done.stderr


def driven(cache: Path, folder: Path, text: str) -> list[dict[str, Any]]:
    made = measure.program(cache)
    return measure.run(made, workload.parse(text), folder, memory.in_force())


@needs_compiler
def test_the_last_of_a_files_bytes_may_make_a_shorter_series_but_no_shorter_call(
    cache: Path, tmp_path: Path
) -> None:
    written, read = driven(
        cache, tmp_path, "write a bytes=100k size=64k\nread a bytes=1M size=4k\n"
    )
    assert written["bytes"] == 65536 and read["bytes"] == 65536


@needs_compiler
def test_pages_that_were_dropped_are_seen_as_such(cache: Path, tmp_path: Path) -> None:
    look, dropped = (
        one
        for one in driven(cache, tmp_path, "write a bytes=2M\nlook a\ndrop a\nlook a\n")
        if one["operation"] == "look"
    )
    assert sum(look["parts"]) == 512
    assert sum(dropped["parts"]) == 0
    if "cachestat" in look:
        assert look["cachestat"]["cached"] == 512 and dropped["cachestat"]["cached"] == 0
