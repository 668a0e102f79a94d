"""CPython's own tests of import and start-up: each single test ends as it does without Brigade.

The interpreter's standard library is covered, so its tests, and the processes that they start, are
answered from an image that a trial of the same tests made. In a rank that is forked, what the tests
import has been imported before it began.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import outcomes
import pytest
from differential import FORK, WAYS, Differential

LINES = Path(__file__).parent / "unittest_lines.py"
QUICK = ["test.test_import", "test.test_pkgutil", "test.test_runpy", "test.test_modulefinder"]
ALL = [
    "test.test_import",
    "test.test_importlib",  # test_namespace_pkgs is a part of it
    "test.test_modulefinder",
    "test.test_pkgutil",
    "test.test_runpy",
    "test.test_site",
    "test.test_sysconfig",
    "test.test_venv",
    "test.test_zipimport",
]
# import the import system anew, so that a plan of a trial with them would share little
ANEW = ("test.test_import", "test.test_importlib")
# what a rank has of the process that it was forked from: under --fork only, it takes minutes
FORKED = [
    ["test.test_sys", "test.test_random", "test.test_logging", "test.test_gc"],
    ["test.test_threading", "test.test_signal", "test.test_subprocess"],
    ["test.test_io", "test.test_os", "test.test_posix", "test.test_atexit", "test.test_warnings"],
    ["test.test_multiprocessing_fork"],
    ["test.test_multiprocessing_spawn"],
    ["test.test_concurrent_futures"],
    ["test.test_faulthandler", "test.test_sys_settrace", "test.test_cprofile", "test.test_bdb"],
]

HAS_TESTS = """
import importlib.util, sys
ours = sys.version_info[:2] >= (3, 9) and importlib.util.find_spec("test.test_runpy")
print(".".join(map(str, sys.version_info[:3])) if ours else "")
"""


def interpreters() -> dict[str, str]:
    """Version to path: every CPython from 3.9 on of this machine that came with its tests."""
    places = [f"{sys.base_prefix}/bin/python3"]
    places += [shutil.which(f"python3.{minor}") or "" for minor in range(9, 16)]
    places += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
    found = {}
    for place in filter(os.path.exists, places):
        done = subprocess.run([place, "-c", HAS_TESTS], capture_output=True, text=True)
        version = done.stdout.strip()
        if done.returncode == 0 and version:
            found.setdefault(version, place)
    return dict(sorted(found.items(), key=lambda item: [int(n) for n in item[0].split(".")]))


def has(python: str, modules: list[str]) -> bool:
    text = f"import importlib.util as u\nprint(all(map(u.find_spec, {modules})))"
    done = subprocess.run([python, "-c", text], capture_output=True, text=True)
    return done.stdout == "True\n"


INTERPRETERS = interpreters()
OWN = ".".join(map(str, sys.version_info[:3]))
OWN_MINOR = f"3.{sys.version_info[1]}"

# These tests clear CPython's own table of extension modules by file name, which only
# `_testinternalcapi` can. Alone, the `python` view has them there under their staged names.
# In a namespace software is read-only: to remove a file that is not there fails with EROFS.
# A debugger that is told to skip importlib sees the path hook of the view, in any rank that has it.
KNOWN = {
    "python": ("test.test_import.SinglephaseInitTests",),
    "namespace": ("OSError EROFS",),
    FORK: ("test.test_bdb.StateTestCase.test_skip",),
}


def compare(
    folder: Path,
    python: str,
    modules: list[str],
    at_least: int,
    ways: Sequence[str] = WAYS,
) -> Counter[str]:
    prefix = subprocess.run(
        [python, "-c", "import os; print(os.path.dirname(os.path.realpath(os.__file__)))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    pair = Differential(folder / "pair", covered=[prefix])
    lines = folder / "lines"
    command = [python, LINES, lines, *modules]
    imports = [python, LINES, "", *(name for name in modules if name not in ANEW)]
    return outcomes.compare(pair, command, lines, at_least, KNOWN, imports=imports, ways=ways)


@pytest.mark.skipif(
    OWN not in INTERPRETERS,
    reason=f"needs CPython's tests: the package libpython{OWN_MINOR}-testsuite",
)
def test_the_interpreter_in_use_passes_its_tests_of_import_alike(tmp_path: Path) -> None:
    compare(tmp_path, INTERPRETERS[OWN], QUICK, at_least=100)


@pytest.mark.all
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", INTERPRETERS)
def test_every_python_passes_its_tests_of_start_up_alike(tmp_path: Path, version: str) -> None:
    counts = compare(tmp_path, INTERPRETERS[version], ALL, at_least=1000)
    print(f"CPython {version}: {dict(counts)}")


@pytest.mark.all
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("modules", FORKED, ids=lambda modules: modules[0].partition(".")[2])
def test_what_a_forked_rank_is_made_of_passes_its_tests_alike(
    tmp_path: Path, modules: list[str]
) -> None:
    ours_first = sorted(INTERPRETERS, key=lambda version: version != OWN)
    having = [INTERPRETERS[v] for v in ours_first if has(INTERPRETERS[v], modules)]
    python = next(iter(having), None)
    if not python:
        pytest.skip("no CPython of this machine came with all of these tests")
    counts = compare(tmp_path, python, modules, at_least=100, ways=[FORK])
    print(f"{python}, forked: {dict(counts)}")


def test_a_single_different_result_is_found() -> None:
    plain = {"a": [("ok", "")], "b": [("skip", "why")], "c": [("ok", "")]}
    viewed = {"a": [("ok", "")], "b": [("skip", "other")], "d": [("ok", "")]}
    assert set(outcomes.differences(plain, viewed)) == {"b", "c", "d"}
    assert set(outcomes.differences(plain, viewed, known=["c"])) == {"b", "d"}
