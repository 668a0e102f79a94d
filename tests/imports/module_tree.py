"""A small tree with a module of every kind, compiled, tried and staged."""

from __future__ import annotations

import subprocess
from pathlib import Path

from staged import Staged

#: Brigade's own modules that only a trial has: no rank of a job runs them
TRIAL_S = {"_brigade_record", "_brigade_trial", "_brigade_calls"}


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def make_tree(lib: Path) -> None:
    """One module of every kind; `pkg.mod` and friends have a line that shows who they are."""
    write(lib / "pkg/__init__.py", '"""The package."""\nname = __name__\n')
    write(lib / "pkg/mod.py", "def f():\n    raise ValueError('from mod')\nvalue = 'mod'\n")
    write(lib / "pkg/sub/__init__.py", "from . import leaf\n")
    write(lib / "pkg/sub/leaf.py", "value = __file__\n")
    write(lib / "pkg/__main__.py", "import sys\nprint('main', __name__, __file__, sys.argv[1:])\n")
    write(lib / "pkg/data.txt", "resource\n")
    write(lib / "space/one.py", "value = 1\n")
    write(lib / "solo.py", "value = 'solo from lib'\nif __name__ == '__main__': print(value)\n")
    write(lib / "broken.py", "def f(:\n    pass\n")
    write(lib / "raises.py", "import pkg.mod\npkg.mod.f()\n")
    write(lib / "needs.py", "import not_there\n")
    write(lib / "dir_only/readme.txt", "")
    write(lib / "both.py", "which = 'module'\n")
    write(lib / "both/readme.txt", "")


def compile_tree(python: str, lib: Path) -> None:
    subprocess.run([python, "-m", "compileall", "-q", str(lib)], check=False, capture_output=True)
    source = write(lib.parent / "made/bare.py", "value = 'sourceless'\n")
    code = f"import py_compile; py_compile.compile({str(source)!r}, {str(lib / 'bare.pyc')!r})"
    subprocess.run([python, "-c", code], check=True)


IMPORT_ALL = """
import importlib, sys
for name in ("pkg", "pkg.mod", "pkg.sub", "pkg.sub.leaf", "pkg.absent", "space", "space.one",
             "solo", "both", "broken", "raises", "needs", "bare", "dir_only", "absent", "late"):
    try:
        importlib.import_module(name)
    except Exception as e:
        print(name, type(e).__name__)
"""


def make_world(folder: Path, python: str, listed: bool = True, by_link: bool = False) -> Staged:
    """The tree in the folder `lib`, itself or a link to it on PYTHONPATH, tried, staged and ready
    to run."""
    lib = folder / "lib"
    make_tree(lib)
    compile_tree(python, lib)
    world = Staged(folder, python, roots=[lib], listed=[lib] if listed else [])
    world.lib = lib
    world.env = {"PYTHONPATH": str(lib)}
    if by_link:
        (folder / "link").symlink_to("lib")
        world.env = {"PYTHONPATH": str(folder / "link")}
    done = world.trial(["-c", IMPORT_ALL], world.env)
    assert done.returncode == 0 and not done.stderr, done.stderr
    world.stage()
    return world
