"""What of a module's text is executed when it is imported.

    executed(statements)       its own statements, without the bodies of functions
    reached(statements)        these, and the functions and classes that they name, and what those
                               name: who has a name may call it

Not what a module does as a program (`if __name__ == "__main__":`), nor the methods of a class that
nobody but its base knows of. Pure.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from brigade.fork.source import calls
from brigade.fork.source.choices import scope_of
from brigade.fork.source.syntax import called, defaults, is_program
from brigade.fork.source.values import Scope

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BY_NAME = frozenset("attrgetter delattr getattr methodcaller setattr vars __dict__".split())


def executed(statements: Sequence[ast.AST]) -> list[ast.AST]:
    found: list[ast.AST] = []
    front: list[ast.AST] = list(statements)
    while front:
        node = front.pop()
        found.append(node)
        if isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            front += [*defaults(node.args), *getattr(node, "decorator_list", [])]
        elif isinstance(node, ast.If) and is_program(node.test):
            front += node.orelse
        else:
            front += ast.iter_child_nodes(node)
    return found


def reached(statements: Sequence[ast.stmt]) -> list[ast.AST]:
    return _Reach(statements).nodes()


class _Reach:
    def __init__(self, statements: Sequence[ast.stmt]) -> None:
        self._scope = scope_of(statements)
        self._front: list[ast.AST] = list(statements)
        self._found: list[ast.AST] = []
        self._named: set[str] = set()
        self._added: set[ast.AST] = set()  # to commands, which leave them uncalled
        self._words: set[str] = set()  # texts that may be names
        self._waiting: list[tuple[str, ast.AST]] = []

    def nodes(self) -> list[ast.AST]:
        while self._front:
            self._go_on()
            named = self._named | (self._words if self._named & _BY_NAME else set())
            ready = [one for one in self._waiting if one[0] in named]
            self._waiting = [one for one in self._waiting if one[0] not in named]
            for _, node in ready:
                self._enter(node)
        return self._found

    def _go_on(self) -> None:
        """Executes what there is."""
        while self._front:
            for node in executed([self._front.pop()]):
                self._found.append(node)
                self._note(node)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node not in self._added:
                self._named.add(node.id)
        elif isinstance(node, ast.Call) and called(node) in calls.ADD:
            if self._scope.is_command(getattr(node.func, "value", node)):
                self._added.update(node.args)
        elif isinstance(node, ast.Attribute):
            self._named.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._words.add(node.value)
        elif isinstance(node, ast.Lambda):
            self._front.append(node.body)
        elif isinstance(node, _FUNCTIONS):
            self._waiting.append((node.name, node))
            if not all(map(self._scope.decorates, node.decorator_list)):
                self._named.add(node.name)
        elif isinstance(node, ast.ClassDef):
            self._waiting.append((node.name, node))
            if not all(map(self._scope.decorates, node.decorator_list)):
                self._named.add(node.name)

    def _enter(self, node: ast.AST) -> None:
        """What there is in a function, or in a class of which something is made."""
        if isinstance(node, _FUNCTIONS):
            self._front += node.body
        if isinstance(node, ast.ClassDef):
            plain = _is_plain(node, self._scope)
            for one in node.body:
                if isinstance(one, _FUNCTIONS) and (one.name.startswith("__") or not plain):
                    self._named.add(one.name)
                    self._front += one.body


def _is_plain(node: ast.ClassDef, scope: Scope) -> bool:
    """Whether nobody but who names its methods calls them."""
    bases = [*node.bases, *(one.value for one in node.keywords)]
    return all(calls.is_library(scope.home(one)) or scope.is_known(one) for one in bases)
