"""A module that looks at the program's own module, or its name, as it is imported finds in a
template what it finds in the program."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest
from pythons import INTERPRETERS
from warm_world import Warm

WHERE = """
import os, sys
main = sys.modules['__main__']
interactive = not hasattr(main, '__file__')
name = os.path.basename(getattr(main, '__file__', 'session'))
cached = getattr(main, '__cached__', 'none')
argv = list(sys.argv)
"""
APP = """
import csv, where, sys
print(where.interactive, where.name, where.cached is None, where.argv)
print(__file__ if '__file__' in globals() else None, sys.argv, sorted(globals()))
"""


@pytest.fixture(params=sorted(INTERPRETERS))
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Warm:
    warm = Warm(tmp_path, INTERPRETERS[request.param])
    for name, text in {
        "where.py": WHERE, "app.py": APP, "pk/__init__.py": "", "pk/__main__.py": APP,
        "folder/__main__.py": APP, "folder/where.py": WHERE,
    }.items():  # fmt: skip
        path = warm.cwd / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return warm


PROGRAMS = {
    "a script": (["app.py", "x"], ""),
    "a script in this folder": (["./app.py"], ""),
    "a module": (["-m", "app", "x"], "app.py"),
    "a package": (["-m", "pk"], "pk/__main__.py"),
    "a line": (["-c", APP.replace("\n", "", 1), "x"], ""),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_a_module_that_asks_is_warm(world: Warm, case: str) -> None:
    program, main = PROGRAMS[case]
    world.trial(program)
    world.plan["main"] = str(world.cwd / main) if main else ""
    plain = world.plain(program)
    for rank in world.ranks(program, {}, {}):
        assert (rank.refused, rank.said()) == ("", plain.said())
    assert "where" not in world.report["left"], world.report
    assert plain.returncode == 0 and ("False app.py" in plain.stdout) is ("app" in program[-2:][0])


@pytest.mark.parametrize("program", [["folder"], ["-m", "app"]])
def test_where_it_is_not_known_it_is_left(world: Warm, program: list[str]) -> None:
    world.trial(program)
    plain = world.plain(program)
    for rank in world.ranks(program, {}, {}):
        assert (rank.refused, rank.said()) == ("", plain.said())
    assert "asks the program for __file__" in world.report["left"]["where"]
    assert int(world.report["warm"]) > 3  # csv, and what it imports


def test_an_archive_is_known_by_what_it_holds_and_not_by_its_name(tmp_path: Path) -> None:
    """`python -m zipapp -o app`: what its `__file__` will be lies in it."""
    world = Warm(tmp_path, sys.executable)
    (world.cwd / "where.py").write_text(WHERE)
    with zipfile.ZipFile(world.cwd / "app", "w") as archive:
        archive.writestr("__main__.py", APP)
    env = {"PYTHONPATH": str(world.cwd)}
    world.trial(["app"], env)
    plain = world.plain(["app"], env)
    (rank,) = world.ranks(["app"], env)
    assert (rank.refused, rank.said()) == ("", plain.said())
    assert plain.stdout.startswith("False __main__.py")
    assert "asks the program for __file__" in world.report["left"]["where"]


def test_what_the_program_has_and_a_template_lacks_leaves_who_asks(tmp_path: Path) -> None:
    world = Warm(tmp_path, sys.executable)
    (world.cwd / "asks.py").write_text(
        "import __main__\nready = getattr(__main__, 'ready', 0)\nhasattr(__main__, '__path__')\n"
    )
    program = ["-c", "ready = 1; import csv, asks; print(asks.ready)"]
    world.trial(program)
    (rank,) = world.ranks(program)
    assert (rank.refused, rank.stdout) == ("", "1\n")
    assert "asks the program for ready" in world.report["left"]["asks"]
