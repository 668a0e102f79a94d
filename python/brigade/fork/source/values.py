"""What a script's expressions do, and what is known of their values: choices.py asks.

    scope = Scope(variables, strict)   names, and what they stand for; variables: those of the
                                       environment are given to the program, too
    scope.does_alike(expression)       whether what it sets, if anything, is so whatever is given
    scope.is_known(expression)         whether its value is

A name is one of three: *known*, its value is the same whatever is given; of a *home*, it was
imported (or stands for what lies in something imported): always the same thing, and nobody knows
what is in it; or neither. A value is *fresh* if nothing imported can be it, or be in it: its
methods are those of Python's own types. Pure.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Union

from brigade.fork.source import calls
from brigade.fork.source.calls import Does
from brigade.fork.source.syntax import PLAIN, bound, called, flat, given, parameters, stored

_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DISPLAYS = (*_COMPREHENSIONS, ast.Dict, ast.List, ast.Set, ast.Tuple)
_HARMLESS = (Does.NOTHING, Does.LOOKS)
# in a function that changes nothing there is none of these
_CHANGING = (
    ast.AsyncWith, ast.AugAssign, ast.Await, ast.AsyncFunctionDef, ast.ClassDef, ast.Delete,
    ast.FunctionDef, ast.Global, ast.Import, ast.ImportFrom, ast.NamedExpr, ast.Nonlocal, ast.With,
)  # fmt: skip


@dataclass(frozen=True)
class Name:
    known: bool = False
    fresh: bool = False
    typed: bool = False  # of one of Python's own types, whatever is in it
    home: str = ""  # a dotted name, which begins with a module's; "builtins.len"
    loose: bool = False  # what has that home may be another thing: it lies in what another has set
    module: bool = False  # itself one, or None where there is none
    placed: bool = False  # derived from __file__: a path that does not depend on where it works
    parsed: bool = False  # an object made by parse_args(), which is the script's alone
    function: _Function | None = None  # its own
    decorated: bool = False  # a function, by what leaves it uncalled
    kind: str = ""  # its own class: "own", or "told" if one of another module's may know of it


UNKNOWN = Name()
KNOWN = Name(known=True, fresh=True)
_ALWAYS = {
    **dict.fromkeys(["__name__", "__package__", "__spec__", "__doc__"], KNOWN),
    "__file__": replace(KNOWN, placed=True),
}


def of_builtin(name: str) -> Name:
    return Name(home=f"builtins.{name}") if hasattr(builtins, name) else UNKNOWN


def either(one: Name | None, other: Name | None) -> Name:
    """What a name is after one of two branches, where it is known which is taken."""
    if one is None or other is None or one == other:
        return one or other or UNKNOWN
    homes = [name.home for name in (one, other) if name.home]
    if homes and all(name.known or name.home for name in (one, other)):
        home = next((home for home in homes if not calls.is_library(home)), homes[0])
        module = all(name.module or name.known and not name.home for name in (one, other))
        return Name(home=home, module=module, loose=one.loose or other.loose)
    return Name(
        known=one.known and other.known,
        fresh=one.fresh and other.fresh,
        typed=one.typed and other.typed,
        placed=one.placed and other.placed,
        parsed=one.parsed and other.parsed,
    )


class Scope:
    def __init__(self, variables: bool, strict: bool) -> None:
        self._strict = strict
        # what is alike in all jobs otherwise
        self._given = set(calls.VARIABLES if variables else ())
        self.names: dict[str, Name] = dict(_ALWAYS)

    def name(self, name: str) -> Name:
        return self.names.get(name) or of_builtin(name)

    def home(self, node: ast.AST) -> str:
        """The dotted name of what is, or lies in, something imported or built in; or ""."""
        if isinstance(node, ast.Attribute):
            home = self.home(node.value)
            return f"{home}.{node.attr}" if home else ""
        if isinstance(node, ast.Call):
            home = calls.SAME.get(self.home(node.func), "")
            return home if all(map(self.is_known, given(node))) else ""
        return self.name(node.id).home if isinstance(node, ast.Name) else ""

    def is_module(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and self.name(node.id).module

    def is_looked_up(self, node: ast.AST) -> bool:
        """Whether what is put there is compared by who looks there, or where it was found: the
        environment, and `sys.path`."""
        return self.home(node) in ("os.environ", "os.environb", "sys.path")

    def is_set_anyhow(self, node: ast.AST) -> bool:
        """The same, of what gets something that is not known."""
        if self.is_looked_up(node):
            home = self.home(node)
            self._given.update([home] if home == "sys.path" else calls.VARIABLES)
        return self.is_looked_up(node)

    def is_same(self, node: ast.AST) -> bool:
        """Whether it is the same thing whatever is given, and so may be changed."""
        if isinstance(node, ast.Name):
            name = self.name(node.id)
            own = name.function is not None or bool(name.kind)
            return own or bool(name.home) and not name.loose or self.is_known(node)
        home = self.home(node)
        if isinstance(node, ast.Attribute) and self.is_module(node.value):
            return True
        return calls.is_common(home) or self.is_known(node)

    def value(self, node: ast.expr) -> Name:
        """What a name stands for that gets it."""
        if isinstance(node, ast.Name):
            return replace(self.name(node.id), parsed=False)
        home = self.home(node)
        return Name(
            known=not home and self.is_known(node),
            fresh=self.is_fresh(node),
            typed=self._is_typed(node),
            home=home,
            loose=bool(home) and not self.is_same(node),
            placed=self._is_placed(node),
            parsed=isinstance(node, ast.Call) and called(node) in calls.PARSES,
        )

    # ---- values

    def is_known(self, node: ast.AST, *, consumed: bool = False) -> bool:
        """`consumed`: at once, if it is an iterator; later, it may be by choice."""
        if isinstance(node, ast.Name):
            name = self.name(node.id)
            known = self._is_alike(name.home) if name.home else name.known
            return isinstance(node.ctx, ast.Store) or known
        if isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
            parts = [part for part in ast.iter_child_nodes(node) if not self.is_module(part)]
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
                parts = [part for part in parts if self.home(part) != "sys.modules"]
            return all(map(self.is_known, parts))
        if isinstance(node, ast.Attribute):
            home = self.home(node)
            return self._is_alike(home) if home else self.is_known(node.value)
        if isinstance(node, ast.Call):
            return self._is_known_call(node, consumed)
        if isinstance(node, ast.comprehension):
            return self.is_known(node.iter, consumed=True) and all(map(self.is_known, node.ifs))
        if isinstance(node, ast.GeneratorExp) and not consumed or isinstance(node, ast.Lambda):
            return False
        if not isinstance(node, PLAIN):
            return False
        return all(map(self.is_known, ast.iter_child_nodes(node)))

    def _is_alike(self, home: str) -> bool:
        return calls.is_alike(home) and home not in self._given

    def _is_known_call(self, call: ast.Call, consumed: bool) -> bool:
        name, home = called(call), self.home(call.func)
        is_iterator = name in calls.ITERATORS
        if home in calls.SAME or is_iterator and not consumed:
            return False
        if self.does(call) is not Does.NOTHING:
            return False
        if isinstance(call.func, ast.Attribute) and not calls.is_function(home):
            if not self.is_known(call.func.value):
                return False
        if home in self._given or self._given and name in calls.EXPAND:
            return False
        if name in calls.FROM_FOLDER and not self._is_placed(call):
            return False
        consumes = is_iterator or name in calls.CONSUMERS
        return all(self.is_known(one, consumed=consumes) for one in given(call))

    def _is_placed(self, node: ast.AST) -> bool:
        names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
        return any(self.name(name).placed for name in names)

    def is_fresh(self, node: ast.AST) -> bool:
        home = self.home(node)
        if home:
            return self._is_alike(home) or calls.is_fresh(home)
        if isinstance(node, ast.Name):
            name = self.name(node.id)
            return name.known or name.fresh or isinstance(node.ctx, ast.Store)
        if isinstance(node, ast.Call) and self._makes(node) or isinstance(node, ast.JoinedStr):
            return True
        if isinstance(node, _COMPREHENSIONS):
            inside = self._with(bound(node.generators), KNOWN)
            return all(map(inside.is_fresh, ast.iter_child_nodes(node)))
        return all(map(self.is_fresh, ast.iter_child_nodes(node)))

    def _is_typed(self, node: ast.AST) -> bool:
        """Whether its methods are those of one of Python's own types, whatever is in it."""
        if isinstance(node, ast.Name) and not self.name(node.id).home:
            return self.name(node.id).typed or self.is_fresh(node)
        return isinstance(node, _DISPLAYS) or self.is_fresh(node)

    def _makes(self, call: ast.Call) -> bool:
        """Whether what comes out of it is of a type of Python's own, whatever goes in."""
        home = self.home(call.func)
        return calls.makes(home) if home else called(call) in calls.OF_TEXT

    def _with(self, names: Iterable[str], value: Name) -> Scope:
        scope = Scope(False, self._strict)
        scope._given = self._given
        scope.names = {**self.names, **dict.fromkeys(names, value)}
        return scope

    # ---- calls

    def does(self, call: ast.Call) -> Does:
        """What a call changes, by what goes in or otherwise."""
        does = self._by_name(call)
        if does in _HARMLESS and not self._is_quiet(call):
            return Does.ANYTHING
        return does

    def _by_name(self, call: ast.Call) -> Does:
        home, name = self.home(call.func), called(call)
        if home == "builtins.type" and len(given(call)) > 1:
            return Does.ANYTHING  # makes a class
        if home:
            does = calls.of_home(home, with_value=bool(call.args))
            if does is not Does.SETS or calls.is_library(home):
                return does
            of_same = not isinstance(call.func, ast.Attribute) or self.is_same(call.func.value)
            return does if of_same and given(call) else Does.ANYTHING
        if not isinstance(call.func, ast.Attribute):
            return Does.ANYTHING
        does = calls.of_value(name)
        if does is Does.SETS:
            return does if self.is_known(call.func.value) else Does.ANYTHING
        where = call.func.value
        is_own = self.is_command(where) if name in calls.ADD else self._is_typed(where)
        return does if is_own or name in calls.OF_TEXT else Does.ANYTHING

    def _is_quiet(self, call: ast.Call) -> bool:
        """Whether a harmless function is given nothing by which it does harm."""
        name, more = called(call), call.keywords
        if name in calls.PARSES:
            spaces = [one.value for one in more if one.arg in ("namespace", None)]
            spaces += [*call.args[1:], *(a for a in call.args if isinstance(a, ast.Starred))]
            if any(self.is_known(one) or not self.is_fresh(one) for one in spaces):
                return False
        if not _reads(call, self.home(call.func)):
            return False
        first, end = calls.CALLERS.get(name, (0, 0))
        if name in calls.OF_PATTERNS and self.home(call.func):
            first, end = first + 1, end + 1
        back = call.args[first:end] + [one.value for one in more if one.arg in calls.CALLED]
        if end and any(isinstance(one, ast.Starred) for one in call.args):
            return False
        parents = [one.value for one in more if one.arg == "parents"]
        all_named = all(one.arg for one in more) or name in calls.OF_ANY_NAMES
        quiet = all(map(self._calls_nothing, back)) and all(map(self.is_fresh, parents))
        return all_named and quiet

    def _calls_nothing(self, node: ast.expr) -> bool:
        """Of what may be called, whether it changes nothing (then); lambdas are looked into where
        they stand."""
        if isinstance(node, (ast.Lambda, ast.JoinedStr)):
            return True
        home = self.home(node)
        if home:
            harmless = calls.is_library(home) and calls.of_home(home) in _HARMLESS
            return harmless or self._is_alike(home) or calls.is_loader(home)
        if isinstance(node, ast.Name) and self.name(node.id).function:
            return self.changes_nothing(self.name(node.id).function)
        makes = isinstance(node, ast.Call) and self.home(node.func) in calls.OPENERS
        return makes or self.is_known(node)

    def changes_nothing(self, function: _Function | None) -> bool:
        """Of a function of the script's own that is given words: whatever way it goes."""
        if function is None:
            return False
        nodes = [node for one in function.body for node in ast.walk(one)]
        for node in nodes:
            if isinstance(node, _CHANGING):
                return False
            if isinstance(node, (ast.Attribute, ast.Subscript)):
                if not isinstance(node.ctx, ast.Load):
                    return False
        words = {one.arg for one in parameters(function.args)}
        locals_ = {name for one in function.body for name in stored(one)} - words
        inside = self._with(words, Name(fresh=True))._with(locals_, UNKNOWN)
        found = [node for node in nodes if isinstance(node, ast.Call)]
        return all(inside.does(one) in _HARMLESS for one in found)

    def does_alike(self, expression: ast.expr) -> bool:
        parts = list(ast.walk(expression))
        if not all(isinstance(part, PLAIN) and _binds_names(part) for part in parts):
            return False
        found = [(part, self.does(part)) for part in parts if isinstance(part, ast.Call)]
        if any(does is Does.ANYTHING for _, does in found):
            return False
        setters = [call for call, does in found if does is Does.SETS]
        if setters and any(isinstance(part, ast.Lambda) for part in parts):
            return False
        if setters or self._strict:
            if not all(self._chooses_alike(part, bool(setters)) for part in parts):
                return False
        return all(map(self._sets_alike, setters))

    def _chooses_alike(self, part: ast.AST, sets: bool) -> bool:
        """Whether all in it is evaluated, whatever is given; and as often, if it sets something."""
        if isinstance(part, ast.comprehension):
            often = not sets or self.is_known(part.iter, consumed=True)
            return often and all(map(self.is_known, part.ifs))
        several = isinstance(part, ast.Compare) and len(part.ops) > 1
        return not (several or isinstance(part, (ast.BoolOp, ast.IfExp))) or self.is_known(part)

    def _sets_alike(self, call: ast.Call) -> bool:
        where = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        known = all(map(self.is_known, given(call)))
        return known or self.is_set_anyhow(where)

    def sets(self, expression: ast.AST) -> bool:
        found = [part for part in ast.walk(expression) if isinstance(part, ast.Call)]
        return any(self.does(call) not in _HARMLESS for call in found)

    def decorates(self, decorator: ast.expr) -> bool:
        """Whether it leaves what it is given uncalled, and changes nothing by it."""
        function = decorator
        if isinstance(decorator, ast.Call):
            function = decorator.func
            if not all(map(self.does_alike, given(decorator))):
                return False
        home = self.home(function)
        if home:
            return calls.decorates(home) and self._calls_no_other(decorator, home)
        if not isinstance(function, ast.Attribute) or function.attr not in calls.OF_DECORATED:
            return False
        return self.is_command(function.value)

    def _calls_no_other(self, decorator: ast.expr, home: str) -> bool:
        """`@lru_cache(f)` and `@partial(f)` call `f`."""
        words = decorator.args if isinstance(decorator, ast.Call) else []
        plain = not words or all(isinstance(one, ast.Constant) for one in words)
        return plain or home == "functools.wraps" or not calls.is_library(home)

    def is_command(self, node: ast.AST) -> bool:
        """Whether another function can be given to it by a method, and is left uncalled."""
        decorated = isinstance(node, ast.Name) and self.name(node.id).decorated
        return decorated or self.is_fresh(node)


def _reads(call: ast.Call, home: str) -> bool:
    """Of one that opens a file: whether it does not write it."""
    place = calls.OPENERS.get(home, 0 if called(call) == "open" else None)
    if place is None:
        return True
    modes = [one.value for one in call.keywords if one.arg == "mode"] + call.args[place:][:1]
    return all(
        isinstance(one, ast.Constant) and not set("wax+") & set(str(one.value)) for one in modes
    )


def _binds_names(part: ast.AST) -> bool:
    """Of a comprehension: `for settings.x in ...` would set that."""
    targets = flat([part.target]) if isinstance(part, ast.comprehension) else []
    return all(isinstance(one, ast.Name) for one in targets)
