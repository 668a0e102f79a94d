"""Reads what `python -X importtime` says on standard error: what each import took by itself.

A line is written when an import ends, so a module comes after those that it imported; two spaces
more stand for one level. Other lines of the program may lie between.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_LINE = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \| (\s*)(\S+)\s*$")
_INDENT = 2


class Import(NamedTuple):
    """One import. `parent` is the index of who imported it in the list, -1: the program."""

    name: str
    self_us: int
    cumulative_us: int
    depth: int
    parent: int = -1


def read(text: str | Iterable[str]) -> list[Import]:
    """The imports in `text` (or its lines), in the order in which they ended."""
    found: list[Import] = []
    waiting: list[int] = []  # imports whose importer has not ended yet
    for line in text.splitlines() if isinstance(text, str) else text:
        match = _LINE.search(line)
        if not match:
            continue
        depth = len(match[3]) // _INDENT
        index = len(found)
        while waiting and found[waiting[-1]].depth > depth:
            child = waiting.pop()
            if found[child].depth == depth + 1:
                found[child] = found[child]._replace(parent=index)
        found.append(Import(match[4], int(match[1]), int(match[2]), depth))
        waiting.append(index)
    return found
