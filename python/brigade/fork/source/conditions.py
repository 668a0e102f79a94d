"""Whether what a script chooses by is what it is given: its arguments, variables, files.

    Conditions(statements).are_given(expression, function)

These are compared with the trial's where a template is (fork/otherwise.py): with the same, a script
chooses as it did in the trial. By what else there is it may choose otherwise with the same: the
rank, the number of ranks, the machine, the time, what others have found out. A name is given if
all that it is ever bound to is. Pure. Whoever is not sure says no.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from typing import Union

from brigade.fork.source.homes import passed
from brigade.fork.source.syntax import given, parameters
from brigade.fork.variables import of_jobs, of_ranks

_OF_SYS = frozenset(
    "argv orig_argv byteorder executable flags hexversion implementation maxsize platform"
    " version version_info".split()
)
_OF_OS = frozenset(["environ", "environb", "getenv", "path", "name", "sep", "linesep"])
# what these have, and do, follows from what goes in, or from files
_MODULES = frozenset(
    "argparse ast collections configparser copy csv dataclasses datetime decimal enum fractions"
    " functools getopt itertools json math operator optparse pathlib pickle re shlex string"
    " textwrap toml tomllib types typing yaml".split()
)
_NOT_OF_THESE = frozenset(["now", "today", "utcnow", "cwd", "home"])
_BUILTINS = frozenset(dir(builtins)) - {"input", "id", "globals", "locals", "vars", "__import__"}
_KNOWN = frozenset(["__name__", "__file__", "__doc__", "__package__", "__spec__"])
_VARIABLES = ("os.environ", "environ", "os.environb", "environb")
_GETTERS = ("os.getenv", "getenv", "os.getenvb", "getenvb")
_MOST_ROUNDS = 20
_RETURN = "return"  # as if it were a name
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


class Conditions:
    def __init__(self, statements: Iterable[ast.stmt]) -> None:
        self._homes: dict[str, str] = {}
        # (function, name) -> what it gets; None: anything
        self._bound: dict[tuple[str, str], list[tuple[ast.AST | None, str]]] = {}
        self._functions: dict[str, list[_Function]] = {}
        self._handed: set[str] = set()  # functions that are not only called
        self._others: set[tuple[str, str]] = set()  # names that are not
        whole = list(statements)
        self._note_functions(whole)
        for node, scope in _scoped(whole, ""):
            for name, value in self._bindings(node):
                self._bound.setdefault((scope, name), []).append((value, scope))
            if isinstance(node, ast.Call):
                self._note_parameters(node, scope)
        self._bind_parameters()
        for _ in range(_MOST_ROUNDS):
            before = len(self._others)
            for key, values in self._bound.items():
                if not all(value is not None and self.are_given(value, of) for value, of in values):
                    self._others.add(key)
            if len(self._others) == before:
                break

    def are_given(self, node: ast.AST, scope: str = "") -> bool:
        """`scope`: the function that has the expression; "": the script itself."""
        if isinstance(node, ast.Name):
            key = (scope, node.id) if (scope, node.id) in self._bound else ("", node.id)
            if key in self._bound or node.id in self._functions:
                return key in self._bound and key not in self._others
            if node.id in _VARIABLES:
                return False  # which there are is not compared
            return node.id in self._homes or node.id in _BUILTINS or node.id in _KNOWN
        if isinstance(node, ast.Attribute):
            return _dotted(node) not in _VARIABLES and self._is_attribute(node, scope)
        if isinstance(node, (ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom)):
            return False
        if asked := _asked_for(node):
            return all(map(_is_compared, asked)) and all(
                self.are_given(part, scope) for part in getattr(node, "args", [])[1:]
            )
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in self._functions:
            return (node.func.id, _RETURN) not in self._others  # type: ignore[attr-defined]
        return all(self.are_given(part, scope) for part in ast.iter_child_nodes(node))

    def _note_functions(self, statements: list[ast.stmt]) -> None:
        """Parameters of a function get what its calls give, if it is called by its name alone."""
        nodes = [node for one in statements for node in ast.walk(one)]
        inside = {id(one) for node in nodes if isinstance(node, ast.ClassDef) for one in node.body}
        for node in nodes:
            if isinstance(node, _FUNCTIONS):
                self._functions.setdefault(node.name, []).append(node)
                if id(node) in inside or node.decorator_list:
                    self._handed.add(node.name)
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        self._handed |= {
            node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called
        }

    def _bind_parameters(self) -> None:
        """To their defaults, or to anything."""
        for name, functions in self._functions.items():
            for function in functions:
                arguments = function.args
                some = [*arguments.posonlyargs, *arguments.args]
                pairs = [*zip(some[::-1], arguments.defaults[::-1])]
                for one, value in [*pairs, *zip(arguments.kwonlyargs, arguments.kw_defaults)]:
                    if value is not None:
                        self._bound.setdefault((name, one.arg), []).append((value, ""))
                for one in parameters(arguments):
                    key = name, one.arg
                    if name in self._handed or key not in self._bound:
                        self._bound.setdefault(key, []).append((None, ""))

    def _note_parameters(self, call: ast.Call, scope: str) -> None:
        for function in self._functions.get(getattr(call.func, "id", ""), ()):
            if any(isinstance(one, ast.Starred) for one in given(call)) or not all(
                keyword.arg for keyword in call.keywords
            ):
                self._handed.add(function.name)
            for name, value in passed(function, call):
                self._bound.setdefault((function.name, name), []).append((value, scope))

    def _is_attribute(self, node: ast.Attribute, scope: str) -> bool:
        home = self._home(node.value)
        if home in ("sys", "os"):
            return node.attr in (_OF_SYS if home == "sys" else _OF_OS)
        if home in _MODULES or home == "os.path":
            return node.attr not in _NOT_OF_THESE
        return not home and node.attr not in _NOT_OF_THESE and self.are_given(node.value, scope)

    def _home(self, node: ast.AST) -> str:
        """The module that a name stands for, or `os.path`; or ""."""
        if isinstance(node, ast.Attribute) and self._home(node.value) == "os":
            return "os.path" if node.attr == "path" else ""
        name = node.id if isinstance(node, ast.Name) else ""
        return self._homes.get(name, "")

    def _bindings(self, node: ast.AST) -> Iterator[tuple[str, ast.AST | None]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                known = alias.name in (*_MODULES, "sys", "os", "os.path")
                self._homes.update({name: alias.name} if known else {})
                yield from () if known else [(name, None)]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                of = {"sys": _OF_SYS, "os": _OF_OS}.get(node.module or "", ())
                known = (node.module in _MODULES or alias.name in of) and not node.level
                yield from () if known else [(alias.asname or alias.name, None)]
                if known:
                    self._homes[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from ((name, node.value) for name in _names(target))
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            if node.value is not None:
                yield from ((name, node.value) for name in _names(node.target))
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            yield from ((name, node.iter) for name in _names(node.target))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield from ((name, node.context_expr) for name in _names(node.optional_vars))
        elif isinstance(node, ast.ClassDef):
            yield node.name, None
        elif isinstance(node, ast.Return) and node.value is not None:
            yield _RETURN, node.value
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name, None
        elif type(node).__name__.startswith("Match"):  # Python 3.10
            for name in filter(None, (getattr(node, "name", None), getattr(node, "rest", None))):
                yield name, None


def _asked_for(node: ast.AST) -> list[ast.expr]:
    """The names of variables that are asked for."""
    if isinstance(node, ast.Subscript):
        return [node.slice] if _dotted(node.value) in _VARIABLES else []
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return [node.left] if _dotted(node.comparators[0]) in _VARIABLES else []
    if isinstance(node, ast.Call) and node.args:
        function = node.func
        is_get = isinstance(function, ast.Attribute) and function.attr in ("get", "setdefault")
        whole = function.value if is_get and isinstance(function, ast.Attribute) else function
        if _dotted(whole) in (_VARIABLES if is_get else _GETTERS):
            return node.args[:1]
    return []


def _is_compared(name: ast.expr) -> bool:
    """Whether a template compares what that variable is."""
    key = name.value if isinstance(name, ast.Constant) else None
    return isinstance(key, str) and of_ranks(key) is None and not of_jobs(key)


def _scoped(nodes: Iterable[ast.AST], scope: str) -> Iterator[tuple[ast.AST, str]]:
    """Each node, and the function that it is in."""
    for node in nodes:
        yield node, scope
        inner = node.name if isinstance(node, _FUNCTIONS) else scope
        yield from _scoped(ast.iter_child_nodes(node), inner)


def _names(target: ast.AST) -> Iterator[str]:
    """What is bound; of what is changed in a value, the value."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield node.id


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"
