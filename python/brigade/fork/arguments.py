"""Which of a program's imports cannot depend on its arguments.

    first_doubt(the script's text)   the line from which on they may
    looks(a module's text)           whether its import may look at them

A trial shows what a program did with one command line. With another one it may set what a module
reads that it imports later (`if "--double" in sys.argv: settings.digits = 15`), and a template
would have imported that without. What stands before all that may depend on the arguments is
imported alike with any: imports, definitions, and plain statements without a choice.

Pure. Whoever is not sure says that it may.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

_NAMES = ("argv", "orig_argv")
_EVERYTHING = 1  # the first line
# calls that do the same whatever the arguments are, by the last part of their name
_PLAIN_CALLS = frozenset(
    "abspath addsitedir append basicConfig catch_warnings dirname enable exists expanduser extend"
    " filterwarnings getLogger getcwd get getenv insert isdir isfile join manual_seed namedtuple"
    " normpath pop realpath resolve seed setLevel setdefault simplefilter use Path TypeVar"
    " perf_counter time frozenset set tuple list dict len str".split()
)
_PLAIN = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Compare, ast.Constant, ast.Dict, ast.FormattedValue,
    ast.JoinedStr, ast.List, ast.Name, ast.Set, ast.Slice, ast.Starred, ast.Subscript, ast.Tuple,
    ast.UnaryOp, ast.boolop, ast.cmpop, ast.expr_context, ast.operator, ast.unaryop, ast.keyword,
    ast.Call, ast.Lambda, ast.arguments, ast.arg,
)  # fmt: skip


def first_doubt(source: bytes | str) -> int | None:
    """The line of a script from which on what is imported may depend on the arguments; None if all
    of it does not."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError):
        return _EVERYTHING
    return next((_begins(one) for one in statements if not _is_plain(one)), None)


def _begins(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def looks(source: bytes) -> bool:
    """Whether importing a module may look at the arguments: its own statements do, not those of
    its functions."""
    if b"argv" not in source:
        return False
    try:
        return any(map(_names_them, _executed(ast.parse(source).body)))
    except (SyntaxError, ValueError, RecursionError):
        return True


def _is_plain(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return not any(alias.name in _NAMES for alias in statement.names)
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return all(map(_is_value, [*statement.decorator_list, *_defaults(statement.args)]))
    if isinstance(statement, ast.ClassDef):
        values = [*statement.decorator_list, *statement.bases]
        return all(map(_is_value, values)) and _are_plain(statement.body)
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
        return all(map(_is_value, ast.iter_child_nodes(statement)))
    if isinstance(statement, (ast.If, ast.Assert)):
        branches = _blocks(statement) if isinstance(statement, ast.If) else []
        return _is_value(statement.test) and _are_plain(branches)
    if isinstance(statement, (ast.Try, ast.With)):
        items = statement.items if isinstance(statement, ast.With) else []
        return all(_is_value(item.context_expr) for item in items) and _are_plain(
            _blocks(statement)
        )
    return isinstance(statement, (ast.Pass, ast.Raise, ast.Delete))


def _are_plain(statements: Sequence[ast.stmt]) -> bool:
    return all(map(_is_plain, statements))


def _is_value(node: ast.AST) -> bool:
    """Whether an expression comes out alike with any arguments."""
    for part in ast.walk(node):
        if not isinstance(part, _PLAIN) or _names_them(part):
            return False
        if isinstance(part, ast.Call) and _called(part) not in _PLAIN_CALLS:
            return False
    return True


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    """What is evaluated where a function is defined."""
    return [one for one in [*arguments.defaults, *arguments.kw_defaults] if one is not None]


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _names_them(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _NAMES
    if isinstance(node, ast.alias):
        return node.name in _NAMES
    return isinstance(node, ast.Constant) and node.value in _NAMES


def _blocks(statement: ast.stmt) -> list[ast.stmt]:
    """The statements inside one, of all its branches."""
    found: list[ast.stmt] = []
    for name in ("body", "orelse", "finalbody"):
        found += getattr(statement, name, [])
    for handler in getattr(statement, "handlers", []):
        found += handler.body
    return found


def _executed(statements: Sequence[ast.stmt]) -> list[ast.AST]:
    """All that is executed when a module is imported: not the bodies of functions."""
    found: list[ast.AST] = []
    front: list[ast.AST] = list(statements)
    while front:
        node = front.pop()
        found.append(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            front += [*_defaults(node.args), *getattr(node, "decorator_list", [])]
        else:
            front += ast.iter_child_nodes(node)
    return found
