"""Parts of a Python text, as all that look at one see them. Pure."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Sequence

# expressions that can be looked into: whatever else there is may do anything
PLAIN = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Compare, ast.Constant, ast.Dict, ast.FormattedValue,
    ast.JoinedStr, ast.List, ast.Name, ast.Set, ast.Slice, ast.Starred, ast.Subscript, ast.Tuple,
    ast.UnaryOp, ast.boolop, ast.cmpop, ast.expr_context, ast.operator, ast.unaryop, ast.keyword,
    ast.Call, ast.Lambda, ast.arguments, ast.arg, ast.IfExp, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.comprehension,
)  # fmt: skip


def parsed(source: bytes | str) -> list[ast.stmt] | None:
    """Its statements; None of what is no Python (of this version)."""
    try:
        with warnings.catch_warnings():  # of what an author has written, nobody asked here
            warnings.simplefilter("ignore")
            return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def called(call: ast.Call) -> str:
    """The last part of its name."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def flat(targets: Iterable[ast.expr | None]) -> list[ast.expr]:
    found: list[ast.expr] = []
    for one in targets:
        if isinstance(one, (ast.Tuple, ast.List)):
            found += flat(one.elts)
        elif isinstance(one, ast.Starred):
            found += flat([one.value])
        elif one is not None:
            found.append(one)
    return found


def blocks(statement: ast.stmt) -> list[ast.stmt]:
    """The statements inside one, of all its branches."""
    found: list[ast.stmt] = []
    for name in ("body", "orelse", "finalbody"):
        found += getattr(statement, name, [])
    for handler in getattr(statement, "handlers", []):
        found += handler.body
    return found


def defaults(arguments: ast.arguments) -> list[ast.expr]:
    """What is evaluated where a function is defined."""
    return [one for one in [*arguments.defaults, *arguments.kw_defaults] if one is not None]


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return named + [one for one in (arguments.vararg, arguments.kwarg) if one is not None]


def annotated(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    found = [*(one.annotation for one in parameters(function.args)), function.returns]
    return [one for one in found if one is not None]


def bound(generators: Sequence[ast.comprehension]) -> list[str]:
    targets = flat(one.target for one in generators)
    return [one.id for one in targets if isinstance(one, ast.Name)]


def stored(node: ast.AST) -> set[str]:
    """The names that get a value anywhere in it."""
    return {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
    }


def is_program(test: ast.expr) -> bool:
    """`__name__ == "__main__"`, and maybe more."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(is_program, test.values))
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = [test.left, *test.comparators]
    names = [side.id for side in sides if isinstance(side, ast.Name)]
    values = [side.value for side in sides if isinstance(side, ast.Constant)]
    return names == ["__name__"] and values == ["__main__"]
