"""Where what a text's names refer to comes from.

    homes = Homes(statements, package)
    homes.of(expression)   {"settings.cfg"}: dotted names of modules, and of what lies in them;
                           empty: of nobody else
    homes.all()            of all names

A name that is given what lies in a module (`cfg = settings.get()`, `for one in settings.all`, a
function's parameter, what a function returns, `self.cfg`) has that home, too: wherever in the text
that is done. What functions of the standard library and of NumPy return is new. Pure.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator, Sequence

from brigade.fork.source.syntax import stored

LIBRARY: frozenset[str] = getattr(sys, "stdlib_module_names", frozenset()) or frozenset(
    "abc argparse array ast asyncio base64 bisect builtins codecs collections contextlib"
    " contextvars copy csv ctypes dataclasses datetime decimal enum fractions functools gc getpass"
    " glob gzip hashlib heapq importlib inspect io itertools json locale logging math"
    " multiprocessing operator os pathlib pickle platform pprint queue random re resource shlex"
    " shutil signal socket sqlite3 statistics string struct subprocess sys tempfile textwrap"
    " threading time traceback types typing unittest urllib uuid warnings weakref zipfile".split()
)
#: of these builtins, what comes out is, or may be, what goes in
_HAND_ON = frozenset(["getattr", "vars", "next", "iter", "reversed", "enumerate", "zip", "sorted"])
_IMPORTERS = frozenset(["importlib.import_module", "importlib.__import__"])
_ANY = "*"
_DEEPEST = 5
_MOST_ROUNDS = 20
_OWN = "self", "cls"
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_library(home: str) -> bool:
    return home.partition(".")[0] in LIBRARY


def _inside(homes: set[str], name: str) -> set[str]:
    """What lies there by a name; not as deep as it likes, for names may go round in circles."""
    deep = {home for home in homes if home.endswith(f".{_ANY}") or home.count(".") >= _DEEPEST}
    return {home if home.endswith(_ANY) else f"{home}.{_ANY}" for home in deep} | {
        f"{home}.{name}" for home in homes - deep
    }


def _named(node: ast.AST) -> str:
    """The module that a constant names."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def _defined(node: ast.AST) -> Iterator[str]:
    """A function, a class, or a parameter."""
    if isinstance(node, (*_Function, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg


def _makes_anew(home: str) -> bool:
    """Whether what its functions return is nobody's yet."""
    return is_library(home) or home.partition(".")[0] == "numpy"


class Homes:
    def __init__(self, statements: Sequence[ast.stmt], package: str = "") -> None:
        nodes = [node for one in statements for node in ast.walk(one)]
        self._homes: dict[str, set[str]] = {}
        self._stars: list[str] = []  # modules of which it has all names
        self._bound = {*dir(builtins), *(name for node in nodes for name in _defined(node))}
        self._bound.update(*map(stored, statements))
        self._functions = {node.name: node for node in nodes if isinstance(node, _Function)}
        self._makers = {
            node.name: one
            for node in nodes
            if isinstance(node, ast.ClassDef)
            for one in node.body
            if isinstance(one, ast.FunctionDef) and one.name == "__init__"
        }
        for node in nodes:
            for name, home in _imported(node, package):
                if name == "*":
                    self._stars.append(home.rpartition(".")[0])
                self._homes.setdefault(name, set()).add(home)
        given = [pair for node in nodes for pair in self._given(node)]
        for _ in range(_MOST_ROUNDS):
            if not self._hand_on(given):
                break

    def of(self, node: ast.AST | None) -> set[str]:
        """Of what an expression results in; "settings.*": something that lies there."""
        if isinstance(node, ast.Name):
            return self._of_name(node.id)
        if isinstance(node, ast.Attribute):
            key = _key(node)
            return self._homes.get(key, set()) if key else _inside(self.of(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            found = _inside(self.of(node.value), _ANY)
            return {_named(node.slice)} - {""} if found == {f"sys.modules.{_ANY}"} else found
        if isinstance(node, ast.Call):
            return self._of_call(node)
        if isinstance(node, ast.IfExp):
            return self.of(node.body) | self.of(node.orelse)
        if isinstance(node, ast.BoolOp):
            return self._of_all(node.values)
        if isinstance(node, (ast.Tuple, ast.List)):
            return self._of_all(node.elts)
        if isinstance(node, (ast.Await, ast.Starred, ast.NamedExpr)):
            return self.of(node.value)
        return set()

    def function(self, node: ast.AST) -> str:
        """The name of the text's own function that is called; or ""."""
        name = getattr(node, "attr", "") or getattr(node, "id", "")
        is_own = name in self._functions and (isinstance(node, ast.Name) or not self.of(node))
        return name if is_own else ""

    def all(self) -> set[str]:
        return set().union(*self._homes.values())

    def _of_name(self, name: str) -> set[str]:
        if name in self._homes or name in self._bound:
            return self._homes.get(name, set())
        return {f"{module}.{name}" for module in self._stars}

    def _of_all(self, nodes: Iterable[ast.AST | None]) -> set[str]:
        return set().union(*map(self.of, nodes))

    def _of_call(self, node: ast.Call) -> set[str]:
        if isinstance(node.func, ast.Name) and node.func.id in _HAND_ON:
            return self._of_all(node.args)
        if name := self.function(node.func):
            return self._homes.get(f"{name}()", set())
        homes = self.of(node.func)
        if homes & _IMPORTERS or isinstance(node.func, ast.Name) and node.func.id == "__import__":
            return {_named(node.args[0])} - {""} if node.args else set()
        return _inside({home for home in homes if not _makes_anew(home)}, _ANY)

    def _given(self, node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
        """(name, what it is given)."""
        pairs: list[tuple[ast.expr | None, ast.expr | None]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            pairs = [(node.target, node.value)]
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            pairs = [(node.target, node.iter)]
        elif isinstance(node, ast.withitem):
            pairs = [(node.optional_vars, node.context_expr)]
        elif isinstance(node, ast.Call):
            called = self._functions.get(self.function(node.func))
            called = called or self._makers.get(getattr(node.func, "id", ""))
            yield from passed(called, node) if called else ()
        elif isinstance(node, _Function):
            for one in ast.walk(node):
                if isinstance(one, ast.Return) and one.value:
                    yield f"{node.name}()", one.value
        for target, value in pairs:
            if value is not None:
                yield from ((name, value) for name in _names(target))

    def _hand_on(self, given: Iterable[tuple[str, ast.expr]]) -> bool:
        """Whether a name has more homes than before."""
        more = False
        for name, value in given:
            homes = self._homes.setdefault(name, set())
            before = len(homes)
            homes |= self.of(value)
            more |= len(homes) > before
        return more


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (first, first)
    elif isinstance(node, ast.ImportFrom):
        parts = package.split(".") if node.level else []
        base = ".".join([*parts[: len(parts) - node.level + 1], node.module or ""]).strip(".")
        for alias in node.names:
            yield alias.asname or alias.name, f"{base}.{alias.name}".strip(".")


def _key(node: ast.AST) -> str:
    """Of `self.cfg`: an attribute of the text's own objects has homes as a name has."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f".{node.attr}" if node.value.id in _OWN else ""
    return ""


def _names(target: ast.AST | None) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for one in target.elts:
            yield from _names(one)
    elif isinstance(target, ast.Starred):
        yield from _names(target.value)
    elif target is not None and (key := _key(target)):
        yield key


def passed(
    function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call
) -> Iterator[tuple[str, ast.expr]]:
    """What a call gives to which of a function's parameters."""
    arguments = function.args
    names = [one.arg for one in [*arguments.posonlyargs, *arguments.args]]
    if names[:1] in (["self"], ["cls"]):
        del names[0]
    if arguments.vararg:
        names += [arguments.vararg.arg] * max(len(call.args) - len(names), 0)
    yield from zip(names, call.args)
    others = arguments.kwarg.arg if arguments.kwarg else ""
    for keyword in call.keywords:
        for name in filter(None, (keyword.arg, others)):
            yield name, keyword.value
