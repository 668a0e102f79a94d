"""What a trial's programs, and modules of their own, do with others by their texts: events of the
kind `called`, beside those that the trial saw.

    note(ranks, modules, texts, read)

A module's text counts when it is executed, and when the program, or another module of its own,
calls what lies in it. A script's counts statement by statement, in all its branches: which are
taken may depend on the rank, the day, or the machine. Pure, but for `read`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Callable

from brigade.fork.plan import Module
from brigade.fork.source.effects import Effects, sets
from brigade.trial.modules import Event, RankModules, place

_INIT = "__init__.py"


def note(
    ranks: list[RankModules],
    modules: Mapping[str, Module],
    texts: Mapping[str, bytes],
    read: Callable[[str], bytes],
) -> None:
    """`texts`: of the program's own modules. `read(path)`: the text of another source."""

    def home(name: str) -> str:
        return module_of(name, modules)

    def is_own(name: str) -> bool:
        return home(name) in texts

    changes = {
        name: sorted(sets(text, _package(modules[name]), is_own)) for name, text in texts.items()
    }
    scripts: dict[str, Effects] = {}
    for rank in ranks:
        found = [*_of_modules(rank, changes), *_of_calls(rank, changes, modules)]
        for path in _scripts(rank):
            if path not in scripts:
                scripts[path] = Effects(read(path), _around(path, modules), is_own)
            found += _of_script(rank, path, scripts[path], modules)
        rank.events = sorted([*rank.events, *found], key=lambda event: event.executed)


def module_of(name: str, modules: Mapping[str, object]) -> str:
    """The module that has a dotted name, or in which that lies; or ""."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def _of_modules(rank: RankModules, changes: Mapping[str, list[str]]) -> Iterator[Event]:
    for number, execution in enumerate(rank.executions):
        for what in changes.get(execution.module, ()):
            yield Event(execution.module, "called", what, number + 1)


def _of_calls(
    rank: RankModules, changes: Mapping[str, list[str]], modules: Mapping[str, Module]
) -> Iterator[Event]:
    for event in rank.events:
        if event.what == "called":
            for what in changes.get(module_of(event.detail, modules), ()):
                yield event._replace(detail=what)


def _scripts(rank: RankModules) -> set[str]:
    asked = [event for event in rank.events if event.what == "asks" and not event.module]
    files = [place(event.detail)[0] for event in asked]
    return {os.path.join(rank.cwd, file) for file in files if file}


def _of_script(
    rank: RankModules, path: str, effects: Effects, modules: Mapping[str, Module]
) -> Iterator[Event]:
    """Something can be done with a module when it is there. What is called of a module, and what is
    set in one, the trial has seen if it was done: of that counts what was maybe left undone."""
    done: set[str] = set()
    for event in rank.events:
        if event.what != "asks" or event.module:
            continue
        file, lines = place(event.detail)
        if os.path.join(rank.cwd, file) != path:
            continue
        for doing in sorted(effects.before(lines)):
            name, home = doing.name, module_of(doing.name, modules)
            of_module = name if doing.is_set else name.rpartition(".")[0]
            if name in done or (home == of_module and not doing.is_open):
                continue
            if not home or rank.ends.get(home, event.executed + 1) <= event.executed:
                done.add(name)
                yield Event("", "called", name, event.executed)


def _package(module: Module) -> str:
    """What `from . import` in it means."""
    is_package = os.path.basename(module.origin) == _INIT
    return module.name if is_package else module.name.rpartition(".")[0]


def _around(path: str, modules: Mapping[str, Module]) -> str:
    """The package in whose folder a script lies, as that of `-m package.script` does; or ""."""
    init = os.path.join(os.path.dirname(path), _INIT)
    return next((module.name for module in modules.values() if module.origin == init), "")
