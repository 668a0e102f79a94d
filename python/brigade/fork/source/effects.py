"""What a text does with others: sets something in them, or calls them.

    sets(text, package, is_own)    what a module's text sets in others, whatever is called of it
    Effects(text, package, is_own).before(place)
                                   {Doing}: what a script's text may have done before an import of
                                   its, of which a trial knows where it stands (trial.modules.place)

`package`: what `from . import` means; `is_own(name)`: whether what has a dotted name is the
program's own.

`settings.digits = 15`, or, with `from settings import table`, `table["digits"] = 15`,
`table.update(...)`; a class made of another's, a decorator. Told are dotted names ("settings",
"settings.table") of modules, or of what lies in them. Calls of functions are seen in a trial
(`called`); not those of C of an object's, as `variable.set(15)`, nor those in branches that the
trial did not take: with another rank, host or day a script may take these.

Before an import stands what has a smaller line, in the function that leads there, or what a
function does that is called on such a line; in a loop, all of it. Pure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Callable

from brigade.fork.source.conditions import Conditions
from brigade.fork.source.doings import MODULE, Doing, Scope, Scopes, read
from brigade.fork.source.homes import Homes
from brigade.fork.source.syntax import parsed


def sets(text: bytes | str, package: str, is_own: Callable[[str], bool]) -> set[str]:
    """Of calls only those of the program's own: others a trial sees when they happen."""
    scopes = _read(text, package, is_own, None).of
    found = {doing for scope in scopes.values() for _, doing in scope.does}
    return {doing.name for doing in found if doing.is_set or is_own(doing.name)}


def _read(
    text: bytes | str,
    package: str,
    is_own: Callable[[str], bool],
    conditions: Callable[[list[ast.stmt]], Conditions] | None,
) -> Scopes:
    statements = parsed(text) or []
    try:
        known = conditions(statements) if conditions else None
        return read(statements, Homes(statements, package), is_own, known)
    except RecursionError:
        return Scopes()


class Effects:
    def __init__(
        self, text: bytes | str, package: str = "", is_own: Callable[[str], bool] = lambda _: False
    ) -> None:
        found = _read(text, package, is_own, Conditions)
        self._scopes, self._crowded = found.of, found.crowded
        for scope in self._scopes.values():  # nearly all names are of nothing here
            scope.names = [one for one in scope.names if one[1] in self._scopes]
        self._done = self._closed()

    def before(self, place: Sequence[tuple[str, int]]) -> set[Doing]:
        """`place`: (function, line), from the script's own statement inwards."""
        found: set[Doing] = set()
        for depth, (name, line) in enumerate(place):
            scope = self._scopes.get(name)
            if scope is None:
                continue
            is_last = depth == len(place) - 1
            for at, doings in self._lines(scope):
                same = at == line and is_last and at in self._crowded
                if at < line or same or scope.is_repeated(at, line):
                    found |= doings
        return found

    def _lines(self, scope: Scope) -> Iterator[tuple[int, set[Doing]]]:
        for line, doing in scope.does:
            yield line, {doing}
        for line, called, is_open in scope.names:
            yield line, _opened(self._done.get(called, set()), is_open)

    def _closed(self) -> dict[str, set[Doing]]:
        """All that each function does, with those that it names."""
        done = {name: {doing for _, doing in one.does} for name, one in self._scopes.items()}
        more = True
        while more:
            more = False
            for name, scope in self._scopes.items():
                before = len(done[name])
                for _, called, is_open in scope.names:
                    done[name] |= _opened(done.get(called, set()), is_open)
                more |= len(done[name]) > before
        named = {called for scope in self._scopes.values() for _, called, _ in scope.names}
        for name, scope in self._scopes.items():
            if name != MODULE and (scope.is_decorated or name not in named):
                self._scopes[MODULE].names.append((scope.first, name, True))
        return done


def _opened(doings: set[Doing], is_open: bool) -> set[Doing]:
    return {doing._replace(is_open=True) for doing in doings} if is_open else doings
