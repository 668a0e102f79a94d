"""What a module's text sets in other modules."""

from __future__ import annotations

import pytest

from brigade.fork.effects import sets


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import settings\nsettings.digits = 15", {"settings"}),
        ("import settings as s\ndef f():\n    s.digits += 1", {"settings"}),
        ("import pkg.settings\npkg.settings.digits = 15", {"pkg.settings"}),
        ("from pkg import settings\nsettings.digits = 15", {"pkg.settings"}),
        ("from settings import table\ntable['digits'] = 15", {"settings.table"}),
        ("from settings import table\ntable.update(digits=15)", {"settings.table"}),
        ("from settings import table\ndel table.x", {"settings.table"}),
        ("from . import settings\nsettings.a, x = 1, 2", {"own.settings"}),
        ("from .settings import table\ntable[0] = 1", {"own.table"}),
        ("import settings\nsetattr(settings, 'digits', 15)", {"settings"}),
        ("import settings\nsettings.get('x').y = 1", {"settings"}),
        ("import os\nos.environ['X'] = '1'", set()),
        ("import sys\nsys.path.append('x')", set()),
        ("import settings\nx = {}\nx['a'] = settings.x", set()),
        ("import settings\nclass A:\n    def f(self): self.x = settings.x", set()),
        ("import settings\nprint(settings.x)", set()),
        ("no python", set()),
    ],
)
def test_what_is_imported_and_changed_is_told(text: str, expected: set[str]) -> None:
    assert sets(text.encode(), "own.module") == expected
