"""The options of brigade-ior, read from the list that the program itself is compiled with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Union

SOURCES = Path(__file__).parents[1] / "drivers/ior"
_ENTRY = re.compile(
    r"""^OPTION\((?:'(?P<letter>.)'|0),\s* "(?P<name>[^"]*)",\s* "(?P<other>[^"]*)",\s*
    (?P<kind>\w+),\s* (?P<field>\w+),\s* "(?P<unless_said>[^"]*)",\s*
    (?P<help>(?:\s*"[^"]*")+)\)$""",
    re.VERBOSE | re.MULTILINE,
)
Value = Union[int, str, tuple[str, ...], None]  # of a flag how often; of -O all


@dataclass(frozen=True)
class Option:
    letter: str  # or ""
    name: str
    other: str  # a second name, or ""
    kind: str  # FLAG, INT, LONG, SIZE or TEXT
    field: str
    unless_said: str
    help: str

    @property
    def said(self) -> str:
        """As it is written on a command line."""
        return f"-{self.letter}" if self.letter else f"--{self.name}"


@lru_cache(maxsize=1)
def options() -> tuple[Option, ...]:
    """All of them, in the order of their letters."""
    text = (SOURCES / "options.def").read_text(encoding="utf-8")
    found = []
    for entry in _ENTRY.finditer(text):
        groups = {key: value or "" for key, value in entry.groupdict().items()}
        groups["help"] = "".join(re.findall(r'"([^"]*)"', groups["help"]))
        found.append(Option(**groups))
    return tuple(found)


def folded(values: Mapping[str, Value]) -> dict[str, Value]:
    """The values with what directives (-O) say at the place of each option, as the program takes
    it; what is none stays, for the program to refuse."""
    found = dict(values)
    left: list[tuple[str, str]] = []  # words, and the field of those that a later one overrules
    given = values.get("directives")
    for one in given if isinstance(given, tuple) else ():
        for word in one.partition("#")[0].split(","):
            name, _, value = (text.strip() for text in word.partition("="))
            option = _named(name.lower())
            if not option or not value or option.letter == "O":
                left += [(word, "")] * bool(word.strip())
            elif option.kind != "FLAG":
                found[option.field] = value
            elif not value.isdecimal():
                left.append((word, ""))
            else:
                found[option.field] = int(value)
                left = [one for one in left if one[1] != option.field]
                if not int(value):  # must still be said: a preset may have it
                    left.append((word, option.field))
    return {**found, "directives": tuple(word for word, _ in left)}


def _named(name: str) -> Option | None:
    names = {text.lower(): one for one in options() for text in (one.other, one.name) if text}
    return names.get(name)


def words(values: Mapping[str, Value]) -> list[str]:
    """The command line for values by field; None and flags of 0 are left out. Directives (-O) come
    last: they win."""
    ordered = sorted(options(), key=lambda option: option.field == "directives")
    return [word for option in ordered for word in _said(option, values.get(option.field))]


def _said(option: Option, value: Value) -> Iterator[str]:
    if value is None:
        return
    if option.kind == "FLAG":
        yield from [option.said] * int(str(value))
        return
    for one in value if isinstance(value, tuple) else (value,):
        yield from (option.said, str(one))
