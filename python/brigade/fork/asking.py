"""Which modules may look at a program's arguments when they are imported.

    looks(text)                  whether its own statements name them, not those of its functions
    asking(imports, texts)       of the program's own modules, those that may ask another for them

`sys.argv` in a module's own statements is one way. A program's own modules go others, too:
`args = parser.parse_args()`, or `from config import args` of one that did. Pure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from brigade.fork.calls import ARGUMENTS
from brigade.fork.choices import first_choice
from brigade.fork.syntax import defaults, is_program, parsed

# what hands arguments to who calls it, or leads there
_WORDS = re.compile(
    rb"argv|parse_args|parse_known_args|parse_intermixed_args|docopt|getopt|absl|"
    rb"\b(?:click|typer|fire|hydra|tyro|jsonargparse|simple_parsing|configargparse|plac)\b"
)


def looks(source: bytes) -> bool:
    if b"argv" not in source:
        return False
    statements = parsed(source)
    try:
        return statements is None or any(map(_names_them, _executed(statements)))
    except RecursionError:
        return True


def asking(imports: Mapping[str, Sequence[str]], texts: Mapping[str, bytes]) -> set[str]:
    """Of modules with these `texts`, which may ask for the arguments as they are imported: they
    make a choice or call something, and it is they, or one that they import, that has words for
    it."""
    have = {name for name, text in texts.items() if _WORDS.search(text)}
    front = list(have)
    while front:
        one = front.pop()
        more = [name for name in texts if one in imports.get(name, ()) and name not in have]
        have.update(more)
        front += more
    return {name for name in have if first_choice(texts[name], strict=True) is not None}


def _executed(statements: Sequence[ast.stmt]) -> list[ast.AST]:
    """All that is executed when a module is imported: not the bodies of functions, nor what it
    does as a program."""
    found: list[ast.AST] = []
    front: list[ast.AST] = list(statements)
    while front:
        node = front.pop()
        found.append(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            front += [*defaults(node.args), *getattr(node, "decorator_list", [])]
        elif isinstance(node, ast.If) and is_program(node.test):
            front += node.orelse
        else:
            front += ast.iter_child_nodes(node)
    return found


def _names_them(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ARGUMENTS
    if isinstance(node, ast.alias):
        return node.name in ARGUMENTS
    return isinstance(node, ast.Constant) and node.value in ARGUMENTS
