"""Random programs of I/O calls return the same and leave the same bytes, plain and buffered."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from buffer_world import buffered, compile_c, contents, counted, run

RULES = [
    "*.dat:size=4K:count=2",
    "*.dat:size=64K",
    "*:size=16K:count=1",
    "*.dat",
    "*.dat:size=32K:prefetch=3:count=8:delay=0",
    "*.dat:safe:size=16K",
]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c("calls_driver", tmp_path_factory.mktemp("driver"))


def outcome(
    driver: Path, folder: Path, seed: int, threads: int, rules: str | None, **more: str
) -> Any:
    folder.mkdir()
    env = buffered(rules, **more) if rules else None
    done: subprocess.CompletedProcess[str] = run([driver, seed, 300, threads], folder, env)
    return done.returncode, done.stdout.splitlines(), contents(folder)


def check(driver: Path, tmp_path: Path, seeds: range, threads: int) -> None:
    for seed in seeds:
        rules = RULES[seed % len(RULES)]
        plain = outcome(driver, tmp_path / f"p{seed}", seed, threads, None)
        found = outcome(driver, tmp_path / f"b{seed}", seed, threads, rules)
        assert plain[0] == 0 and len(plain[1]) > 300
        assert found == plain, f"seed {seed}, {threads} threads, {rules}"


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("threads", [1, 4])
def test_what_is_compared_was_buffered_by_each_rule(driver, tmp_path, rules, threads):
    total: Counter[str] = Counter()
    for seed in range(900, 903):
        report = tmp_path / f"r{seed}"
        report.mkdir()
        more = {"BRIGADE_BUFFER_REPORT": str(report)}
        plain = outcome(driver, tmp_path / f"p{seed}", seed, threads, None)
        found = outcome(driver, tmp_path / f"b{seed}", seed, threads, rules, **more)
        assert found == plain and plain[0] == 0
        total += counted(report)
    wanted = ["writes", "reads", "seeks", "read_hits"]
    wanted += [] if "safe" in rules else ["write_hits", "flushes"]
    assert [name for name in wanted if not total[name]] == []


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_one_thread_sees_the_same(driver, tmp_path, first):
    check(driver, tmp_path, range(first, first + 15), 1)


def test_four_threads_see_the_same(driver, tmp_path):
    check(driver, tmp_path, range(12), 4)


@pytest.mark.all
@pytest.mark.parametrize("first", range(10000, 12000, 100))
def test_one_thread_sees_the_same_with_two_thousand_seeds(driver, tmp_path, first):
    check(driver, tmp_path, range(first, first + 100), 1)


@pytest.mark.all
@pytest.mark.parametrize("first", range(20000, 20300, 25))
def test_four_threads_see_the_same_with_three_hundred_seeds(driver, tmp_path, first):
    check(driver, tmp_path, range(first, first + 25), 4)
