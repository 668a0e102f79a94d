"""What the definition of a function or a class does to other modules: choices.py asks.

A function is executed by nobody yet, but for what its decorators do with it. A class is shown to
the classes that it is made of, and its statements are executed.

Pure. Whoever is not sure says that it may.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Sequence

from brigade.fork.source import calls
from brigade.fork.source.syntax import annotated, defaults, stored
from brigade.fork.source.values import UNKNOWN, Name, Scope

_METACLASS = ("Meta", "MetaClass", "Metaclass", "EnumType")
_OF_MEMBERS = ("__new__", "__init__", "_generate_next_value_", "_missing_")
_OF_CLASSES = ("__init_subclass__", "__class_getitem__", "__mro_entries__", "__prepare__")


class Definitions(Scope, ABC):
    postponed = False  # annotations are evaluated by nobody

    @abstractmethod
    def is_plain(self, statement: ast.stmt) -> bool:
        """Whether it does the same to all other modules, whatever is given."""

    def are_plain(self, statements: Sequence[ast.stmt]) -> bool:
        return all(map(self.is_plain, statements))

    def is_function(self, statement: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        decorators = statement.decorator_list
        values = defaults(statement.args) + ([] if self.postponed else annotated(statement))
        plain = all(map(self.decorates, decorators)) and all(map(self.does_alike, values))
        self.names[statement.name] = Name(function=statement, decorated=bool(decorators) and plain)
        return plain

    def is_class(self, statement: ast.ClassDef) -> bool:
        """Those of other modules may be told of a class that is made of theirs: in it there is
        nothing then but what is known, and functions."""
        options = [one.value for one in statement.keywords]
        bases = [*statement.bases, *options]
        plain = all(map(self.decorates, statement.decorator_list))
        plain = plain and all(map(self.does_alike, bases))
        plain = plain and all(map(self._is_base, statement.bases))
        plain = plain and all(map(self._is_kind, options))
        told = not all(map(self._is_silent, bases))
        named = UNKNOWN if self._makes_classes(statement) else Name(kind="told" if told else "own")
        outside = dict(self.names)
        if self._is_enumeration(statement):
            makers = [one for one in statement.body if getattr(one, "name", "") in _OF_MEMBERS]
            plain = plain and all(map(self._is_quiet_maker, makers))
        for one in statement.body:
            plain = plain and (not told or self._tells_alike(one)) and self.is_plain(one)
        self.names = {**outside, statement.name: named}
        return plain

    def _is_enumeration(self, statement: ast.ClassDef) -> bool:
        """Its members are made at once."""
        names = [self.home(base).rpartition(".")[2] for base in statement.bases]
        return any(name.endswith(("Enum", "Flag")) for name in names)

    def _is_quiet_maker(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.FunctionDef) and self.changes_nothing(statement)

    def _makes_classes(self, statement: ast.ClassDef) -> bool:
        """Whether code in it is executed when a class is made by it."""
        homes = [self.home(base) for base in statement.bases]
        last = [home.rpartition(".")[2] for home in homes]
        names = stored(statement) | {getattr(one, "name", "") for one in statement.body}
        metaclass = "builtins.type" in homes or any(one.endswith(_METACLASS) for one in last)
        if self._is_enumeration(statement):
            return not names.isdisjoint((*_OF_CLASSES, *_OF_MEMBERS))
        return metaclass or not names.isdisjoint(_OF_CLASSES)

    def _is_base(self, node: ast.expr) -> bool:
        """Always the same class; `Generic[T]`."""
        if isinstance(node, ast.Subscript):
            is_library = calls.is_library(self.home(node.value))
            return self._is_base(node.value) and (is_library or self._is_kind(node.slice))
        own = isinstance(node, ast.Name) and self.name(node.id).kind
        return bool(own) or self.is_same(node) or self._is_kind(node)

    def _is_kind(self, node: ast.expr) -> bool:
        """Known, or a class, as they are written, or a function; or made of such."""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return all(map(self._is_kind, node.elts))
        if isinstance(node, ast.Dict):
            return all(key is None or self._is_kind(key) for key in node.keys) and all(
                map(self._is_kind, node.values)
            )
        last = self.home(node).rpartition(".")[2].lstrip("_")
        name = self.name(node.id) if isinstance(node, ast.Name) else UNKNOWN
        is_class = last[:1].isupper() and not last.isupper() or name.kind
        is_function = name.function or isinstance(node, ast.Lambda)
        return bool(is_class or is_function) or self.is_known(node)

    def _is_silent(self, base: ast.expr) -> bool:
        """Of a class's: no code but Python's or the script's own is told of the class."""
        if isinstance(base, ast.Subscript):
            return self._is_silent(base.value)
        own = isinstance(base, ast.Name) and self.name(base.id).kind == "own"
        return own or calls.is_library(self.home(base)) or self.is_known(base)

    def _tells_alike(self, statement: ast.stmt) -> bool:
        """Of a class's: whether what others find in the class is the same whatever is given."""
        if isinstance(statement, ast.ClassDef):
            return all(map(self._tells_alike, statement.body))
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return statement.value is None or self._is_kind(statement.value)
        return isinstance(statement, (ast.Expr, ast.Pass, ast.FunctionDef, ast.AsyncFunctionDef))
