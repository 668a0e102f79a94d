"""What a text does with others: sets something in them, or calls them.

    effects = Effects(text, package, is_own)
    effects.all()          what a module's text sets in others, whatever is called
    effects.before(place)  what a script's text may have done before an import of its, of which a
                           trial knows where it stands (trial.modules.place)

`settings.digits = 15`, or, with `from settings import table`, `table["digits"] = 15`,
`table.update(...)`; a class made of another's, a decorator. Told are dotted names ("settings",
"settings.table") of modules, or of what lies in them. Calls of functions are seen in a trial
(`called`); not those of C of an object's, as `variable.set(15)`, nor those in branches that the
trial did not take: with another rank, host or day a script may take these.

Before an import stands what has a smaller line, in the function that leads there, or what a
function does that is called on such a line; in a loop, all of it. Pure. Whoever is not sure says
that it does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Callable, NamedTuple

from brigade.fork.choices import defaults, parsed
from brigade.fork.homes import Homes, is_library

MODULE = "<module>"
_NO_LINE = 1 << 40
# these change what they are called of
_CHANGES = frozenset(
    "add append clear discard extend insert pop popitem put register remove reverse set setdefault"
    " sort update".split()
)
# what these are given they change, or leave as it is
_LIBRARY_CHANGES = frozenset(["bisect", "heapq", "random"])
_CHANGING = frozenset(["setattr", "delattr", "exec"])
_READING = frozenset(
    "add_argument append critical debug endswith error exception extend format get info index join"
    " log startswith warning write".split()
)
# of these, what programs set is looked at when it is used, or compared where a module is shown
_USED_LATE = frozenset(["sys", "os", "warnings", "logging", "__future__"])
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class _Doing(NamedTuple):
    """`is_set`: something is set in what has that name; else it is called, or handed on."""

    name: str
    is_set: bool


@dataclass
class _Scope:
    """A function, or the text's own statements, or a class, which names its functions. `first`: its
    line."""

    first: int
    is_decorated: bool = False
    does: list[tuple[int, _Doing]] = field(default_factory=list)
    names: list[tuple[int, str]] = field(default_factory=list)  # that may be functions, or classes
    loops: list[tuple[int, int]] = field(default_factory=list)

    def is_repeated(self, line: int, other: int) -> bool:
        """Whether a loop has both."""
        return any(a <= line <= z and a <= other <= z for a, z in self.loops)


class Effects:
    """`package`: what `from . import` means; `is_own(name)`: whether what has a dotted name is the
    program's own."""

    def __init__(
        self, text: bytes | str, package: str = "", is_own: Callable[[str], bool] = lambda _: False
    ) -> None:
        statements = parsed(text) or []
        self._is_own = is_own
        self._scopes = {MODULE: _Scope(0)}
        self._crowded: set[int] = set()  # lines with several statements
        try:
            self._homes = Homes(statements, package)
            self._block(statements, MODULE)
        except RecursionError:
            self._homes, self._scopes = Homes([]), {}
        self._done = self._closed()

    def all(self) -> set[str]:
        """Of calls only those of the program's own: others a trial sees when they happen."""
        found = {doing for scope in self._scopes.values() for _, doing in scope.does}
        return {doing.name for doing in found if doing.is_set or self._is_own(doing.name)}

    def before(self, place: Sequence[tuple[str, int]]) -> set[str]:
        """`place`: (function, line), from the script's own statement inwards."""
        found: set[_Doing] = set()
        for depth, (name, line) in enumerate(place):
            scope = self._scopes.get(name)
            if scope is None:
                continue
            is_last = depth == len(place) - 1
            for at, doings in self._lines(scope):
                same = at == line and is_last and at in self._crowded
                if at < line or same or scope.is_repeated(at, line):
                    found |= doings
        return {doing.name for doing in found}

    def _lines(self, scope: _Scope) -> Iterator[tuple[int, set[_Doing]]]:
        for line, doing in scope.does:
            yield line, {doing}
        for line, called in scope.names:
            yield line, self._done.get(called, set())

    def _closed(self) -> dict[str, set[_Doing]]:
        """All that each function does, with those that it names."""
        done = {name: {doing for _, doing in one.does} for name, one in self._scopes.items()}
        more = True
        while more:
            more = False
            for name, scope in self._scopes.items():
                before = len(done[name])
                done[name].update(*(done.get(called, set()) for _, called in scope.names))
                more |= len(done[name]) > before
        named = {called for scope in self._scopes.values() for _, called in scope.names}
        for name, scope in self._scopes.items():
            if name != MODULE and (scope.is_decorated or name not in named):
                self._scopes[MODULE].names.append((scope.first, name))
        return done

    # ---- statements ----

    def _block(self, statements: Iterable[ast.stmt], scope: str) -> None:
        line = 0
        for one in statements:
            if one.lineno == line:
                self._crowded.add(line)
            line = one.lineno
            self._statement(one, scope)

    def _statement(self, node: ast.stmt, name: str) -> None:
        scope = self._scopes[name]
        if isinstance(node, _LOOPS):
            scope.loops.append((node.lineno, getattr(node, "end_lineno", None) or node.lineno))
        expressions, blocks = _parts(node)
        for one in expressions:
            self._expression(one, node.lineno, scope)
        for one in getattr(node, "decorator_list", []):
            if not isinstance(one, ast.Call):
                self._call(ast.Call(func=one, args=[], keywords=[]), node.lineno, scope)
        if isinstance(node, _FUNCTIONS):
            self._function(node, name)
            return
        if isinstance(node, ast.ClassDef):
            inside = [one.name for one in node.body if isinstance(one, _FUNCTIONS)]
            whole = self._scopes.setdefault(node.name, _Scope(node.lineno))
            whole.names += [(_NO_LINE, one) for one in inside]
            for base in node.bases:
                homes = filter(self._is_own, self._homes.dotted(base))
                scope.does += [(node.lineno, _Doing(home, True)) for home in homes]
        for block in blocks:
            self._block(block, name)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> None:
        inner = self._scopes.setdefault(node.name, _Scope(node.lineno))
        inner.is_decorated |= bool(node.decorator_list)
        inner.first = min(inner.first, node.lineno)
        begun = len(inner.does), len(inner.names)
        self._block(node.body, node.name)
        if name != MODULE and name != node.name:  # one in a function: by whatever name it is called
            outer = self._scopes[name]
            outer.does += inner.does[begun[0] :]
            outer.names += inner.names[begun[1] :]

    def _expression(self, expression: ast.AST, line: int, scope: _Scope) -> None:
        for node in ast.walk(expression):
            if isinstance(node, (ast.Attribute, ast.Subscript)):
                if not isinstance(node.ctx, ast.Load):
                    self._sets(node.value, line, scope)
            if isinstance(node, _COMPREHENSIONS):
                last = getattr(expression, "end_lineno", None) or line
                scope.loops.append((line, max(line, last)))
            if isinstance(node, ast.Call):
                self._call(node, line, scope)
            name = getattr(node, "id", "") or getattr(node, "attr", "")
            if name:
                scope.names.append((line, name))

    # ---- what they do ----

    def _sets(self, node: ast.expr, line: int, scope: _Scope) -> None:
        for name in self._homes.dotted(node):
            if name.partition(".")[0] not in _USED_LATE:
                scope.does.append((line, _Doing(name, True)))

    def _call(self, call: ast.Call, line: int, scope: _Scope) -> None:
        function = call.func
        homes = self._homes.dotted(function)
        for name in homes:
            if not is_library(name):
                scope.does.append((line, _Doing(name, False)))
        if isinstance(function, ast.Attribute) and function.attr in _CHANGES:
            self._sets(function.value, line, scope)
        if isinstance(function, ast.Name) and function.id in _CHANGING:
            for one in call.args[:1]:
                self._sets(one, line, scope)
        elif not self._leaves_alone(function, homes):
            for one in [*call.args, *(keyword.value for keyword in call.keywords)]:
                own = filter(self._is_own, self._homes.dotted(one))
                scope.does += [(line, _Doing(name, True)) for name in own]

    def _leaves_alone(self, function: ast.expr, homes: set[str]) -> bool:
        """Whether a call changes nothing that it is given, or the text's own function is called, of
        which it is known what it does."""
        if self._homes.function(function):
            return True
        if homes:
            first = {name.partition(".")[0] for name in homes}
            return all(map(is_library, first)) and not first & _LIBRARY_CHANGES
        # a builtin, or a class of the text's own
        return isinstance(function, ast.Name) or getattr(function, "attr", "") in _READING


def _parts(node: ast.stmt) -> tuple[list[ast.AST], list[list[ast.stmt]]]:
    """The expressions of a statement that are its own, and its blocks of others."""
    expressions: list[ast.AST] = []
    blocks: list[list[ast.stmt]] = []
    if isinstance(node, _FUNCTIONS):
        return [*defaults(node.args), *node.decorator_list], []
    front: list[ast.AST] = [node]
    while front:
        for _, value in ast.iter_fields(front.pop()):
            values = value if isinstance(value, list) else [value]
            block = [part for part in values if isinstance(part, ast.stmt)]
            inside = [part for part in values if isinstance(part, ast.AST)]
            if block:
                blocks.append(block)
            else:
                expressions += [part for part in inside if isinstance(part, ast.expr)]
                front += [part for part in inside if not isinstance(part, ast.expr)]
    return expressions, blocks
