"""Lines of `.pth` files run in the template before it can watch: what they may have read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from warm_world import Warm

PROGRAM = ["-c", "import sys, csv; print(sys.early)"]
READS = "import os, sys; sys.early = os.environ.get('MINE')"


@pytest.fixture
def own(tmp_path: Path) -> Warm:
    """With a virtual environment of its own, whose `.pth` files nobody else reads."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    warm = Warm(tmp_path, str(venv / "bin/python"))
    warm.trial(["-c", "import csv"])
    return warm


def packages(warm: Warm) -> Path:
    return next((warm.folder / "venv/lib").glob("python*")) / "site-packages"


def put(warm: Warm, line: str, module: str = "") -> None:
    (packages(warm) / "mine.pth").write_text(f"# ours\n{line}\n")
    if module:
        (packages(warm) / "early.py").write_text(module)


@pytest.mark.parametrize(
    "line",
    [
        READS,
        "import os, sys; name = 'MINE'; sys.early = os.environ.get(name)",
        "import os, sys; sys.early = os.getenv('MINE', '')",
        "import os, sys; sys.early = 'MINE' in os.environ",
        "import os, sys; sys.early = os.environb.get(b'MINE')",
        "import sys; exec(\"from os import environ\\nsys.early = environ['MINE']\")",
    ],
)
def test_a_variable_that_a_line_reads_must_not_differ(own: Warm, line: str) -> None:
    put(own, line)
    envs = {"MINE": "1"}, {"MINE": "1", "OTHER": "2"}, {"MINE": "2"}
    same, also, other = own.ranks(PROGRAM, *envs)
    assert (same.refused, also.refused) == ("", "")
    assert other.refused == "variable MINE differs"
    assert same.said() == also.said() == own.plain(PROGRAM, envs[0]).said()


#: a1_coverage.pth of coverage 7.17
COVERAGE = (
    'import sys; exec(\'import os\\n\\nif os.getenv("COVERAGE_PROCESS_START") or '
    'os.getenv("COVERAGE_PROCESS_CONFIG"):\\n try:\\n  import coverage\\n except:\\n  pass\\n'
    ' else:\\n  coverage.process_startup(slug="pth")\'); sys.early = 0'
)


def test_the_line_of_coverage_keeps_nobody_from_being_forked_who_does_not_measure(
    own: Warm,
) -> None:
    put(own, COVERAGE)
    same, measured = own.ranks(PROGRAM, {}, {"COVERAGE_PROCESS_START": "rc"})
    assert (same.refused, measured.refused) == ("", "variable COVERAGE_PROCESS_START differs")


def test_a_variable_that_a_module_of_a_line_reads_must_not_differ(own: Warm) -> None:
    put(own, "import early", READS)
    same, other = own.ranks(PROGRAM, {"MINE": "1"}, {})
    assert (same.refused, other.refused) == ("", "variable MINE differs")


ALL = "may read all of the environment"
DOUBTFUL = {
    "import os, sys; sys.early = sorted(os.environ)": ALL,
    "import os, sys; sys.early = os.environ.get('MI' + 'NE')": ALL,
    "import os, sys; a = 'A'; a = 'MINE'; sys.early = os.environ.get(a)": ALL,
    "import os, sys; sys.early = getattr(os, 'environ')['MINE']": ALL,
    "import os, sys; os.environ['MINE'] = '3'; sys.early = 1": ALL,
    "import sys; exec('from os import *'); sys.early = 1": ALL,
    "import sys; exec('from os import getenv as g'); sys.early = 1": ALL,
    "import sys; text = 'x = 1'; exec(text); sys.early = 1": "executes what is not known",
    "import sys, time; sys.early = time.time()": "may ask for the clock",
    "import sys; exec('from time import time'); sys.early = 1": "may ask for the clock",
    "import sys, os; sys.early = os.getpid()": "may ask for the process's number",
    "import sys, random; sys.early = random.random()": "may ask for random numbers",
}


@pytest.mark.parametrize("line", DOUBTFUL)
def test_a_line_that_may_ask_for_a_ranks_own_refuses(own: Warm, line: str) -> None:
    put(own, line)
    own.ranks(PROGRAM)
    assert own.report["refused"] == (
        f"mine.pth, run before all else by a .pth file, {DOUBTFUL[line]}"
    )


def test_a_module_of_a_line_that_has_no_source_refuses(own: Warm) -> None:
    put(own, "import early; import sys; sys.early = 1", "x = 1")
    early = packages(own) / "early.py"
    script = f"import py_compile; py_compile.compile({str(early)!r}, {str(early) + 'c'!r})"
    subprocess.run([sys.executable, "-c", script], check=True)
    early.unlink()
    own.ranks(PROGRAM)
    assert own.report["refused"].startswith("early, ")
    assert own.report["refused"].endswith(" is no Python source")


HARMLESS = {
    "folders": ("/nowhere", ""),
    "editable": (
        "import early; early.install()",
        "import sys, importlib.util\n"
        "class Finder:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        return None\n"
        "def install():\n"
        "    sys.meta_path.append(Finder)\n",
    ),
    "namespace": (
        "import sys, types, os; p = os.path.join(sys._getframe(1).f_locals['sitedir'], 'space');"
        " m = sys.modules.setdefault('space', types.ModuleType('space'));"
        " mp = m.__dict__.setdefault('__path__', []); (p not in mp) and mp.append(p)",
        "",
    ),
    "logging": ("import logging, random, threading", ""),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_asks_for_nothing_stays_warm(own: Warm, name: str) -> None:
    put(own, *HARMLESS[name])
    program = ["-c", "import csv, sys; print(sys.meta_path[-1], sorted(sys.modules))"]
    one, two = own.ranks(program, {"MINE": "1"}, {"MINE": "2"})
    assert (one.refused, two.refused, own.report["refused"]) == ("", "", "")
    assert one.stdout == two.stdout == own.plain(program).stdout


def test_what_a_line_imported_is_made_anew_in_each_rank(own: Warm) -> None:
    put(own, "import logging, random, multiprocessing.process")
    program = (
        "import logging, random, multiprocessing.process as p;"
        " print(logging._startTime, random.random(), bytes(p.current_process().authkey))"
    )
    one, two = own.ranks(["-c", program], {}, {})
    assert all(a != b for a, b in zip(one.stdout.split(" "), two.stdout.split(" ")))
    assert one.refused == two.refused == ""


def test_setuptools_line_stays_warm_and_its_variable_counts(own: Warm) -> None:
    hack = pytest.importorskip("_distutils_hack")
    (packages(own) / "_distutils_hack").symlink_to(Path(hack.__file__).parent)
    put(
        own,
        "import os; var = 'SETUPTOOLS_USE_DISTUTILS';"
        " enabled = os.environ.get(var, 'local') == 'local';"
        " enabled and __import__('_distutils_hack').add_shim();",
    )
    same, other = own.ranks(["-c", "import csv"], {}, {"SETUPTOOLS_USE_DISTUTILS": "stdlib"})
    assert (same.refused, own.report["refused"]) == ("", "")
    assert other.refused == "variable SETUPTOOLS_USE_DISTUTILS differs"


#: as finders of scikit-build-core's editable installs have it, for when they build anew
REBUILDS = """
import os, subprocess, sys, time
MARKER = "MINE"
def copied(copy):
    return copy(1)
def wait(lock):
    last = time.perf_counter()
    while True:
        if lock():
            return
        now = time.perf_counter()
        if now - last > 60:
            last = now
            print("waiting")
def rebuild(path):
    env = os.environ.copy()
    if path in env.get(MARKER, "").split(os.pathsep):
        return
    env[MARKER] = os.pathsep.join((env.get(MARKER, ""), path))
    def run(command):
        subprocess.run(command, env=env, check=True)
    wait(lambda: True)
    run(["true"])
sys.early = 1
"""


def test_a_finder_that_might_build_anew_stays_warm_and_its_variable_counts(own: Warm) -> None:
    put(own, "import early", REBUILDS)
    same, also, other = own.ranks(PROGRAM, {}, {"OTHER": "1"}, {"MINE": "1"})
    assert (same.refused, also.refused, own.report["refused"]) == ("", "", "")
    assert other.refused == "variable MINE differs"


CLOCK = "may ask for the clock"
ESCAPES = {
    "compared, and kept": (("if now - last > 60:", "wait.late = now\n        if now > 1:"), CLOCK),
    "given away": (("print(", "print(now, "), CLOCK),
    "compared for a value": (("last = now", "last = now; lock.late = now > 5"), CLOCK),
    "of the module": (("last = time", "global last\n    last = time"), CLOCK),
    "bound twice": (("last = now", "last = wait.last = now"), CLOCK),
    "returned": (("            return\n", "            return last\n"), CLOCK),
    "env given away": (("env=env", "env"), ALL),
    "env given to another": (("subprocess.run(command, env", "wait(command, env"), ALL),
    "env given to one's own": (("subprocess.run(", "run("), ALL),
    "env read by what is not known": (("env.get(MARKER", "env.get(path"), ALL),
    "env listed": (
        ("    env[MARKER] =", "    for name in env: print(name)\n    env[MARKER] ="),
        ALL,
    ),
    "env returned": (('run(["true"])', "return env"), ALL),
}


@pytest.mark.parametrize(
    ("module", "file", "why"),
    [
        ("scikit_build_core", "resources/_editable_redirect.py", ""),
        ("mesonpy", "_editable.py", ALL),  # it builds anew, by a child, whenever it is imported
    ],
)
def test_finders_of_editable_installs_themselves(
    own: Warm, module: str, file: str, why: str
) -> None:
    text = (Path(pytest.importorskip(module).__file__).parent / file).read_text()
    put(own, "import early; import sys; sys.early = 1", text)
    one, two = own.ranks(PROGRAM, {"MINE": "1"}, {"MINE": "2"})
    assert why in own.report["refused"] and bool(why) == bool(own.report["refused"])
    if not why:
        assert (one.refused, two.refused) == ("", "")
        assert one.stdout == two.stdout == own.plain(PROGRAM).stdout


@pytest.mark.parametrize("how", ESCAPES)
def test_what_leaves_a_function_refuses(own: Warm, how: str) -> None:
    (old, new), why = ESCAPES[how]
    assert old in REBUILDS
    put(own, "import early", REBUILDS.replace(old, new, 1))
    own.ranks(PROGRAM)
    assert own.report["refused"] == f"early, run before all else by a .pth file, {why}"
