"""The parts of the import system that somebody may change: `__import__`, importlib's functions, the
attributes of its classes.

    parts = Parts()
    parts.changes()      what is otherwise than at the last look: [(holder, name, before, now)]
    parts.put_back()     what no import goes by is as at the first look
    set_part(holder, name, value)
    in_words(holder, name)
    for_no_import(holder, name)

What is changed sees, or makes, each import that follows; with exceptions. FOR_METADATA is what
`importlib.metadata` asks finders for, and no import: the package importlib_metadata takes it from
Python's own finder. And _HOOKS are parts of the standard library that somebody else's function is
put into for all the process, as Astropy's is that warnings are shown by; or what is made when it is
first asked for.

What must stay true: the rules of _brigade_view.py; a look happens twice a module, and is cheap.
"""

import sys

from _brigade_common import MISSING, borrow

FOR_METADATA = "find_distributions"
_HOOKS = {
    "warnings": ("showwarning", "formatwarning"),
    "logging": ("_loggerClass", "_logRecordFactory"),
    "threading": ("excepthook",),
    "sysconfig": ("_CONFIG_VARS", "_CONFIG_VARS_INITIALIZED"),
}
_BY_THE_FIRST = "sysconfig"  # who asks first makes it, and imports what it is made of
_FEW = 10
_chain = borrow("itertools").chain.from_iterable
_bootstrap = sys.modules["_frozen_importlib"]
_external = sys.modules["_frozen_importlib_external"]
_builtins = sys.modules["builtins"]
_Function = type(lambda: None)
_MADE_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE: its attributes can be set


def _holders():
    """[(module or class, names that count, None: all)]"""
    held, classes = [(_builtins, ("__import__",))], {}
    for module in (_bootstrap, _external, sys.modules.get("zipimport")):
        names = getattr(module, "__dict__", {})
        functions = [name for name, value in names.items() if type(value) is _Function]
        held.append((module, tuple(functions)))
        for value in names.values():
            if isinstance(value, type) and value.__flags__ & _MADE_IN_PYTHON:
                classes[id(value)] = value, None
    return [*held, *classes.values()]


class _Some:
    """What iterates over the values of some names, as they are by then."""

    def __init__(self, held, names):
        self._get, self._names = held.get, names

    def __iter__(self):
        return map(self._get, self._names)


def _all_of(holder, names):
    """What iterates over the values that count, as they are by then; over all of a module's where
    most of it counts, which is quicker."""
    held = holder.__dict__
    return _Some(held, names) if names is not None and len(names) < _FEW else held.values()


class Parts:
    def __init__(self):
        self._holders = [(holder, names) for holder, names in _holders() if holder is not None]
        self._seen = [_all_of(*holder) for holder in self._holders]
        self._awaited = dict(_HOOKS)
        self._await()
        self._then, self._values = self._look(), self._look_at_values()
        self._first = list(self._then)

    def _await(self):
        """Modules that have been executed since the last look. Whether there are any."""
        found = [name for name in self._awaited if _is_whole(sys.modules.get(name))]
        more = [(sys.modules[name], self._awaited.pop(name)) for name in found]
        self._holders += more
        self._seen += [_all_of(*holder) for holder in more]
        return found

    def _look_at_values(self):
        """All values, one after the other, and some that do not count. Lists are compared by
        identity first: quick, as long as nothing has changed."""
        return list(_chain(self._seen))

    def _look(self):
        return [
            dict(holder.__dict__)
            if names is None
            else {name: holder.__dict__.get(name, MISSING) for name in names}
            for holder, names in self._holders
        ]

    def changes(self):
        if self._awaited and self._await():
            new = self._look()[len(self._then) :]
            self._then, self._first = self._then + new, self._first + new
            self._values += self._look_at_values()[len(self._values) :]
        values = self._look_at_values()
        if values == self._values:
            return []
        before, self._then, self._values = self._then, self._look(), values
        return [
            (holder, name, old.get(name, MISSING), new.get(name, MISSING))
            for (holder, _names), old, new in zip(self._holders, before, self._then)
            for name in {**old, **new}
            if old.get(name, MISSING) is not new.get(name, MISSING)
        ]

    def put_back(self):
        for (holder, names), first in zip(self._holders, self._first):
            for name in (FOR_METADATA,) if names is None else names:
                if for_no_import(holder, name):
                    set_part(holder, name, first.get(name, MISSING))


def _is_whole(module):
    spec = getattr(module, "__spec__", None)
    return spec is not None and not spec.__dict__.get("_initializing")


def for_no_import(holder, name):
    return name == FOR_METADATA or name in _HOOKS.get(holder.__name__, ())


def is_made_by_the_first(holder, name):
    return holder.__name__ == _BY_THE_FIRST and name in _HOOKS[_BY_THE_FIRST]


def set_part(holder, name, value):
    if holder.__dict__.get(name, MISSING) is value:
        return
    if value is MISSING:
        delattr(holder, name)
    else:
        setattr(holder, name, value)


def in_words(holder, name):
    return f"{holder.__name__}.{name}"
