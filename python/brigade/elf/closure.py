"""Everything that a program is loaded with before its own first instruction, and what it lacks.

ld.so loads breadth first: the program, LD_PRELOAD, then what each needs in its order. A name that
one of the loaded objects has already (as it was asked for, or its soname) is not searched again.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from brigade.elf.file import ElfFile, NotElf, Symbol
from brigade.elf.search import Found, Search

_MOST = 5_000  # objects


@dataclass
class Loaded:
    """One object; `chain` leads from it to the program."""

    elf: ElfFile
    names: set[str]
    asked_by: Loaded | None
    search: Found | None = None

    @property
    def chain(self) -> list[ElfFile]:
        return [self.elf, *(self.asked_by.chain if self.asked_by else [])]


@dataclass
class Missing:
    """A library that somebody needs and that was not found, or that is none."""

    name: str
    needed_by: Loaded
    search: Found


@dataclass
class LacksVersion:
    """A version that somebody needs and that the library found does not define."""

    version: str
    needed_by: Loaded
    library: Loaded


@dataclass
class Closure:
    objects: list[Loaded] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    versions: list[LacksVersion] = field(default_factory=list)

    def defined(self) -> set[str]:
        """The symbols that its objects define. Reads every file's symbols."""
        return {one.name for loaded in self.objects for one in loaded.elf.symbols() if one.defined}

    def undefined(self, known: Container[str] = ()) -> Iterator[tuple[Loaded, Symbol]]:
        """Symbols that somebody needs, nobody defines, and are not `known`. Reads every file's."""
        defined: set[str] = set()
        wanted: list[tuple[Loaded, Symbol]] = []
        for loaded in self.objects:
            for symbol in loaded.elf.symbols():
                if symbol.defined:
                    defined.add(symbol.name)
                elif not symbol.weak:
                    wanted.append((loaded, symbol))
        for loaded, symbol in wanted:
            if symbol.name not in defined and symbol.name not in known:
                yield loaded, symbol


def close(elf: ElfFile, search: Search, within: Closure | None = None) -> Closure:
    """What ld.so loads for a program; or with `within`, the closure of a program that runs, for a
    library that it opens: `objects` are then all, what is lacked is only what that lacks."""
    if within is None:
        elf = replace(elf, path=os.path.realpath(elf.path))
    program = within.objects[0] if within else None
    first = Loaded(elf, {elf.path, elf.soname or elf.path}, program)
    closure = Closure([*(within.objects if within else []), first])
    start = len(closure.objects) - 1
    if within is None:
        _add_loader(closure, search, first)
        for name in search.env.get("LD_PRELOAD", "").replace(":", " ").split():
            _add(closure, search, name, first, optional=True)
    for loaded in islice(closure.objects, start, None):  # grows
        for name in loaded.elf.needed:
            if len(closure.objects) < _MOST:
                _add(closure, search, name, loaded)
    closure.versions = list(_lacking(closure, start))
    return closure


def _add_loader(closure: Closure, search: Search, program: Loaded) -> None:
    """ld.so itself, which is there before anything is searched."""
    if not program.elf.interpreter:
        return
    with suppress(OSError, NotElf):
        elf = search.read(program.elf.interpreter)
        closure.objects.append(Loaded(elf, {elf.path, elf.soname or elf.path}, program))


def _add(
    closure: Closure, search: Search, name: str, by: Loaded, *, optional: bool = False
) -> None:
    if _known(closure, name) or any(missing.name == name for missing in closure.missing):
        return
    found = search.find(name, by.chain)
    if found.elf is None or found.path is None:
        if not optional:
            closure.missing.append(Missing(name, by, found))
        return
    real = os.path.realpath(found.path)
    for loaded in closure.objects:
        if os.path.realpath(loaded.elf.path) == real:
            loaded.names.add(name)
            return
    closure.objects.append(Loaded(found.elf, {name, found.elf.soname or name}, by, found))


def _known(closure: Closure, name: str) -> Loaded | None:
    return next((loaded for loaded in closure.objects if name in loaded.names), None)


def _lacking(closure: Closure, start: int) -> Iterator[LacksVersion]:
    """A library without any versions satisfies every wish, with a warning."""
    for loaded in closure.objects[start:]:
        for name, versions in loaded.elf.versions_needed.items():
            library = _known(closure, name)
            if library is None or not library.elf.versions_defined:
                continue
            for version in versions:
                if version not in library.elf.versions_defined:
                    yield LacksVersion(version, loaded, library)
