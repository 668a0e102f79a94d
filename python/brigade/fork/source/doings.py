"""What each statement of a text does with others, and where it stands.

    read(statements, homes, is_own, conditions) -> Scopes

Without `conditions` nothing is said to be open. Pure. Whoever is not sure says that it does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Callable, NamedTuple

from brigade.fork.source.conditions import Conditions
from brigade.fork.source.homes import Homes, is_library
from brigade.fork.source.syntax import called, defaults, given

MODULE = "<module>"
_NO_LINE = 1 << 40
# these change what they are called of
_CHANGES = frozenset(
    "add append clear discard extend insert pop popitem put register remove reverse set setdefault"
    " sort update".split()
)
# what these are given they change; others of the standard library leave it as it is
_LIBRARY_CHANGES = frozenset(["bisect", "heapq", "random"])
_CHANGING = frozenset(["setattr", "delattr", "next"])
_ANYTHING = frozenset(["exec", "eval"])
_READING = frozenset(
    "add_argument append critical debug endswith error exception extend format get info index join"
    " log startswith warning write".split()
)
# of these, what programs set is looked at when it is used, or compared where a module is shown
_USED_LATE = frozenset(["sys", "os", "warnings", "logging", "__future__"])
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_EXITS = ("exit", "_exit", "abort", "Abort")


class Doing(NamedTuple):
    """`is_set`: something is set in what has that name; else it is called. `is_open`: whether that
    is done depends on more than what the program is given."""

    name: str
    is_set: bool
    is_open: bool = False


@dataclass
class Scope:
    """A function, or the text's own statements, or a class, which names its functions. `first`: its
    line; `names`: (line, what may be a function or class, whether it is named `is_open`)."""

    first: int
    is_decorated: bool = False
    does: list[tuple[int, Doing]] = field(default_factory=list)
    names: list[tuple[int, str, bool]] = field(default_factory=list)
    loops: list[tuple[int, int]] = field(default_factory=list)

    def is_repeated(self, line: int, other: int) -> bool:
        """Whether a loop has both."""
        return any(a <= line <= z and a <= other <= z for a, z in self.loops)


@dataclass
class Scopes:
    """By name; functions of one name are one. `crowded`: lines with several statements."""

    of: dict[str, Scope] = field(default_factory=lambda: {MODULE: Scope(0)})
    crowded: set[int] = field(default_factory=set)


def read(
    statements: Sequence[ast.stmt],
    homes: Homes,
    is_own: Callable[[str], bool],
    conditions: Conditions | None = None,
) -> Scopes:
    reader = _Reader(homes, conditions, is_own)
    reader.block(statements)
    return reader.scopes


class _Reader:
    def __init__(
        self, homes: Homes, conditions: Conditions | None, is_own: Callable[[str], bool]
    ) -> None:
        self.scopes = Scopes()
        self._homes, self._conditions, self._is_own = homes, conditions, is_own
        self._name, self._line, self._open = MODULE, 0, False

    @property
    def _scope(self) -> Scope:
        return self.scopes.of[self._name]

    # ---- statements ----

    def block(self, statements: Iterable[ast.stmt], is_open: bool = False) -> None:
        before = self._open
        self._open |= is_open
        line = 0
        for one in statements:
            if one.lineno == line:
                self.scopes.crowded.add(line)
            line = self._line = one.lineno
            self._statement(one)
            if self._open and not before and not is_open:  # somebody may have left
                before = True
        self._open = before

    def _statement(self, node: ast.stmt) -> None:
        line = node.lineno
        if isinstance(node, _LOOPS):
            self._scope.loops.append((line, node.end_lineno or line))
        expressions, blocks = _parts(node)
        for one in expressions:
            self._expression(one)
        if isinstance(node, ast.AugAssign):
            self._sets(node.target)
        for one in getattr(node, "decorator_list", []):
            if not isinstance(one, ast.Call):
                self._call(ast.Call(func=one, args=[], keywords=[]))
        if isinstance(node, _FUNCTIONS):
            self._function(node)
            return
        if isinstance(node, ast.ClassDef):
            self._class(node)
        is_open = not self._are_given(_conditions(node))
        for block in blocks:
            is_tried = isinstance(node, ast.Try) and block in (node.body, node.finalbody)
            raises = isinstance(node, ast.Try) and not is_tried and not _only_imports(node.body)
            self.block(block, is_open or raises)
        if is_open and any(map(_leaves, blocks)):
            self._open = True

    def _are_given(self, nodes: Iterable[ast.AST]) -> bool:
        known, scope = self._conditions, "" if self._name == MODULE else self._name
        return known is None or all(known.are_given(node, scope) for node in nodes)

    def _class(self, node: ast.ClassDef) -> None:
        inside = [one.name for one in node.body if isinstance(one, _FUNCTIONS)]
        whole = self.scopes.of.setdefault(node.name, Scope(node.lineno))
        whole.names += [(_NO_LINE, one, False) for one in inside]
        for base in node.bases:
            self._sets_own(base)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        inner = self.scopes.of.setdefault(node.name, Scope(node.lineno))
        inner.is_decorated |= bool(node.decorator_list)
        inner.first = min(inner.first, node.lineno)
        begun = len(inner.does), len(inner.names)
        with self._inside(node.name):
            self.block(node.body)
        if self._name not in (MODULE, node.name):  # it may be called by whatever name
            self._scope.does += inner.does[begun[0] :]
            self._scope.names += inner.names[begun[1] :]

    @contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        before = self._name, self._line, self._open
        self._name, self._open = name, False
        yield
        self._name, self._line, self._open = before

    def _expression(self, expression: ast.AST) -> None:
        nodes = list(ast.walk(expression))
        before = self._open
        self._open |= not self._are_given(one for node in nodes for one in _choices(node))
        for node in nodes:
            if isinstance(node, (ast.Attribute, ast.Subscript)):
                if not isinstance(node.ctx, ast.Load):
                    self._sets(node.value)
            if isinstance(node, _COMPREHENSIONS):
                last = getattr(expression, "end_lineno", None) or self._line
                self._scope.loops.append((self._line, max(self._line, last)))
            if isinstance(node, ast.Call):
                self._call(node)
            name = getattr(node, "id", "") or getattr(node, "attr", "")
            if name:
                self._scope.names.append((self._line, name, self._open))
        self._open = before

    # ---- what they do ----

    def _does(self, name: str, is_set: bool) -> None:
        self._scope.does.append((self._line, Doing(name, is_set, self._open)))

    def _sets(self, node: ast.expr) -> None:
        for name in self._homes.of(node):
            if name.partition(".")[0] not in _USED_LATE:
                self._does(name, True)

    def _sets_own(self, node: ast.expr) -> None:
        for name in filter(self._is_own, self._homes.of(node)):
            self._does(name, True)

    def _call(self, call: ast.Call) -> None:
        function = call.func
        homes = self._homes.of(function)
        for name in homes:
            if not is_library(name):
                self._does(name, False)
        if isinstance(function, ast.Attribute) and function.attr in _CHANGES:
            self._sets(function.value)
        name = function.id if isinstance(function, ast.Name) else ""
        if name in _CHANGING:
            for one in call.args[:1]:
                self._sets(one)
        elif name in _ANYTHING:
            for home in filter(self._is_own, self._homes.all()):
                self._does(f"{home}.*", True)
        elif not self._leaves_alone(call, homes):
            for one in given(call):
                self._sets_own(one)

    def _leaves_alone(self, call: ast.Call, homes: set[str]) -> bool:
        """Whether a call changes nothing that it is given, or the text's own function is called, of
        which it is known what it does."""
        function = call.func
        if self._homes.function(function):
            return True
        if homes:
            first = {name.partition(".")[0] for name in homes}
            return all(map(is_library, first)) and not first & _LIBRARY_CHANGES
        if isinstance(function, ast.Name) and function.id == "type":
            return len(call.args) == 1  # else it makes a class
        # a builtin, or a class of the text's own
        return isinstance(function, ast.Name) or getattr(function, "attr", "") in _READING


def _conditions(node: ast.stmt) -> list[ast.AST]:
    """Upon which it depends whether, or how often, its blocks are executed."""
    if isinstance(node, (ast.If, ast.While)):
        return [node.test]
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return [node.iter]
    guards = [case.guard for case in getattr(node, "cases", []) if case.guard is not None]
    return [node.subject, *guards] if type(node).__name__ == "Match" else []  # type: ignore


def _choices(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.IfExp):
        return [node.test]
    if isinstance(node, ast.BoolOp):
        return list(node.values[:-1])
    if isinstance(node, ast.comprehension):
        return [node.iter, *node.ifs]
    return [node] if isinstance(node, ast.Lambda) else []


def _only_imports(statements: Iterable[ast.stmt]) -> bool:
    return all(isinstance(one, (*_IMPORTS, ast.Pass)) for one in statements)


def _leaves(statements: Iterable[ast.stmt]) -> bool:
    """Whether what comes after is not executed, then."""
    nodes = [node for one in statements for node in ast.walk(one)]
    names = {called(node) for node in nodes if isinstance(node, ast.Call)}
    return any(isinstance(node, _LEAVES) for node in nodes) or bool(names.intersection(_EXITS))


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
