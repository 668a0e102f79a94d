"""When a module is not the one that the template has: it is made by hand, found elsewhere, or its
import was begun and had to be taken back. Each program runs both ways."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from warm_world import Warm


@pytest.fixture
def own(tmp_path: Path) -> Warm:
    return Warm(tmp_path, sys.executable)


def same(own: Warm, program: list[str], env: dict[str, str] | None = None) -> str:
    """What a rank and a plain run say alike."""
    plain = own.plain(program, env)
    (rank,) = own.ranks(program, env or {})
    assert (rank.refused, rank.said(), own.report["left"]) == ("", plain.said(), {})
    assert plain.returncode == 0, plain.stderr
    return plain.stdout


BY_HAND = {
    "module_from_spec": "import importlib.util as u\n"
    "made = u.module_from_spec(u.find_spec('thing'))\n"
    "print(hasattr(made, 'x'), 'thing' in sys.modules)\n"
    "made.__spec__.loader.exec_module(made)\n"
    "import thing; print(thing is made, thing.x)",
    "importlib_s_own_load": "import importlib.util as u, importlib._bootstrap as b\n"
    "spec = u.find_spec('thing'); made = b._load(spec)\n"
    "print(made is sys.modules['thing'], made.x, spec is made.__spec__, made.__loader__ is"
    " spec.loader)\n"
    "del sys.modules['thing']; import thing; print(thing is made, thing.x)",
    "a_module_made_while_its_import_waits": "import importlib.util as u\n"
    "class Finder:\n"
    "  def find_spec(self, name, path=None, target=None):\n"
    "    if name == 'other':\n"
    "      spec = u.spec_from_file_location('thing', 'thing.py'); made = u.module_from_spec(spec)\n"
    "      print(hasattr(made, 'x'), 'thing' in sys.modules)\n"
    "sys.meta_path.insert(0, Finder())\n"
    "try: import other\nexcept ImportError: print('none')\n"
    "import thing; print(thing.x)",
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_module_that_the_program_makes_by_hand_is_executed_anew(own: Warm, name: str) -> None:
    (own.cwd / "thing.py").write_text("x = 1\n")
    own.trial(["-c", "import thing"])
    same(own, ["-c", f"import sys\n{BY_HAND[name]}"])


def twice(own: Warm, text: str) -> dict[str, str]:
    """`thing` in two folders, as the same file: neither size nor time nor number tells them apart.
    The first folder is searched first."""
    for folder in ("first", "second"):
        (own.cwd / folder).mkdir()
    (own.cwd / "first/thing.py").write_text(text)
    os.link(own.cwd / "first/thing.py", own.cwd / "second/thing.py")
    return {"PYTHONPATH": f"{own.cwd}/first:{own.cwd}/second"}


def other_first(own: Warm) -> str:
    return f"import sys; sys.path.insert(1, '{own.cwd}/second')\n"


def test_a_module_that_is_found_at_another_place(own: Warm) -> None:
    env = twice(own, "place = __file__\n")
    own.trial(["-c", "import thing"], env)
    said = same(own, ["-c", other_first(own) + "import thing; print(thing.place)"], env)
    assert said.endswith("second/thing.py\n")


def test_a_module_that_another_only_asked_for_and_is_at_another_place(own: Warm) -> None:
    env = twice(own, "")
    (own.cwd / "asks.py").write_text(
        "import importlib.util\nplace = importlib.util.find_spec('thing').origin\n"
    )
    own.trial(["-c", "import asks"], env)
    text = "import asks; print(asks.place)"
    assert same(own, ["-c", text], env).endswith("first/thing.py\n")
    assert same(own, ["-c", other_first(own) + text], env).endswith("second/thing.py\n")


ASKS = {
    "imports_it": "try:\n  import thing\n  has = True\nexcept ImportError:\n  has = False\n",
    "looks_for_it": "import importlib.util as u\nhas = u.find_spec('thing') is not None\n",
}
STAND_IN = "t = sys.modules['thing'] = types.ModuleType('thing')"
PUT = {  # and whether there is such a module then
    f"{STAND_IN}; t.__spec__ = importlib.machinery.ModuleSpec('thing', None)": True,
    "import uuid; sys.modules['thing'] = uuid": True,
    "sys.modules['thing'] = None": False,
}


@pytest.mark.parametrize("is_there", [False, True], ids=["none_found", "one_found"])
@pytest.mark.parametrize("how", ASKS)
def test_what_the_program_has_put_there_by_the_name_of_a_module(
    own: Warm, how: str, is_there: bool
) -> None:
    (own.cwd / "asks.py").write_text(ASKS[how])
    if is_there:
        (own.cwd / "thing.py").write_text("")
    own.trial(["-c", "import importlib.util, asks"])
    for put, has in {"pass": is_there, **PUT}.items():
        text = f"import sys, types, importlib.machinery\n{put}\nimport asks; print(asks.has)"
        assert same(own, ["-c", text]) == f"{has}\n"


LOOKS = {
    "keeps_it": "old = sys.excepthook\n",
    "keeps_it_in_a_class": "class C:\n  old = sys.excepthook\nold = C.old\n",
    "keeps_it_in_a_function": "def f():\n  global old; old = sys.excepthook\nf()\n",
    "compares_it": "old = sys.excepthook is sys.__excepthook__\n",
    "asks_for_it_by_name": "old = getattr(sys, 'excepthook')\n",
    "asks_for_one_of_threads": "import threading\nold = threading.excepthook\n",
    "asks_for_one_that_is_not_there": "old = getattr(sys, 'tracebacklimit', None)\n",
    "asks_for_a_value": "old = sys.dont_write_bytecode\n",
}
SETS = """\
import sys, threading
def hook(*_): pass
sys.excepthook = threading.excepthook = hook
sys.tracebacklimit, sys.dont_write_bytecode = 9, True
"""


@pytest.mark.parametrize("how", LOOKS)
def test_who_looked_at_what_the_program_has_set_since(own: Warm, how: str) -> None:
    (own.cwd / "looks.py").write_text(f"import sys\n{LOOKS[how]}")
    (own.cwd / "above.py").write_text("import looks\n")
    own.trial(["-c", "import above"])
    show = "import above; old = above.looks.old; print(getattr(old, '__name__', old))"
    before, after = same(own, ["-c", show]), same(own, ["-c", SETS + show])
    assert before != after


TELLS = {
    "import sys\nsaid = sys.getrecursionlimit()": "sys.setrecursionlimit(777)",
    "import gc\nsaid = gc.isenabled()": "import gc; gc.disable()",
    "import gc\nsaid = gc.get_threshold()": "import gc; gc.set_threshold(5, 6, 7)",
    "import socket\nclass C: said = socket.getdefaulttimeout()\nsaid = C.said": (
        "import socket; socket.setdefaulttimeout(3)"
    ),
    "import csv\nsaid = csv.list_dialects()": "import csv; csv.register_dialect('mine')",
    "import signal\nsaid = callable(signal.getsignal(10))": (
        "import signal; signal.signal(10, lambda *_: None)"
    ),
}


@pytest.mark.parametrize("text", TELLS)
def test_who_asked_what_the_program_has_set_since(own: Warm, text: str) -> None:
    (own.cwd / "asks.py").write_text(text)
    own.trial(["-c", "import asks"])
    show = "import asks; print(asks.said)"
    before = same(own, ["-c", show])
    assert same(own, ["-c", f"import sys, threading\n{TELLS[text]}\n{show}"]) != before


def test_who_looks_at_it_later_is_shown_all_the_same(own: Warm) -> None:
    (own.cwd / "looks.py").write_text(
        "import sys, threading, os\ndef f(): return sys.excepthook\npid = os.getpid()\n"
    )
    own.trial(["-c", "import looks"])
    (rank,) = own.ranks(
        ["-c", SETS + "import looks, os; print(looks.f() is hook, looks.pid == os.getpid())"]
    )
    assert rank.said() == ("True False\n", "", 0)


LOG = "import logging, os\npid = os.getpid()\nlog = logging.getLogger('of.it')\n"
ASKS_LOGGERS = {
    "whether_it_is_enabled": "said = log.isEnabledFor(logging.INFO)\n",
    "whether_it_is_enabled_by_saying_something": "log.info('said'); said = ''\n",
    "what_its_level_is": "said = log.getEffectiveLevel()\n",
    "whether_it_has_handlers": "said = log.hasHandlers()\n",
    "for_handlers_of_the_root": "said = len(logging.root.handlers)\n",
    "for_the_level_of_another": "said = logging.getLogger('of').level\n",
    "for_handlers_of_its_own_in_a_function": "def f(): return len(log.handlers)\nsaid = f()\n",
    "whether_it_is_disabled": "said = log.disabled\n",
}
ENABLES = "logging.basicConfig(level=20, stream=sys.stdout)"
SETS_ALL = f"""\
{ENABLES}
logging.getLogger('of').setLevel(15)
logging.getLogger('of.it').addHandler(logging.NullHandler())
logging.getLogger('of.it').disabled = True"""
SAY = "import asks, os; print(asks.said, asks.pid == os.getpid())"


@pytest.mark.parametrize("how", ASKS_LOGGERS)
def test_what_a_module_asks_of_loggers_that_the_program_has_set_up(own: Warm, how: str) -> None:
    (own.cwd / "asks.py").write_text(LOG + ASKS_LOGGERS[how])
    (own.cwd / "above.py").write_text("import asks\n")
    own.trial(["-c", "import above"])
    sets = ENABLES if "enabled" in how else SETS_ALL
    show = "import logging, sys\n{}\nimport above, asks; print(asks.said, dir(logging.Logger))"
    alone = same(own, ["-c", show.format("")])
    assert same(own, ["-c", show.format(sets)]) != alone


UNTOUCHED = {
    "nothing": "",
    "a_handler_of_the_root": "logging.root.addHandler(logging.NullHandler())",
    "a_level_with_the_same_answers": "logging.root.setLevel(25)",
    "another_logger": "logging.getLogger('offal').setLevel(10)",
    "its_own_without_a_change": "logging.getLogger('of.it')",
}


@pytest.mark.parametrize("how", UNTOUCHED)
def test_a_module_that_would_be_told_the_same_by_loggers_is_shown(own: Warm, how: str) -> None:
    """That its own level is another one by then is its own work."""
    asks = "said = log.isEnabledFor(20), log.handlers, log.level\n"
    (own.cwd / "asks.py").write_text(
        f"{LOG}{asks}log.setLevel(10); said += (log.isEnabledFor(20), log.level)\n"
        "logging.getLogger('of').setLevel(40)\n"
    )
    own.trial(["-c", "import asks"])
    (rank,) = own.ranks(["-c", f"import logging\n{UNTOUCHED[how]}\n{SAY}"])
    assert rank.said() == ("(False, [], 0, True, 10) False\n", "", 0)


PARENTS = {"none": "", "its_own": "child = 'the package has its own'\n"}


@pytest.mark.parametrize("name", PARENTS)
def test_what_an_import_gave_to_packages_is_taken_back_with_it(own: Warm, name: str) -> None:
    """`late` imports package.child, and then what is now found elsewhere: it is executed as always,
    in a process in which package.child has not been imported."""
    env = twice(own, "")
    (own.cwd / "package").mkdir()
    (own.cwd / "package/__init__.py").write_text(PARENTS[name])
    (own.cwd / "package/child.py").write_text("")
    (own.cwd / "late.py").write_text(
        "import sys, package\n"
        "before = getattr(package, 'child', None), 'package.child' in sys.modules\n"
        "import package.child, thing\n"
    )
    own.trial(["-c", "import late"], env)
    text = "import late; print(late.before, late.package.child, late.thing)"
    same(own, ["-c", f"import package\n{text}"], env)
    said = same(own, ["-c", f"{other_first(own)}import package\n{text}"], env)
    assert "second/thing.py" in said


def test_a_file_that_is_written_on_with_an_encoding_that_has_a_mark(own: Warm) -> None:
    """Such a mark stands at the beginning of a file. The template's own file begins there; it
    is of the same kind, and can seek as well."""
    own.stdin = "appended"
    program = ["-c", "print('more')"]
    env = {"PYTHONIOENCODING": "utf-8-sig"}
    own.trial(program, env)
    assert same(own, program, env) == "before\nmore\n"
