"""A module in C that a rank executes anew gives back what it was; what it did then is done."""

from __future__ import annotations

import pytest
from module_in_c import EACH_TIME, MULTIPHASE, SINGLE, build, headers
from warm_world import Warm

KINDS = (MULTIPHASE, SINGLE, EACH_TIME)

# what an execution does besides importing, and what a program sees of it
DOES = """
import atexit, os, sys, warnings
from time import sleep
try: import fails
except ValueError: pass
try: import nowhere
except ImportError: pass
sys.path.append('/more'); sys.marked = 1; sys.modules['by_hand'] = sys
os.environ['SET'] = 'by it'; os.environ.pop('GONE', None)
warnings.filterwarnings('always', 'of mine')
import gets; gets.more = 2
def bye(): print('bye')
atexit.register(bye)
"""
SHOW = """
import sys
def show(*more):
    import os, warnings
    print(*more, list(sys.modules), sys.path, getattr(sys, 'marked', None))
    print(os.environ.get('SET'), os.environ.get('GONE'), os.getenv('SET'))
    print([(f[0], getattr(f[1], 'pattern', f[1])) for f in warnings.filters])
"""
ELSEWHERE = "sys.path.insert(1, 'second')\n"  # where `thing` is found then


@pytest.fixture
def folders(warm: Warm) -> Warm:
    """`thing` in two folders, of which the first is searched first, and what in_c imports."""
    if not headers(warm.python):
        pytest.skip("needs Python.h")
    for folder in ("first", "second"):
        (warm.cwd / folder).mkdir()
        (warm.cwd / folder / "thing.py").write_text(
            "import os, sys\nplace, stack, frame = __file__, [], sys._getframe()\n"
            "while frame: stack.append(frame.f_code.co_filename); frame = frame.f_back\n"
            "if os.environ.get('FAIL'): raise ValueError('of thing')\n"
        )
    (warm.cwd / "gets.py").write_text("")
    (warm.cwd / "fails.py").write_text("import colorsys\nraise ValueError\n")
    (warm.cwd / "only.py").write_text("import thing, quopri\n")
    warm.env = {"PYTHONPATH": f"{warm.cwd}/first:{warm.cwd}", "GONE": "not yet"}
    return warm


def same(world: Warm, program: str) -> str:
    arguments = ["-c", SHOW + program]
    plain = world.plain(arguments)
    (rank,) = world.ranks(arguments)
    assert (rank.refused, world.report["left"]) == ("", {})
    assert rank.said() == plain.said()
    return plain.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_what_its_execution_did_is_done_though_it_gives_back_what_it_was(
    folders: Warm, kind: str
) -> None:
    build(folders.cwd, folders.python, kind, "only json.decoder thing", DOES)
    folders.trial(["-c", "import in_c"])
    asks = "import in_c; show(hasattr(in_c, 'function')); import gets; print(gets.more)\n"
    same(folders, asks)
    said = same(folders, f"{ELSEWHERE}import thing; print(thing.place)\n{asks}")
    assert "second/thing.py\n" in said and "quopri" in said and said.endswith("bye\n")
    same(folders, f"{ELSEWHERE}import gets; gets.more = 1; sys.marked = 0\n{asks}")


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_done_once_as_such_a_module_is_executed(folders: Warm, kind: str) -> None:
    build(folders.cwd, folders.python, kind, "only thing", DOES)
    folders.trial(["-c", "import in_c"])
    again = "for name in ('in_c', 'only', 'gets'): del sys.modules[name]\nimport in_c; show()\n"
    said = same(folders, f"{ELSEWHERE}import in_c; show()\n{again}")
    assert said.count("'only'") == (2 if kind == EACH_TIME else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_shows_that_its_imports_are_made_for_it(folders: Warm, kind: str) -> None:
    build(folders.cwd, folders.python, kind, "thing")
    folders.trial(["-c", "import in_c"])
    frames = "print([name for name in sys.modules['thing'].stack if 'importlib' not in name])\n"
    same(folders, f"{ELSEWHERE}import in_c\nprint(sys.modules['thing'].place)\n{frames}")
    arguments = ["-c", f"import os, sys\n{ELSEWHERE}os.environ['FAIL'] = '1'\nimport in_c\n"]
    plain, (rank,) = folders.plain(arguments), folders.ranks(arguments)
    assert "of thing" in plain.stderr and rank.said() == plain.said()


def test_what_it_asks_for_that_is_there_already_is_a_part_of_its_import(folders: Warm) -> None:
    build(folders.cwd, folders.python, MULTIPHASE, "thing json")
    folders.trial(["-c", "import thing, json, in_c"])
    said = same(folders, "import in_c; show()")
    assert "'json.decoder'" in said
