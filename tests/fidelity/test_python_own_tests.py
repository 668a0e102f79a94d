"""CPython's own tests of import and start-up: each single test ends as it does without Brigade.

The interpreter's standard library is covered, so its tests, and the processes that they start, are
answered from an image that a trial of the same tests made.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from differential import VIEWS, Differential

LINES = Path(__file__).parent / "unittest_lines.py"
QUICK = ["test.test_import", "test.test_pkgutil", "test.test_runpy", "test.test_modulefinder"]
ALL = [
    "test.test_import",
    "test.test_importlib",
    "test.test_modulefinder",
    "test.test_pkgutil",
    "test.test_runpy",
    "test.test_site",
    "test.test_sysconfig",
    "test.test_venv",
    "test.test_zipimport",
]

HAS_TESTS = """
import importlib.util, sys
print(sys.version_info[1], importlib.util.find_spec("test.test_runpy") is not None)
"""

Results = dict[str, list[tuple[str, str]]]


def interpreters() -> dict[str, str]:
    """Version to path: every CPython from 3.9 on of this machine that came with its tests."""
    found = {}
    for minor in range(9, 16):
        name = f"python3.{minor}"
        places = [f"{sys.base_prefix}/bin/{name}"] if minor == sys.version_info[1] else []
        places.append(shutil.which(name) or "")
        places += sorted(
            glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3"))
        )
        for place in filter(os.path.exists, places):
            done = subprocess.run([place, "-c", HAS_TESTS], capture_output=True, text=True)
            if done.stdout.strip() == f"{minor} True":
                found[f"3.{minor}"] = place
                break
    return found


INTERPRETERS = interpreters()
OWN = f"3.{sys.version_info[1]}"

# What a program can notice of the view (docs/explanation/python-view.md): a loader is of a class of
# Brigade's from find_spec() until it has loaded. Alone, the `python` view gives extension modules
# one, too, and this class of tests looks at it in setUpClass.
KNOWN = {"python": ("test.test_import.SinglephaseInitTests",)}


def results(file: Path) -> Results:
    """What became of each test; a test that ran twice has two results, in order."""
    found: Results = defaultdict(list)
    for line in file.read_text().splitlines():
        row = json.loads(line)
        found[row["id"]].append((row["outcome"], row["why"]))
    return found


def differences(plain: Results, viewed: Results, view: str) -> dict[str, tuple]:
    return {
        name: (plain.get(name), viewed.get(name))
        for name in sorted({*plain, *viewed})
        if plain.get(name) != viewed.get(name)
        and not any(known in name for known in KNOWN.get(view, ()))
    }


def compare(folder: Path, python: str, modules: list[str], at_least: int) -> None:
    prefix = subprocess.run(
        [python, "-c", "import os; print(os.path.dirname(os.path.realpath(os.__file__)))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    pair = Differential(folder / "pair", covered=[prefix])
    lines = folder / "lines"
    command = [python, str(LINES), str(lines), *modules]
    # what a first run leaves, such as byte code of the tests, must not be a difference
    for _ in range(2):
        done = pair.plain(command)
        assert done.returncode == 0, done.stderr
    plain = results(lines)
    assert len(plain) >= at_least
    found = {}
    for view in VIEWS:
        lines.unlink()
        done = pair.under(view, command)
        assert done.returncode == 0, (view, done.stderr[-3000:])
        assert pair.report["unstaged"] is None
        found[view] = differences(plain, results(lines), view)
    assert not any(found.values()), found


@pytest.mark.skipif(
    OWN not in INTERPRETERS, reason=f"needs CPython's tests: the package libpython{OWN}-testsuite"
)
def test_the_interpreter_in_use_passes_its_tests_of_import_alike(tmp_path: Path) -> None:
    compare(tmp_path, INTERPRETERS[OWN], QUICK, at_least=100)


@pytest.mark.all
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", INTERPRETERS)
def test_every_python_passes_its_tests_of_start_up_alike(tmp_path: Path, version: str) -> None:
    compare(tmp_path, INTERPRETERS[version], ALL, at_least=1000)


def test_a_single_different_result_is_found() -> None:
    plain = {"a": [("ok", "")], "b": [("skip", "why")], "c": [("ok", "")]}
    viewed = {"a": [("ok", "")], "b": [("skip", "other")], "d": [("ok", "")]}
    assert set(differences(plain, viewed, "interpose")) == {"b", "c", "d"}
