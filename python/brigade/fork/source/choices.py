"""From where on what a program imports may depend on what it is given.

    first_choice(a script's text)   the line from which on it may: on arguments, files, variables

A trial shows what a program did with what it was given. Given something else it may set what a
module reads that it imports later (`if "--double" in sys.argv: settings.digits = 15`), and a
template would have imported that without. What stands before all that may depend on it is imported
alike whatever is given: imports, definitions, and plain statements without a choice.

A name is *known* here if its value is the same whatever is given (values.py). What is imported
is not: another module may have looked (`from config import args`). What such a value may do is give
another to names of the script itself; a choice by it, or a change of anything else with it, is a
doubt. So is a change of what is not always the same thing (`x = a if args.k else b; x.y = 1`), and
whatever may run code of another module's: a call of which is not known what it does
(fork/source/calls.py), a decorator, a class of an unknown kind.

Pure. Whoever is not sure says that it may.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from brigade.fork.source import calls
from brigade.fork.source.definitions import Definitions
from brigade.fork.source.syntax import (
    blocks,
    called,
    flat,
    is_program,
    parsed,
    stored,
)
from brigade.fork.source.values import KNOWN, UNKNOWN, Name, Scope, either

_EVERYTHING = 1  # the first line
_MOST_ROUNDS = 10


def first_choice(
    source: bytes | str, *, variables: bool = False, strict: bool = False, module: bool = False
) -> int | None:
    """The line of a script from which on what is imported may depend on what it is given; None if
    all of it does not. `variables`: those of the environment are given, too; `strict`: a choice of
    the values that names of its own get is one; `module`: it is imported, and no program."""
    statements = parsed(source)
    if statements is None:
        return _EVERYTHING
    script = _Script(variables, strict, module)
    try:
        return next((_begins(one) for one in statements if not script.is_plain(one)), None)
    except RecursionError:
        return _EVERYTHING


def scope_of(statements: Iterable[ast.stmt]) -> Scope:
    """What the names of a module stand for that has executed these."""
    script = _Script(False, False, True)
    for one in statements:
        if not script.is_plain(one):
            names = stored(one) - {getattr(one, "name", "")}
            script.names.update(dict.fromkeys(names, UNKNOWN))
    return script


def _begins(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


class _Script(Definitions):
    """What is known after the statements that have been asked for so far, in their order."""

    def __init__(self, variables: bool, strict: bool, module: bool) -> None:
        super().__init__(variables, strict)
        self._is_imported = module

    def is_plain(self, statement: ast.stmt) -> bool:
        """Whether it does the same to all other modules, whatever is given."""
        if isinstance(statement, ast.Import):
            return self._is_import(statement)
        if isinstance(statement, ast.ImportFrom):
            return self._is_import_from(statement)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self.is_function(statement)
        if isinstance(statement, ast.ClassDef):
            return self.is_class(statement)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return self._is_assignment(statement)
        if isinstance(statement, ast.AugAssign):
            return self._is_addition(statement)
        if isinstance(statement, ast.Expr):
            return self.does_alike(statement.value)
        if isinstance(statement, ast.If):
            return self._is_choice(statement)
        if isinstance(statement, ast.For):
            return self._is_loop(statement)
        if isinstance(statement, ast.Assert):
            return self.does_alike(statement.test)
        if isinstance(statement, ast.Try):
            return self._is_try(statement)
        if isinstance(statement, ast.With):
            return self._is_with(statement)
        if isinstance(statement, ast.Delete):
            return all(map(self._forgets, statement.targets))
        return isinstance(statement, (ast.Pass, ast.Raise, ast.Break, ast.Continue))

    # ---- names

    def _is_import(self, statement: ast.Import) -> bool:
        for alias in statement.names:
            package = alias.name.partition(".")[0]
            home = alias.name if alias.asname else package
            self.names[alias.asname or package] = Name(home=home, module=True)
        return True

    def _is_import_from(self, statement: ast.ImportFrom) -> bool:
        module = "." * statement.level + (statement.module or "")
        for alias in statement.names:
            if alias.name == "*":
                self._takes_all_of(module)
                continue
            self.postponed |= module == "__future__" and alias.name == "annotations"
            self.names[alias.asname or alias.name] = Name(home=f"{module}.{alias.name}")
        return True

    def _takes_all_of(self, module: str) -> None:
        """Any name may be another then, but for modules."""
        if calls.is_harmless(module):
            return
        for name in [*dir(builtins), *self.names]:
            now = self.names.get(name)
            if not name.startswith("_") and not (now and now.module):
                self.names[name] = Name(home=f"{module or '.'}.{name}")

    def _bind(self, targets: Iterable[ast.expr | None], value: Name) -> None:
        for one in flat(targets):
            if isinstance(one, ast.Name):
                self.names[one.id] = value

    def _forgets(self, target: ast.expr) -> bool:
        if isinstance(target, ast.Name):
            self.names[target.id] = UNKNOWN
        where = target.value if isinstance(target, ast.Subscript) else target
        return isinstance(target, ast.Name) or self.is_looked_up(where)

    # ---- what sets something

    def _is_assignment(self, statement: ast.Assign | ast.AnnAssign) -> bool:
        value = statement.value
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if isinstance(statement, ast.AnnAssign) and not self.postponed:
            if not self.does_alike(statement.annotation):
                return False
        if value is None:
            return True
        if not all(map(self.does_alike, [value, *targets])):
            return False
        named = self.value(value)
        known = self.is_known(value)
        if not all(self._sets(one, known) for one in flat(targets)):
            return False
        for one in targets:
            part = replace(named, home="", module=False, typed=named.fresh)
            self._bind([one], named if isinstance(one, ast.Name) else part)
        return True

    def _is_addition(self, statement: ast.AugAssign) -> bool:
        """What a name stands for may be changed itself."""
        target = statement.target
        known = self.is_known(statement.value)
        if not all(map(self.does_alike, [statement.value, target])):
            return False
        if not isinstance(target, ast.Name):
            return self._sets(target, known) and (not known or self._is_changed_alike(target))
        if self.is_looked_up(target):
            return known or self.is_set_anyhow(target)
        before = ast.Name(target.id, ast.Load())
        if not (known and self.is_same(before)):
            return False
        self.names[target.id] = KNOWN if self.is_known(before) else UNKNOWN
        return True

    def _is_changed_alike(self, target: ast.Attribute | ast.Subscript) -> bool:
        """Of `target += ...`, which may change what is there."""
        where = target.value
        is_parsed = isinstance(where, ast.Name) and self.name(where.id).parsed
        return is_parsed or self.is_looked_up(where) or self.is_same(target)

    def _sets(self, target: ast.expr, known: bool) -> bool:
        """Whether it may get a value, `known` or not."""
        if isinstance(target, ast.Name):
            return True
        if not isinstance(target, (ast.Attribute, ast.Subscript)):
            return False
        where = target.value
        if isinstance(target, ast.Attribute):
            if isinstance(where, ast.Name) and self.name(where.id).parsed:
                return True
            if self.home(target) == "sys.path":
                return known or self.is_set_anyhow(target)
            return known and self.is_same(where)
        known = known and self.is_known(target.slice)
        # a module that is shown compares what it read of the environment
        return known and self.is_same(where) or self.is_set_anyhow(where)

    # ---- choices

    def _is_choice(self, statement: ast.If) -> bool:
        test = statement.test
        if self._is_imported and is_program(test):
            return self.are_plain(statement.orelse)
        if not self.does_alike(test):
            return False
        if not (self.is_known(test) or self.is_module(test)):
            return self._only_binds(blocks(statement))
        return self._goes_one_way([statement.body, statement.orelse])

    def _goes_one_way(self, branches: Iterable[Sequence[ast.stmt]]) -> bool:
        before, after = dict(self.names), []
        for branch in branches:
            self.names = dict(before)
            if not self.are_plain(branch):
                return False
            after.append(self.names)
        self.names = _joined(after)
        return True

    def _only_binds(self, statements: Sequence[ast.stmt]) -> bool:
        """Of what is executed or not by what is given: nothing but names of the script's own may
        get another value, or the program end."""
        if self._strict:
            return False
        before = dict(self.names)
        for one in statements:
            if isinstance(one, ast.If):
                if not (self.does_alike(one.test) and self._only_binds(blocks(one))):
                    return False
                if self.sets(one.test):
                    return False
                continue
            names = isinstance(one, ast.Assign) and all(
                isinstance(target, ast.Name) for target in flat(one.targets)
            )
            ends = isinstance(one, (ast.Pass, ast.Raise))
            if not (names or ends or isinstance(one, ast.Expr)) or not ends and self.sets(one):
                return False
            if not self.is_plain(one):
                return False
            if isinstance(one, ast.Assign):
                self._may_be(one.targets, before)
        return True

    def _may_be(self, targets: Sequence[ast.expr], before: Mapping[str, Name]) -> None:
        """They are what they are now, or what they were."""
        for one in flat(targets):
            if isinstance(one, ast.Name):
                now, then = self.names[one.id], before.get(one.id)
                fresh = now.fresh and (then is None or then.fresh)
                self.names[one.id] = Name(fresh=fresh)

    def _is_loop(self, statement: ast.For) -> bool:
        values, target = statement.iter, statement.target
        known = self.is_known(values, consumed=True)
        if not self.does_alike(values) or not self._may_loop(target, known):
            return False
        one = KNOWN if known else Name(fresh=self.is_fresh(values))
        for _ in range(_MOST_ROUNDS):
            before = dict(self.names)
            self._bind([target], one)
            inside = statement.body if known else blocks(statement)
            if not (self.are_plain(inside) if known else self._only_binds(inside)):
                return False
            self.names = _joined([before, self.names])
            if self.names == before:
                return not known or self.are_plain(statement.orelse)
        return False

    def _may_loop(self, target: ast.expr, known: bool) -> bool:
        return self.does_alike(target) and all(self._sets(one, known) for one in flat([target]))

    def _is_try(self, statement: ast.Try) -> bool:
        kinds = [one.type for one in statement.handlers if one.type is not None]
        if not all(map(self.does_alike, kinds)):
            return False
        caught = [one.name for one in statement.handlers if one.name]
        before = dict(self.names)
        self.names.update(dict.fromkeys(caught, UNKNOWN))
        if not all(map(self._raises_alike, statement.body)):
            return self._only_binds(blocks(statement))
        if not self.are_plain(statement.body):
            return False
        tried = dict(self.names)
        self.names = _joined([before, tried])
        self.names.update(dict.fromkeys(caught, UNKNOWN))
        failed = [one.body for one in statement.handlers]
        if not self._goes_one_way(failed or [[]]):
            return False
        failed_names, self.names = self.names, tried
        if not self.are_plain(statement.orelse):
            return False
        self.names = _joined([self.names, failed_names]) if failed else self.names
        return self.are_plain(statement.finalbody)

    def _is_with(self, statement: ast.With) -> bool:
        suppresses = False
        for item in statement.items:
            manager = item.context_expr
            if not isinstance(manager, ast.Call) or not self.does_alike(manager):
                return False
            home = self.home(manager.func)
            opens = not home and called(manager) == "open"
            suppresses |= home == calls.SUPPRESS
            if not (opens or home in calls.CONTEXTS or home == calls.SUPPRESS):
                return False
            if not all(self._sets(one, False) for one in flat([item.optional_vars])):
                return False
            self._bind([item.optional_vars], Name(fresh=self.is_fresh(manager)))
        if suppresses and not all(map(self._raises_alike, statement.body)):
            return self._only_binds(statement.body)
        before = dict(self.names)
        plain = self.are_plain(statement.body)
        if suppresses:
            self.names = _joined([before, self.names])
        return plain

    def _raises_alike(self, statement: ast.stmt) -> bool:
        """Whether it raises or does not, whatever is given."""
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            return True
        values = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
        inside = blocks(statement)
        return all(map(self.is_known, values)) and all(map(self._raises_alike, inside))


def _joined(after: Sequence[Mapping[str, Name]]) -> dict[str, Name]:
    """What names are after one of several ways, where it is known which is taken."""
    found: dict[str, Name] = dict(after[0])
    for names in after[1:]:
        found = {name: either(found.get(name), names.get(name)) for name in {**found, **names}}
    return found
