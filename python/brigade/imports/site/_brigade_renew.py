"""Modules in C that a rank executes anew, and that give back what they were.

    renew(table, extras, number, spec, module, before)    `module` has been made for `spec` by an
                                                          import; the template's was `before`
    carry_out(kind, what)                                 what an execution did outside its module

A library is loaded once in a process, and most modules in it are executed once: Cython's make
their only object when they are made again, and importlib executes no object twice; those of the
older kind are given a copy of the names that they had. So nothing is executed where a plain rank
executes such a module for the first time. What that did is done instead: what it imported is
imported, in its order, from wherever it is now; what it set is set. What the module holds of
modules that were executed anew meanwhile stays what it was.

What must stay true: the rules of _brigade_view.py; while such imports last, the one frame of ours
is where importlib has one of its own, and has the name of its file.
"""

import sys

from _brigade_loggers import bring
from _brigade_nodes import (
    ATEXIT,
    ATTRIBUTE,
    DEP,
    ENVIRON,
    EXTRA,
    GIVEN,
    LIST,
    LOGGER,
    PART,
    ROOT,
    WARNED,
    apply_change,
    filters_changed,
    watched_lists,
)
from _brigade_parts import set_part
from _brigade_store import KIND_BITS, KINDS, NAME
from _brigade_warned import bring as warn

_bootstrap = sys.modules["_frozen_importlib"]
_ExtensionFileLoader = sys.modules["_frozen_importlib_external"].ExtensionFileLoader
_Function = type(len)
_modules = sys.modules


def carry_out(kind, what):
    """Nothing, if it is of a kind that is done while a module is shown."""
    if kind == ENVIRON:
        name, value = what
        environ = _modules["os"].environb
        if value is None:
            environ.pop(name, None)
        else:
            environ[name] = value
    elif kind == ATTRIBUTE:
        setattr(sys, *what)
    elif kind == PART:
        holder, name, _before, value = what
        set_part(holder, name, value)
    elif kind in (LOGGER, ROOT):
        bring(kind, what)
    elif kind == WARNED:
        warn(what)
    elif kind == ATEXIT:
        function, arguments, named = what
        _modules["atexit"].register(function, *arguments, **named)


def renew(table, extras, number, spec, module, before):
    if table.nodes[number].kind is not _ExtensionFileLoader:
        return
    try:
        for action in table.again.get(number, ()):
            action(module)
    except AttributeError:
        pass  # one that is to be executed yet has no such parts
    if _is_as_it_was(spec.name, module, before):
        spec.loader = _Unexecuted(spec, table, extras, number)


class _Unexecuted:
    """Stands in for the loader of a module that is not executed again; once."""

    def __init__(self, spec, table, extras, number):
        self._spec, self._loader = spec, spec.loader
        self._table, self._extras, self._number = table, extras, number

    def exec_module(self, module):
        self._spec.loader = self._loader
        self._loader.exec_module(module)
        table = self._table
        for code in table.done_by(self._number):
            kind, what = code & KINDS, code >> KIND_BITS
            if kind == DEP:
                _import(table.names[what], table.failed[what])
                continue
            what = table.others[what]
            if kind == NAME:
                _import(what, False)
            elif kind == EXTRA:
                if what not in _modules:
                    _modules[what] = self._extras[what]
            elif kind == LIST:
                which, change = what
                apply_change(change, watched_lists()[which])
                filters_changed()
            elif kind == GIVEN:
                name, attribute, value, _before, _names = what
                if name in _modules:
                    setattr(_modules[name], attribute, value)
            else:
                carry_out(kind, what)


def _import(name, failed):
    """`failed`: it did then, and whoever imported it went on."""
    if name in _modules:
        return
    try:
        _bootstrap._gcd_import(name)
    except Exception:
        if not failed:
            raise


def _is_as_it_was(name, module, before):
    """Whether it is the same object, or has functions that were made when it was executed."""
    if module is before:
        return True
    now, then = getattr(module, "__dict__", {}), getattr(before, "__dict__", {})
    return any(
        type(value) is _Function and value.__module__ == name and now.get(key) is value
        for key, value in list(then.items())
    )
