"""From where on what a program imports may depend on what it is given.

    first_choice(a script's text)   the line from which on it may: on arguments, files, variables

A trial shows what a program did with what it was given. Given something else it may set what a
module reads that it imports later (`if "--double" in sys.argv: settings.digits = 15`), and a
template would have imported that without. What stands before all that may depend on it is imported
alike whatever is given: imports, definitions, and plain statements without a choice.

A name is *known* here if its value is the same whatever is given. What is imported is not: another
module may have looked (`from config import args`). What such a value may do is give another to
names of the script itself; a choice by it, or a change of anything else with it, is a doubt.

Pure. Whoever is not sure says that it may.
"""

from __future__ import annotations

import ast
import builtins
import sys
import warnings
from collections.abc import Iterable, Sequence

ARGUMENTS = ("argv", "orig_argv")
_VARIABLES = ("environ", "environb", "getenv", "getenvb")
_EVERYTHING = 1  # the first line
# Calls by the last part of their name. None of them changes another module.
# What comes out is known if what goes in is:
_KNOWN_CALLS = frozenset(
    "Path TypeVar abs abspath basename bool bytes callable catch_warnings decode dict dirname"
    " encode endswith enumerate exit expanduser float format frozenset get getLogger getenv hasattr"
    " int isinstance issubclass items join joinpath keys len list lower lstrip max min namedtuple"
    " normpath range realpath relpath removeprefix removesuffix replace repr resolve reversed"
    " round rsplit rstrip set sorted split splitext startswith str strip sum title tuple type upper"
    " values with_suffix zip".split()
)
# It depends on where, when, beside what and how the program runs:
_UNKNOWN_CALLS = frozenset(
    "ArgumentParser add_argument add_argument_group add_mutually_exclusive_group add_parser"
    " add_subparsers cpu_count exists getcwd getfqdn gethostname getpid getppid getsize getuser"
    " glob iglob isatty isdir isfile islink isoformat listdir machine monotonic node now open"
    " parse_args parse_known_args perf_counter read read_bytes read_text readline readlines stat"
    " strftime system time timestamp today uname utcnow vars walk".split()
)
# So it does, if they are functions of these; others' of that name may set what they have read:
_LOADS = frozenset(["full_load", "load", "loads", "safe_load"])
_LOADERS = frozenset(["json", "marshal", "pickle", "plistlib", "tomllib", "toml", "yaml"])
# These set something, by what goes in:
_SETTERS = frozenset(
    "append addsitedir basicConfig enable extend filterwarnings insert manual_seed pop seed"
    " setLevel setdefault simplefilter update use".split()
)
_PLAIN = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Compare, ast.Constant, ast.Dict, ast.FormattedValue,
    ast.JoinedStr, ast.List, ast.Name, ast.Set, ast.Slice, ast.Starred, ast.Subscript, ast.Tuple,
    ast.UnaryOp, ast.boolop, ast.cmpop, ast.expr_context, ast.operator, ast.unaryop, ast.keyword,
    ast.Call, ast.Lambda, ast.arguments, ast.arg, ast.IfExp, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.comprehension,
)  # fmt: skip
# what modules have alike in all jobs; so have those of the standard library all but what is given
_KNOWN_OF_MODULES = frozenset(["__file__", "__name__", "__path__", "__version__"])
_LIBRARY: frozenset[str] = getattr(sys, "stdlib_module_names", frozenset()) or frozenset(
    ["builtins", "locale", "logging", "os", "pathlib", "platform", "sys", "typing", "warnings"]
)
_KNOWN_NAMES = frozenset(
    ["__name__", "__file__", "__package__", "__spec__", "__doc__", *dir(builtins)]
)


def parsed(source: bytes | str) -> list[ast.stmt] | None:
    """Its statements; None of what is no Python (of this version)."""
    try:
        with warnings.catch_warnings():  # of what an author has written, nobody asked here
            warnings.simplefilter("ignore")
            return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def first_choice(
    source: bytes | str, *, variables: bool = False, strict: bool = False
) -> int | None:
    """The line of a script from which on what is imported may depend on what it is given; None if
    all of it does not. `variables`: those of the environment are given, too; `strict`: a choice of
    the values that names of its own get is one."""
    statements = parsed(source)
    if statements is None:
        return _EVERYTHING
    script = _Script(variables, strict)
    try:
        return next((_begins(one) for one in statements if not script.is_plain(one)), None)
    except RecursionError:
        return _EVERYTHING


def _begins(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


class _Script:
    """What is known after the statements that have been asked for so far, in their order."""

    def __init__(self, variables: bool, strict: bool) -> None:
        self._variables, self._strict = variables, strict
        self._known = set(_KNOWN_NAMES)
        self._modules: dict[str, str] = {}  # name -> the first part of the module's own
        self._own: set[str] = set()  # names of which it is not known what they are

    def is_plain(self, statement: ast.stmt) -> bool:
        """Whether it does the same to all other modules, whatever is given."""
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            return self._is_import(statement)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._bind(statement.name, known=False)
            return all(
                map(self._does_alike, [*statement.decorator_list, *defaults(statement.args)])
            )
        if isinstance(statement, ast.ClassDef):
            self._bind(statement.name, known=False)
            values = [*statement.decorator_list, *statement.bases]
            return all(map(self._does_alike, values)) and self._are_plain(statement.body)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            return self._is_assignment(statement)
        if isinstance(statement, ast.Expr):
            return self._does_alike(statement.value)
        if isinstance(statement, ast.If):
            return self._does_alike(statement.test) and self._chooses_alike(
                self._is_known(statement.test) or self._is_module(statement.test),
                _blocks(statement),
            )
        if isinstance(statement, ast.For):
            known = self._is_known(statement.iter)
            self._bind_all([statement.target], known)
            return self._does_alike(statement.iter) and self._chooses_alike(
                known, _blocks(statement)
            )
        if isinstance(statement, ast.Assert):
            return self._does_alike(statement.test)
        if isinstance(statement, ast.Try):
            return self._chooses_alike(
                all(map(self._raises_alike, statement.body)), _blocks(statement)
            )
        if isinstance(statement, ast.With):
            self._bind_all([item.optional_vars for item in statement.items], known=False)
            items = [item.context_expr for item in statement.items]
            return all(map(self._does_alike, items)) and self._are_plain(_blocks(statement))
        if isinstance(statement, ast.Delete):
            return all(isinstance(target, ast.Name) for target in statement.targets)
        return isinstance(statement, (ast.Pass, ast.Raise, ast.Break, ast.Continue))

    def _chooses_alike(self, known: bool, blocks: Sequence[ast.stmt]) -> bool:
        """Whether these, executed or not, change other modules alike; `known`: whether they are is
        known."""
        if not known and (self._strict or not _only_binds(blocks)):
            return False
        alike = self._are_plain(blocks)
        if not known:
            for one in blocks:
                self._bind_all(_targets(one), known=False)
        return alike

    def _are_plain(self, statements: Sequence[ast.stmt]) -> bool:
        return all(map(self.is_plain, statements))

    def _is_import(self, statement: ast.Import | ast.ImportFrom) -> bool:
        for alias in statement.names:
            package = alias.name.partition(".")[0]
            if isinstance(statement, ast.Import):
                self._bind(alias.asname or package, known=True)
                self._modules[alias.asname or package] = package
            else:
                package = (statement.module or "").partition(".")[0]
                known = package in _LIBRARY and not self._is_given(alias.name)
                self._bind(alias.asname or alias.name, known and not statement.level)
                if known or alias.name in _SETTERS and not alias.asname:
                    self._own.discard(alias.asname or alias.name)
        return True

    def _is_assignment(self, statement: ast.Assign | ast.AugAssign | ast.AnnAssign) -> bool:
        value = statement.value
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if value is None:
            return True
        known = self._is_known(value)
        for one in _flat(targets):
            more = isinstance(statement, ast.AugAssign) and not self._is_known(one)
            if isinstance(one, ast.Name):
                self._bind(one.id, known=known and not more)
            elif _is_environment(getattr(one, "value", one)):
                continue  # a module that is shown compares what it read there
            elif not known or isinstance(one, ast.Subscript) and not self._is_known(one.slice):
                return False
        return all(map(self._does_alike, [value, *targets]))

    def _bind_all(self, targets: Sequence[ast.expr | None], known: bool) -> None:
        for one in _flat(targets):
            if isinstance(one, ast.Name):
                self._bind(one.id, known)

    def _bind(self, name: str, known: bool) -> None:
        self._modules.pop(name, None)
        self._own.add(name)
        (self._known.add if known else self._known.discard)(name)

    def _does_alike(self, expression: ast.expr) -> bool:
        """Whether what it sets, if anything, is the same whatever is given."""
        parts = list(ast.walk(expression))
        calls = [part for part in parts if isinstance(part, ast.Call)]
        if not all(isinstance(part, _PLAIN) for part in parts) or not all(map(self._may, calls)):
            return False
        setters = [call for call in calls if _called(call) in _SETTERS]
        if setters or self._strict:
            choices = [one for one in parts if isinstance(one, (ast.BoolOp, ast.IfExp))]
            if not all(map(self._is_known, choices)):
                return False
        return all(
            _is_search_path(call.func)
            or isinstance(call.func, ast.Attribute)
            and _is_environment(call.func.value)
            or all(map(self._is_known, _given(call)))
            for call in setters
        )

    def _may(self, call: ast.Call) -> bool:
        """Whether a call sets nothing but by what goes in."""
        name, function = _called(call), call.func
        if isinstance(function, ast.Name):
            known = _KNOWN_CALLS | _UNKNOWN_CALLS | _SETTERS
            return name in known and name not in self._own
        where = function.value if isinstance(function, ast.Attribute) else function
        package = self._module(where)
        if name in _LOADS:
            return package in _LOADERS
        if name == "add_argument" and not all(map(_is_plain_argument, call.keywords)):
            return False
        of_library = package is None or package in _LIBRARY
        return name in _SETTERS or name in _KNOWN_CALLS | _UNKNOWN_CALLS and of_library

    def _raises_alike(self, statement: ast.stmt) -> bool:
        """Whether it raises or does not, whatever is given."""
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            return True
        values = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
        blocks = _blocks(statement)
        return all(map(self._is_known, values)) and all(map(self._raises_alike, blocks))

    def _is_known(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            known = node.id in self._known and node.id not in self._modules
            return isinstance(node.ctx, ast.Store) or known
        if isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
            parts = [part for part in ast.iter_child_nodes(node) if not self._is_module(part)]
            return all(map(self._is_known, parts))
        if isinstance(node, ast.Attribute):
            if self._is_given(node.attr):
                return False
            package = self._module(node.value)
            if package is None:
                return self._is_known(node.value)
            is_kind = node.attr.endswith("Warning")
            return package in _LIBRARY or node.attr in _KNOWN_OF_MODULES or is_kind
        if isinstance(node, ast.Call):
            where = node.func.value if isinstance(node.func, ast.Attribute) else None
            of_library = where and self._is_module(where) and self._module(where) in _LIBRARY
            return (
                _called(node) in _KNOWN_CALLS
                and not self._is_given(_called(node))
                and (where is None or of_library or self._is_known(where))
                and all(map(self._is_known, _given(node)))
            )
        if isinstance(node, ast.Lambda) or not isinstance(node, _PLAIN):
            return False
        return all(map(self._is_known, ast.iter_child_nodes(node)))

    def _is_given(self, name: str) -> bool:
        return name in ARGUMENTS or self._variables and name in _VARIABLES

    def _is_module(self, node: ast.AST) -> bool:
        """One by its name: it may be asked for whether it is there."""
        return isinstance(node, ast.Name) and node.id in self._modules

    def _module(self, node: ast.expr) -> str | None:
        """The first part of a module's name if it is one, or what lies in one by a dotted name."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return self._modules.get(node.id) if isinstance(node, ast.Name) else None


def _only_binds(statements: Iterable[ast.stmt]) -> bool:
    """Whether nothing but names of the script's own gets another value."""
    return all(
        isinstance(one, (ast.Pass, ast.Raise))
        or isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Call)
        and _dotted(one.value.func) == "sys.exit"
        or isinstance(one, ast.Assign)
        and all(isinstance(target, ast.Name) for target in _flat(one.targets))
        and not any(
            isinstance(part, ast.Call) and _called(part) in _SETTERS for part in ast.walk(one)
        )
        for one in statements
    )


def _targets(statement: ast.stmt) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else []


def _flat(targets: Iterable[ast.expr | None]) -> list[ast.expr]:
    found: list[ast.expr] = []
    for one in targets:
        if isinstance(one, (ast.Tuple, ast.List)):
            found += _flat(one.elts)
        elif isinstance(one, ast.Starred):
            found += _flat([one.value])
        elif one is not None:
            found.append(one)
    return found


def defaults(arguments: ast.arguments) -> list[ast.expr]:
    """What is evaluated where a function is defined."""
    return [one for one in [*arguments.defaults, *arguments.kw_defaults] if one is not None]


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _is_plain_argument(keyword: ast.keyword) -> bool:
    """Of add_argument(): an action of the program's own may do anything."""
    return keyword.arg != "action" or isinstance(keyword.value, ast.Constant)


def _is_environment(node: ast.expr) -> bool:
    return _dotted(node) in ("os.environ", "environ")


def _is_search_path(function: ast.expr) -> bool:
    """`sys.path.append`: where a module was found is compared where it is imported."""
    return isinstance(function, ast.Attribute) and _dotted(function.value) == "sys.path"


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _blocks(statement: ast.stmt) -> list[ast.stmt]:
    """The statements inside one, of all its branches."""
    found: list[ast.stmt] = []
    for name in ("body", "orelse", "finalbody"):
        found += getattr(statement, name, [])
    for handler in getattr(statement, "handlers", []):
        found += handler.body
    return found
