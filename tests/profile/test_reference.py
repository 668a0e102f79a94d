"""The reference page names everything that a profile has."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from brigade.profile import profile
from brigade.trace.events import KINDS

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/profile.md").read_text()
NAMES = [
    *(field.name for field in dataclasses.fields(profile.Profile)),
    *profile.Cell._fields, *profile.PHASES, *profile.CAUSES, *KINDS,
    *(f.name for kind in profile._LISTS.values() for f in dataclasses.fields(kind)),
]  # fmt: skip


@pytest.mark.parametrize("name", sorted({*NAMES} - {"brigade", "made", "rank"}))
def test_the_page_explains(name):
    assert f"`{name}`" in PAGE
