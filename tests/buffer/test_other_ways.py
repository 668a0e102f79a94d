"""What goes to a file by a way that is not buffered meets what was buffered, in the right order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from buffer_world import buffered, compile_c, contents, run

ASYNCHRONOUS = ["aio", "list", "ring", "queue"]
IN_THE_KERNEL = ["splice", "tee", "copy"]
BY_NUMBER = ["number", "onto", "range"]
PASSED = ["socket", "socket-many", "arrival", "arrival-many"]
NOT_HERE = 77


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c("others_driver", tmp_path_factory.mktemp("others"))


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c("numbers_driver", tmp_path_factory.mktemp("numbers"))


def outcome(driver: Path, folder: Path, way: str, rules: str | None) -> Any:
    folder.mkdir()
    done = run([driver, *way.split("-")], folder, buffered(rules) if rules else None, limit=20)
    return done.returncode, done.stdout.splitlines(), contents(folder)


# a delay so long that nothing but the calls themselves writes it out
either = pytest.mark.parametrize(
    "rules", ["*.dat:delay=1000", "a.dat:delay=1000", "b.dat:delay=1000"]
)


def same(driver: Path, folder: Path, way: str, rules: str) -> None:
    plain = outcome(driver, folder / "plain", way, None)
    if plain[0] == NOT_HERE:
        pytest.skip(f"no {way} here")
    found = outcome(driver, folder / "buffered", way, rules)
    assert plain[0] == 0 and len(plain[1]) > 10
    assert found == plain


@either
@pytest.mark.parametrize("way", [*ASYNCHRONOUS, *IN_THE_KERNEL, *PASSED])
def test_another_way_to_a_buffered_file_finds_the_same(driver, tmp_path, way, rules):
    same(driver, tmp_path, way, rules)


@either
@pytest.mark.parametrize("way", BY_NUMBER)
def test_so_do_calls_by_their_numbers(numbers, tmp_path, way, rules):
    same(numbers, tmp_path, way, rules)
