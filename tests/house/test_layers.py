"""The folders of src/ use each other as docs/design/0001 says: only what stands above."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/design/0001-architecture.md").read_text()
SUFFIXES = (".c", ".h", ".inc", ".def")
SOURCES = [path for path in (ROOT / "src").rglob("*") if path.suffix in SUFFIXES]
LAYERS = re.findall(r"\bsrc/(\w+)/", PAGE.partition("## Layers")[2].partition("Languages:")[0])
EXCEPTION = "`view/state.h`"


def uses() -> set[tuple[str, str, str]]:
    """(folder, folder that it includes from, what), for each include across folders."""
    found = set()
    for path in SOURCES:
        own = path.relative_to(ROOT / "src").parts[0]
        for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
            other = name.split("/")[0]
            if "/" in name and other not in (own, "brigade"):
                found.add((own, other, name))
    return found


def test_every_folder_has_its_place_on_the_page():
    assert {path.relative_to(ROOT / "src").parts[0] for path in SOURCES} <= set(LAYERS)


def test_no_folder_includes_from_one_below_it():
    assert EXCEPTION in PAGE
    assert {("stage", "image"), ("view", "image")} <= {(own, other) for own, other, _ in uses()}
    wrong = [
        f"src/{own}/ includes {name}"
        for own, other, name in sorted(uses())
        if f"`{name}`" != EXCEPTION
        and (other not in LAYERS or LAYERS.index(other) > LAYERS.index(own))
    ]
    assert wrong == []
