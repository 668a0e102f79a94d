"""Which modules a module's text asks for in `sys.modules`, without importing them.

    present(source)    names that its own statements have beside `sys.modules`: `HAVE_MPI =
                       "mpi4py.MPI" in sys.modules`

Where one of them is left, it is not there while a template warms, and is in a rank. Not seen: what
the functions do that it calls, and names that it puts together. Pure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from brigade.fork.source.syntax import parsed

_MAY = re.compile(rb"\bsys\s*\.\s*modules\b|\bfrom\s+sys\s+import\b|\bsys\s+as\s")
_MODULES = "modules"


def present(source: bytes) -> set[str]:
    """Any words of such a text may be among them."""
    if not _MAY.search(source):
        return set()
    statements = parsed(source)
    nodes = _executed(statements) if statements else []
    others = [n.value for n in nodes if isinstance(n, ast.Subscript) and not _asks(n)]
    if sum(map(_is_of_modules, nodes)) == sum(map(_is_of_modules, others)):
        return set()
    words = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return {word for word in words if isinstance(word, str)}


def _asks(node: ast.Subscript) -> bool:
    """`sys.modules["thing"]`; not what is put there, nor `sys.modules[__name__]`."""
    return isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Constant)


def _executed(statements: Sequence[ast.stmt]) -> list[ast.AST]:
    """All but what stands in functions."""
    found: list[ast.AST] = []
    front: list[ast.AST] = list(statements)
    while front:
        node = front.pop()
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            found.append(node)
            front += ast.iter_child_nodes(node)
    return found


def _is_of_modules(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == _MODULES
    return isinstance(node, ast.ImportFrom) and any(n.name == _MODULES for n in node.names)
