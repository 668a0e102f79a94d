"""What texts do with others: modules of a program's own, and scripts before their imports."""

from __future__ import annotations

import ast

import pytest

from brigade.fork.source.effects import Effects, sets
from brigade.fork.source.homes import Homes

OWN = ("settings", "base", "config", "own", "pkg")


def is_own(name: str) -> bool:
    return name.partition(".")[0] in OWN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import settings\nsettings.digits = 15", {"settings"}),
        ("import settings as s\ndef f():\n    s.digits += 1", {"settings", "settings.digits"}),
        ("import pkg.settings\npkg.settings.digits = 15", {"pkg.settings"}),
        ("from pkg import settings\nsettings.digits = 15", {"pkg.settings"}),
        ("from settings import table\ntable['digits'] = 15", {"settings.table"}),
        ("from base import v\nv.update(x=1)", {"base.v", "base.v.update"}),
        ("from settings import table\ndel table.x", {"settings.table"}),
        ("from . import settings\nsettings.a, x = 1, 2", {"own.settings"}),
        ("from .settings import table\ntable[0] = 1", {"own.settings.table"}),
        ("from ..settings import table\ntable[0] = 1", {"settings.table"}),
        ("import settings\nsetattr(settings, 'digits', 15)", {"settings"}),
        ("import settings\nsettings.get('x').y = 1", {"settings.get", "settings.get.*"}),
        ("import settings\nfor settings.x in range(3): pass", {"settings"}),
        ("import settings\nwith open('x') as settings.f: pass", {"settings"}),
        ("import torch\ntorch.backends.x = 1", {"torch.backends"}),
        ("import torch\ntorch.zeros(3)", set()),
        ("import numpy as np\nx = np.zeros(3)\nx[0] = 1", set()),
        ("from base import c\n@c.register\ndef f(x): pass", {"base.c", "base.c.register"}),
        ("from base import Solver\nclass Fast(Solver): pass", {"base.Solver"}),
        ("from torch import Module\nclass Net(Module): pass", set()),
        ("from base import v\nv.set(1)", {"base.v", "base.v.set"}),
        ("from config import cfg\nparser.parse_args(namespace=cfg)", {"config.cfg"}),
        ("import heapq\nfrom base import queue\nheapq.heappush(queue, 1)", {"base.queue"}),
        ("import os\nos.environ['X'] = '1'", set()),
        ("import sys\nsys.path.append('x')", set()),
        ("import settings\nx = {}\nx['a'] = settings.x", set()),
        ("import settings\nclass A:\n    def f(self): self.x = settings.x", set()),
        ("import settings, json\nprint(settings.x, json.dumps(settings.x))", set()),
        ("import argparse\nargs = argparse.ArgumentParser().parse_args()\nargs.x = 1", set()),
        ("no python", set()),
    ],
)  # fmt: skip
def test_what_is_imported_and_changed_is_told(text: str, expected: set[str]) -> None:
    assert sets(text.encode(), "own", is_own) == expected


@pytest.mark.parametrize(
    "text",
    [
        "c = settings.get()\nc.x = 1",
        "c = d = settings.cfg\nd.x = 1",
        "a, c = 1, settings.cfg\nc.x = 1",
        "for c in settings.all: c.x = 1",
        "[one for one in settings.all if one.update(x=1)]",
        "with settings.one() as c: c.x = 1",
        "def f(a, c): c.x = 1\nf(1, settings.cfg)",
        "def f(a, **k): k['c'].x = 1\nf(1, c=settings.cfg)",
        "def f(): return settings.cfg\nf().x = 1",
        "class A:\n    def __init__(self, c): self.c = c\n    def f(self): self.c.x = 1",
        "if (c := settings.cfg): c.x = 1",
        "(settings.a if x else y).z = 1",
        "getattr(settings, 'cfg').x = 1",
        "vars(settings)['x'] = 1",
        "settings.__dict__.update(x=1)",
        "try:\n    pass\nexcept E:\n    settings.x = 1",
        "c = settings.cfg\nc['a']['b'] = 1",
        "from settings import *\ncfg.x = 1",
        "from settings import table\ntable += [1]",
        "from settings import numbers\nnext(numbers)",
        "import importlib\ns = importlib.import_module('settings')\ns.cfg.x = 1",
        "s = __import__('settings')\ns.cfg.x = 1",
        "import sys\nsys.modules['settings'].cfg.x = 1",
        "Sub = type('Sub', (settings.Base,), {})",
        "from settings import cfg\nexec('cfg.x = 1')",
    ],
)
def test_another_name_for_it_is_followed(text: str) -> None:
    text = f"import settings\n{text}\n" + ("A(settings)" if "class A" in text else "")
    found = sets(text, "", is_own)
    assert any(name.startswith("settings") for name in found), found


def test_homes_of_a_name_that_goes_round_in_circles_are_found() -> None:
    text = "import settings\na = b\nb = c\nc = a.next\nc = settings.first\n"
    statements = ast.parse(text).body
    found = Homes(statements).of(ast.parse("a").body[0].value)  # type: ignore
    assert "settings.first" in found and len(found) < 10


SCRIPT = """\
import settings
def setup():
    import torch
    import transformers
def train():
    settings.digits = 15
    import late
def main():
    setup()
    train()
    for name in names:
        load(name)
def load(name):
    import_module(name)
    settings.loaded = name
if rank > 2:
    settings.rank = 3
import model
main()
"""


@pytest.mark.parametrize(
    ("place", "changed"),
    [
        ([("<module>", 1)], False),
        ([("<module>", 16)], False),
        ([("<module>", 18)], True),
        ([("<module>", 1 << 30)], True),
        ([("setup", 3)], False),
        ([("main", 9), ("setup", 3)], False),
        ([("main", 10), ("train", 6)], False),
        ([("main", 10), ("train", 7)], True),
        ([("main", 11), ("setup", 3)], True),
        ([("load", 14)], False),
        ([("main", 12), ("load", 14)], True),
    ],
)
def test_what_stands_before_an_import_is_told(place: list[tuple[str, int]], changed: bool) -> None:
    found = Effects(SCRIPT, is_own=is_own).before(place)
    assert bool([doing for doing in found if doing.name == "settings"]) == changed


@pytest.mark.parametrize(
    ("text", "line", "changed"),
    [
        ("import settings; settings.x = 1; import late", 1, True),
        ("for one in [1, 2]:\n    import_module(one)\n    settings.x = 1", 2, True),
        ("while more():\n    import_module(one)\n    settings.x = 1", 2, True),
        ("[f(one) for one in x]\ndef f(x):\n    import_module(x)\n    settings.x = 1", 1, True),
        ("@app.command()\ndef main():\n    settings.x = 1\napp()\nimport late", 5, True),
        ("def never():\n    settings.x = 1\nimport late", 3, True),
        ("class A:\n    def f(self):\n        settings.x = 1\nimport late\nA().f()", 4, False),
        ("class A:\n    def f(self):\n        settings.x = 1\nA()\nimport late", 5, True),
        ("class A:\n    settings.x = 1\nimport late", 3, True),
        (
            "def f():\n    def g():\n        settings.x = 1\n    return g\nf()()\nimport late",
            6,
            True,
        ),
        ("import late\nsettings.x = 1", 1, False),
    ],
)
def test_whatever_may_come_first_does(text: str, line: int, changed: bool) -> None:
    text = text.replace("import settings; ", "")
    effects = Effects(f"{text}\nimport settings\n", is_own=is_own)
    assert bool(effects.before([("<module>", line)])) == changed


OPEN = ["rank > 2", "time() > 5", "found()"]
GIVEN = ["'--double' in sys.argv", "__name__ == '__main__'", "os.environ.get('DOUBLE')"]


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("if {}:\n    settings.x = 1", OPEN),
        ("if 1:\n    pass\nelif {}:\n    settings.x = 1", OPEN),
        ("while {}:\n    settings.x = 1", OPEN),
        ("for one in f(): settings.x = 1", [""]),
        ("{} and settings.f()", OPEN),
        ("settings.f() if {} else 2", OPEN),
        ("[settings.f() for x in (1, 2) if {}]", OPEN),
        ("if {}: exit()\nsettings.x = 1", OPEN),
        ("if {}:\n    raise ValueError\nsettings.x = 1", OPEN),
        ("for one in sys.argv:\n    if {}: break\n    settings.x = 1", OPEN),
        ("def f():\n    if {}: return\n    settings.x = 1\nf()", OPEN),
        ("def f():\n    settings.x = 1\nif {}: f()", OPEN),
        ("try:\n    f()\nexcept ValueError:\n    settings.x = 1", [""]),
        ("run = lambda: settings.f()\nrun()", [""]),
    ],
)
def test_what_hangs_on_more_than_what_is_given_is_open(text: str, conditions: list[str]) -> None:
    text = "import os, settings, sys\nfrom time import time\n" + text + "\n"
    for condition in conditions:
        found = Effects(text.format(condition), is_own=is_own).before([("<module>", 99)])
        assert [doing for doing in found if doing.is_open], (condition, found)
    for condition in GIVEN if conditions == OPEN else ():
        found = Effects(text.format(condition), is_own=is_own).before([("<module>", 99)])
        assert found and not [doing for doing in found if doing.is_open], (condition, found)


def test_what_is_done_where_an_import_fails_is_not_open() -> None:
    text = "import settings\ntry:\n    import torch\nexcept ImportError:\n    settings.x = 1\n"
    found = Effects(text, is_own=is_own).before([("<module>", 99)])
    assert [(doing.name, doing.is_open) for doing in found] == [("settings", False)]
