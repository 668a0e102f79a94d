"""Which module imported which.

Exact with the output of `-X importtime`. Without it, from the order of the searches and the import
statements of the sources: whoever imports last and mentions the name has asked. A statement
inside a function counts only if no module says it at once. So does a search that found nothing get
its name. That is an inference, and marked so.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Protocol

from brigade.profile.phases import FIRST_MODULES
from brigade.profile.story import Search, Story

_STATEMENT = re.compile(
    r"^(?P<indent>[ \t]*)(?:from[ \t]+(?P<source>\.*[\w.]*)[ \t]+import[ \t]*"
    r"(?P<names>\([^)]*\)|[^\n;#]*)|import[ \t]+(?P<modules>[^\n;#]*)"
    r"|(?P<def>(?:async )?def )\w|class[ \t])",
    re.MULTILINE,
)
_MOST_BYTES = 4 << 20  # of one source


class ImportTime(Protocol):
    """One line of -X importtime, as `brigade.trace.importtime` reads it."""

    @property
    def name(self) -> str: ...
    @property
    def self_us(self) -> int: ...
    @property
    def parent(self) -> int: ...  # index into the list, -1: nobody


class Mentions:
    """The names that a module's source imports: at once, and inside its functions."""

    def __init__(self, text: str, package: str) -> None:
        self.at_once: dict[str, None] = {}  # in the order of the source
        self.later: dict[str, None] = {}
        inside: int | None = None  # the indent of the function that the lines are in
        for match in _STATEMENT.finditer(text):
            indent = len(match["indent"].expandtabs())
            if inside is not None and indent <= inside:
                inside = None
            if match["def"]:
                inside = indent if inside is None else inside
                continue
            names = self.at_once if inside is None else self.later
            if match["modules"] is not None or match["source"] is not None:
                names.update(dict.fromkeys(_imported(match, package)))


def _imported(match: re.Match[str], package: str) -> list[str]:
    found: list[str] = []
    if match["modules"] is not None:
        wanted = [word.split(" as ")[0].strip() for word in match["modules"].split(",")]
    else:
        source = match["source"]
        dots = len(source) - len(source.lstrip("."))
        base = package.split(".")[: len(package.split(".")) - dots + 1] if dots else []
        origin = ".".join([*filter(None, base), *filter(None, [source.lstrip(".")])])
        names = re.sub(r"#[^\n]*", "", match["names"]).strip("() \t\n").split(",")
        wanted = [origin, *(f"{origin}.{n.split(' as ')[0].strip()}" for n in names if n.strip())]
    for name in wanted:
        parts = name.split(".")
        found += [".".join(parts[:i]) for i in range(1, len(parts) + 1)]
    return [name for name in found if name]


def mentions(search: Search) -> Mentions:
    """Of the module that a search found; nothing if it has no source that can be read."""
    if not search.found.endswith(".py") and search.how != "script":
        return Mentions("", "")
    try:
        with open(search.found, encoding="utf-8", errors="replace") as text:
            source = text.read(_MOST_BYTES)
    except OSError:
        return Mentions("", "")
    if search.how == "script":
        return Mentions(source, "")
    is_package = os.path.basename(search.found).startswith("__init__.")
    return Mentions(source, search.name if is_package else search.name.rpartition(".")[0])


#: What sources say, by file and module: ranks import the same.
Sources = dict[tuple[str, str], Mentions]


def infer(story: Story, sources: Sources, known: Sequence[ImportTime] | None = None) -> None:
    """Says of each module of a process which file asked for it. `sources` is filled by the way."""
    modules = [s for s in story.searches if s.events and s.how in ("import", "script")]
    modules.sort(key=lambda search: search.events[0])
    _by_order(story, modules, sources)
    if known:
        _by_times(story, [search for search in modules if search.found], known)


class _Order:
    """The modules so far, each with who asked for it."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._said: dict[int, Mentions] = {}
        self._askers: dict[int, Search | None] = {}
        self._modules: list[Search] = []

    def add(self, search: Search, asker: Search | None) -> None:
        self._askers[id(search)] = asker
        key = (search.found, search.name)
        if key not in self._sources:
            self._sources[key] = mentions(search)
        self._said[id(search)] = self._sources[key]
        self._modules.append(search)

    def _path(self) -> list[Search]:
        """The newest module, who asked for it, who for that: they are being imported now."""
        found: list[Search] = []
        one: Search | None = self._modules[-1] if self._modules else None
        while one is not None:
            found.append(one)
            one = self._askers[id(one)]
        return found

    def asker(self, search: Search) -> Search | None:
        """Who says the name: the innermost module that is being imported, or the newest that was,
        if an import could have been missed there. Nobody: a library that has no source, the
        package, or the script."""
        path = self._path()
        others = reversed(self._modules)
        for said, where in (("at_once", path), ("later", path), ("at_once", others)):
            for one in where:
                if search.name in getattr(self._said[id(one)], said):
                    return one
        above = search.name.rpartition(".")[0]
        compiled = (one for one in path[:1] if one.kind == "extension")
        packages = (one for one in path if above and one.name == above)
        scripts = (one for one in path if one.how == "script")
        return next(compiled, None) or next(packages, None) or next(scripts, None)

    def lost(self, package: str, known: set[str]) -> tuple[str, Search | None]:
        """The name of a search that found nothing and named nothing: the first that somebody who
        is being imported says at once, and that was not found (`known`). `package`: whose folders
        were searched, "" for those of sys.path. And who says it."""
        for one in self._path():
            for name in self._said[id(one)].at_once:
                if name.rpartition(".")[0] == package and name not in known:
                    return name, one
        return "", None


def _name_lost(story: Story, search: Search, order: _Order, known: set[str]) -> None:
    marks = [story.marks[index] for index in search.events if story.marks[index].cause]
    causes = {mark.cause for mark in marks}
    package = marks[0].owner if causes == {"package path"} else ""
    search.name, asker = order.lost(package, known)
    if asker is not None:
        known.add(search.name)
        search.asker = asker.found
        for mark in marks:
            mark.sought = search.name


def _by_order(story: Story, modules: list[Search], sources: Sources) -> None:
    order = _Order(sources)
    known = {search.name for search in modules} | set(sys.builtin_module_names) | FIRST_MODULES
    for search in modules:
        if not search.found:
            if not search.name:
                _name_lost(story, search, order, known)
            continue
        if search.how == "script":
            order.add(search, None)
            continue
        asker = order.asker(search)
        search.asker = asker.found if asker else story.process.exe
        order.add(search, asker)


def _by_times(story: Story, modules: list[Search], known: Sequence[ImportTime]) -> None:
    """As the interpreter says it. A package stands there below the module for whose sake it was
    imported first: it is asked for by who asked for that."""
    found = {search.name: search for search in modules if search.how == "import"}
    script = next((search for search in modules if search.how == "script"), None)
    for line in known:
        search = found.get(line.name)
        if search is None:
            continue
        parent = line.parent
        while parent >= 0 and known[parent].name.startswith(line.name + "."):
            parent = known[parent].parent
        search.import_us = line.self_us
        above = found.get(known[parent].name) if parent >= 0 else script
        if above is None and parent >= 0:
            continue  # a module that is built in: the order tells who asked for it
        if above is None or (above is script and above.events[:1] > search.events[:1]):
            search.asker = story.process.exe
        else:
            search.asker = above.found
        search.certain = True
