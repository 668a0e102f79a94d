"""What a module's text sets in other modules.

    sets(text, module)   what it imports, and changes: `settings.digits = 15`, or, with
                         `from settings import table`, `table["digits"] = 15`, `table.update(...)`;
                         dotted names ("settings.table") of modules, or of what lies in them

Of its functions, too: they may be called as it is imported. What the functions of others do that it
calls is seen in a trial (`called`). Pure. Whoever is not sure says that it does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from brigade.fork.choices import parsed

# these change what they are called of
_CHANGES = frozenset(
    "add append clear discard extend insert pop popitem register remove reverse setdefault sort"
    " update".split()
)
# of these, what programs set is looked at when it is used, or compared where a module is shown
_USED_LATE = ("sys", "os", "warnings", "logging", "__future__")


def sets(source: bytes, module: str) -> set[str]:
    statements = parsed(source)
    if statements is None:
        return set()  # it cannot be imported either
    homes: dict[str, str] = {}
    nodes = [node for statement in statements for node in ast.walk(statement)]
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                homes[alias.asname or alias.name.partition(".")[0]] = alias.name
        elif isinstance(node, ast.ImportFrom):
            package = module.partition(".")[0] if node.level else node.module or ""
            for alias in node.names:
                homes[alias.asname or alias.name] = f"{package}.{alias.name}"
    changed = {homes[name] for node in nodes for name in _changed(node) if name in homes}
    return {name for name in changed if name.partition(".")[0] not in _USED_LATE}


def _changed(node: ast.AST) -> Iterator[str]:
    """Names of which something is set."""
    targets: list[ast.expr] = []
    if isinstance(node, (ast.Assign, ast.Delete)):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    elif isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _CHANGES:
            targets = [function]
        elif isinstance(function, ast.Name) and function.id in ("setattr", "delattr"):
            yield from map(_root, node.args[:1])
    while targets:
        one = targets.pop()
        if isinstance(one, (ast.Tuple, ast.List)):
            targets += one.elts
        elif isinstance(one, (ast.Attribute, ast.Subscript)):
            yield _root(one)


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
