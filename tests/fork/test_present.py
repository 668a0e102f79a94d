"""Which modules a text asks for in sys.modules."""

from __future__ import annotations

import pytest

from brigade.fork.source.present import present

ASKS = [
    "import sys\nHAVE = 'thing' in sys.modules",
    "import sys as s\nif s.modules.get('thing') is not None: x = 1",
    "import sys\nthing = sys.modules['thing']",
    "from sys import modules\nclass C:\n  have = 'thing' in modules",
    "import sys\nTHINGS = ['thing']\nHAVE = [one for one in THINGS if one in sys.modules]",
]
ASKS_NOT = [
    "import sys\ndef f(): return 'thing' in sys.modules",
    "import sys\nHAVE = lambda: 'thing' in sys.modules",
    "HAVE = 'thing' in names",
    "import sys\nthis = sys.modules[__name__]\nNAME = 'thing'",
    "import sys\nsys.modules['thing'] = NAME = 'thing'",
    "def f(self): pass\nf.modules, 'thing'",
    "import sys\nHAVE = 'thing' in sys.modules\n  wrong",
]


@pytest.mark.parametrize("text", ASKS)
def test_its_own_statements_ask_for_a_module(text: str) -> None:
    assert "thing" in present(text.encode())


@pytest.mark.parametrize("text", ASKS_NOT)
def test_who_asks_later_or_for_something_else_asks_for_none(text: str) -> None:
    assert present(text.encode()) == set()
