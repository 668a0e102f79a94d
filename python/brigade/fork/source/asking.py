"""Which modules may look at a program's arguments when they are imported.

    looks(text)                  whether its own statements name them, not those of its functions
    asking(imports, texts)       of the program's own modules, those that may ask another for them

`sys.argv` in a module's own statements is one way. A program's own modules go others, too:
`args = parser.parse_args()`, or `from config import args` of one that did. What only stands in a
function that nothing in its module uses as it is imported hands out nothing then. Pure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from brigade.fork.source import calls
from brigade.fork.source.at_import import executed, reached
from brigade.fork.source.calls import ADD, ARGUMENTS, OF_COMMANDS, Does
from brigade.fork.source.choices import first_choice
from brigade.fork.source.syntax import called, parsed, stored

# what hands arguments to who calls it
_WORDS = re.compile(
    rb"argv|parse_args|parse_known_args|parse_intermixed_args|docopt|getopt|absl|cmdline|from_cli|"
    rb"call_parse|automain|pyrallis|draccus|"
    rb"\b(?:click|typer|fire|hydra|tyro|jsonargparse|simple_parsing|configargparse|plac|argh|cleo|"
    rb"clize|cyclopts|defopt|sacred)\b"
)
_NAMED = re.compile(r"^(?:orig_)?argv$|^parse_(?:\w+_)?args$|cmdline$")
# by these classes are found by who has not imported them
_TELLS = re.compile(
    rb"__init_subclass__|__set_name__|__subclasses__|metaclass(?!\s*=\s*(?:abc\.)?ABCMeta\b)"
)
# by these it may come to anything of the modules that it has imported
_ANYWAY = frozenset(
    "__builtins__ __import__ eval exec globals import_module importlib locals modules".split()
)
# of what hands arguments out, what does not
_SILENT = ("hydra.core.config_store.", "absl.logging.", "absl.flags.DEFINE_")


def looks(source: bytes) -> bool:
    if b"argv" not in source:
        return False
    statements = parsed(source)
    try:
        return statements is None or any(map(_names_them, executed(statements)))
    except RecursionError:
        return True


def asking(imports: Mapping[str, Sequence[str]], texts: Mapping[str, bytes]) -> set[str]:
    """Of modules with these `texts`, which may ask for the arguments as they are imported: they
    make a choice or call something, and what they do then has words for it, or names of one that
    has, or imports such a one."""
    have = {name for name, text in texts.items() if _WORDS.search(text)}
    front = list(have)
    while front:
        one = front.pop()
        more = [name for name in texts if one in imports.get(name, ()) and name not in have]
        have.update(more)
        front += more
    read = {name: _Module(name, texts, have) for name in have}
    found_anyhow = any(map(_TELLS.search, texts.values())) or any(
        module.escapes() for module in read.values()
    )
    return {
        name
        for name, module in read.items()
        if (found_anyhow or module.may_have())
        and first_choice(texts[name], strict=True, module=True) is not None
    }


class _Module:
    """One of which the text, or one that it imports, has words; `have`: all that are so."""

    def __init__(self, name: str, texts: Mapping[str, bytes], have: Collection[str]) -> None:
        self._name, self._all, self._have = name, texts, have
        self._statements = parsed(texts[name])
        self._homes: dict[str, set[str]] = {}  # of the names that it imports, and has from those
        self._commands: set[str] = set()  # names of what parses the arguments when it is called

    def may_have(self) -> bool:
        """Whether what is executed as it is imported may get at the arguments."""
        if self._statements is None:
            return True
        try:
            nodes = reached(self._statements)
            return self._imports(nodes) or self._asks(nodes)
        except RecursionError:
            return True

    def escapes(self) -> bool:
        """Whether it has a class with methods that get at them, of which an installed package may
        know by the class's base."""
        nodes = [node for one in self._statements or () for node in ast.walk(one)]
        self._imports(nodes)
        return any(
            isinstance(node, ast.ClassDef)
            and any(map(self._is_elsewhere, node.bases))
            and self._asks(list(ast.walk(node)))
            for node in nodes
        )

    def _is_elsewhere(self, base: ast.expr) -> bool:
        base = base.value if isinstance(base, ast.Subscript) else base
        homes = self._dotted(base)
        return any(not calls.is_common(home) and not self._module(home) for home in homes)

    def _imports(self, nodes: Iterable[ast.AST]) -> bool:
        """Notes what its names are; True if they may be anything."""
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    home = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._homes.setdefault(alias.asname or home, set()).add(home)
            elif isinstance(node, ast.ImportFrom):
                for module in self._absolute(node):
                    if node.names[0].name == "*" and self._hands(f"{module}.*"):
                        return True
                    for alias in node.names:
                        name = alias.asname or alias.name
                        self._homes.setdefault(name, set()).add(f"{module}.{alias.name}")
        return False

    def _absolute(self, node: ast.ImportFrom) -> list[str]:
        """The module's name; two, if it is not known whether this one is a package."""
        if not node.level:
            return [node.module or ""]
        parts = self._name.split(".")
        ends = [len(parts) - node.level + more for more in (0, 1)]
        bases = [".".join(parts[:end]) for end in ends if end > 0]
        return [f"{base}.{node.module}" if node.module else base for base in bases]

    def _asks(self, nodes: Sequence[ast.AST]) -> bool:
        harmless = self._commands_in(nodes)
        return any(id(node) not in harmless and self._is_word(node) for node in nodes)

    def _commands_in(self, nodes: Sequence[ast.AST]) -> set[int]:
        """Notes the names of commands; the nodes that only say what a command is."""
        harmless: set[int] = set()
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for one in node.decorator_list:
                    function = one.func if isinstance(one, ast.Call) else one
                    if any(map(_is_of_commands, self._dotted(function))):
                        self._commands.add(node.name)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                function = node.value.func if isinstance(node.value, ast.Call) else node.value
                if any(map(_is_of_commands, self._dotted(function))):
                    self._commands |= stored(node)
        for node in nodes:
            if isinstance(node, ast.Call) and called(node) in ADD:
                if self._is_command(getattr(node.func, "value", None)):
                    harmless |= {id(one) for one in node.args}
            if isinstance(node, ast.Attribute):
                homes = self._dotted(node)
                if homes and not any(map(self._is_loud, homes)):
                    harmless |= {id(part) for part in ast.walk(node)}
                if node.attr in OF_COMMANDS and self._is_command(node.value):
                    harmless |= {id(node.value), id(node)}
        return harmless

    def _is_command(self, node: ast.AST | None) -> bool:
        return isinstance(node, ast.Name) and node.id in self._commands

    def _dotted(self, node: ast.AST) -> list[str]:
        """What it may be, by its imports."""
        if isinstance(node, ast.Attribute):
            return [f"{home}.{node.attr}" for home in self._dotted(node.value)]
        return sorted(self._homes.get(node.id, ())) if isinstance(node, ast.Name) else []

    def _is_word(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Constant):
            value = node.value
            return isinstance(value, str) and bool(_NAMED.search(value))
        if isinstance(node, ast.keyword):
            return bool(_WORDS.search((node.arg or "").encode()))
        if isinstance(node, ast.Attribute):
            name, homes = node.attr, self._dotted(node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            name, homes = node.id, self._dotted(node)
        else:
            return False
        if name in self._commands or name in _ANYWAY or any(map(self._is_loud, homes)):
            return True
        return not homes and bool(_WORDS.search(name.encode()))

    def _is_loud(self, home: str) -> bool:
        """Whether by that name arguments may come."""
        if self._hands(home) or not _ANYWAY.isdisjoint(home.split(".")):
            return True
        if calls.of_home(home) in (Does.NOTHING, Does.LOOKS) and _is_of_commands(home):
            return False
        if calls.decorates(home) or home.startswith(_SILENT):
            return False
        return bool(_WORDS.search(home.encode()))

    def _hands(self, home: str) -> bool:
        """Of the program's own modules: the innermost that it lies in, or one that lies in it, has
        words, or imports one that has."""
        if any(name.startswith(f"{home}.") for name in self._have):
            return True
        module = self._module(home)
        return module in self._have and module != self._name

    def _module(self, home: str) -> str:
        """The program's own, in which it lies; or ""."""
        while home and home not in self._all:
            home = home.rpartition(".")[0]
        return home


def _is_of_commands(home: str) -> bool:
    return home.partition(".")[0] in ("click", "typer", "hydra") and not home.startswith(_SILENT)


def _names_them(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ARGUMENTS
    if isinstance(node, ast.alias):
        return node.name in ARGUMENTS
    return isinstance(node, ast.Constant) and node.value in ARGUMENTS
