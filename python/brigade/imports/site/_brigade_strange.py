"""Whether a module of the program's own that the trial did not import may set something in others.

    may_set(path)   of its source: it does more than import, define and name things

A rank executes such a module itself, and nobody has seen what it does: if it may set something,
what comes then cannot be shown. Whoever is not sure says that it may.

What must stay true: the rules of _brigade_view.py; no warning of the parser is shown here, for the
module's own execution shows it.
"""

from _brigade_common import read_whole

_ONLY_PARSED = 0x400  # ast.PyCF_ONLY_AST
_NAMES_THINGS = ("Assign", "AnnAssign")
_DEFINES = ("FunctionDef", "AsyncFunctionDef", "ClassDef")
_BLOCKS = ("If", "Try")
_NOTHING = ("Import", "ImportFrom", "Pass", "Global")
# these change nothing, or keep what they are given
_CALLS = frozenset(
    "dict field float frozenset getLogger int len list namedtuple range set sorted str tuple"
    " TypeVar Path compile join dirname abspath".split()
)
_DECORATORS = frozenset(
    "property staticmethod classmethod dataclass wraps lru_cache cache cached_property"
    " contextmanager abstractmethod overload setter".split()
)
_LIBRARY = frozenset(
    "abc collections contextlib dataclasses enum functools logging os path pathlib re"
    " typing".split()
)
_BASES = frozenset(
    "object Exception ValueError RuntimeError TypeError KeyError dict list str int tuple NamedTuple"
    " TypedDict Protocol ABC Enum IntEnum Generic".split()
)


def may_set(path):
    if not path.endswith(".py"):
        return True
    try:
        text = read_whole(path)
        if b"\\" in text:
            return True  # the parser may warn of one
        return not _are_plain(compile(text, path, "exec", _ONLY_PARSED, True).body)
    except Exception:
        return True


def _kind(node):
    return type(node).__name__


def _are_plain(statements):
    return all(map(_is_plain, statements))


def _is_plain(node):
    kind = _kind(node)
    if kind in _NAMES_THINGS:
        targets = node.targets if kind == "Assign" else [node.target]
        return all(_kind(one) == "Name" for one in targets) and _is_quiet(node.value)
    if kind in _DEFINES:
        if not all(_name(one) in _DECORATORS for one in node.decorator_list):
            return False
        if kind == "ClassDef":
            named = all(_name(one) in _BASES for one in node.bases) and not node.keywords
            return named and _are_plain(node.body)
        defaults = [*node.args.defaults, *node.args.kw_defaults]
        return all(map(_is_quiet, defaults))
    if kind in _BLOCKS:
        handlers = getattr(node, "handlers", ())
        blocks = [node.body, node.orelse, getattr(node, "finalbody", ())]
        blocks += [one.body for one in handlers]
        quiet = kind == "Try" or _is_quiet(node.test)
        return quiet and all(map(_are_plain, blocks))
    return kind in _NOTHING or kind == "Expr" and _is_quiet(node.value)


def _is_quiet(node):
    """Whether an expression changes nothing, of an AST or of its fields."""
    if isinstance(node, list):
        return all(map(_is_quiet, node))
    kind = _kind(node)
    if kind in ("Await", "Yield", "YieldFrom", "NamedExpr", "Lambda"):
        return kind == "Lambda"  # called later, if at all
    if kind == "Call" and _name(node.func) not in _CALLS:
        return False
    return all(_is_quiet(getattr(node, name, None)) for name in getattr(node, "_fields", ()))


def _name(node):
    """The last part of what is called, or decorates, if that is a builtin's name or lies in a
    module of the standard library; or ""."""
    if _kind(node) == "Call":
        node = node.func
    if _kind(node) == "Name":
        return node.id
    root = node
    while _kind(root) == "Attribute":
        root = root.value
    return node.attr if getattr(root, "id", "") in _LIBRARY else ""
