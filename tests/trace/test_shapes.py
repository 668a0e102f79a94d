"""The tables of calls agree: the reports' kinds, Python's shapes, the tracer's."""

from __future__ import annotations

import re
from pathlib import Path

from brigade.trace.events import KIND_OF
from brigade.trace.ranks import RANK_NAMES, SEARCH_NAMES
from brigade.trace.shapes import SHAPES, Shape

SOURCE = Path(__file__).resolve().parents[2] / "src/trace"


def test_the_tracer_and_the_readers_know_the_same_calls() -> None:
    rows = re.findall(r"^CALL\((.*)\)$", (SOURCE / "calls.def").read_text(), re.MULTILINE)
    native = {}
    for row in rows:
        name, *numbers = row.split(", ")
        native[name] = Shape(*(-1 if n == "NO" else int(n) for n in numbers))
    assert native == SHAPES
    assert set(native) == set(KIND_OF)


def test_the_tracer_and_the_readers_keep_the_same_of_the_environment() -> None:
    rank = re.search(r"names\[\] = \{(.*?)\}", (SOURCE / "look.c").read_text(), re.DOTALL)
    kept = re.search(r"searching\[\] = \{(.*?)\}", (SOURCE / "file.c").read_text(), re.DOTALL)
    assert rank and tuple(re.findall(r'"(\w+)="', rank[1])) == RANK_NAMES
    assert kept and set(re.findall(r'"(\w+)="', kept[1])) == set(SEARCH_NAMES)
