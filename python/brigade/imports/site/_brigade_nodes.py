"""A module that was executed while a template warmed, and what importing it did.

`ops` is what its execution did to the import system, in order; what is executed within another
module stands in that module's own node. Replaying the ops of a node does what the execution did:

    DEP name              it imported this module, for the first time or again
    ABSENT name           it searched for this module in vain
    FOUND (name, origin)  it asked where this module is, and did not import it
    EXTRA name            it put this into sys.modules itself
    LIST (which, change)  it changed a list of `watched_lists()`
    ENVIRON (key, value)  it set a variable, or took it away (None)
    ATTRIBUTE (name, value)   it gave `sys` one that there was not
    GIVEN (name, attribute, value, before, names)   it gave this to a module that was there before
    PART (holder, name, before, value)   it changed a part of the import system (_brigade_parts.py)
    LOGGER _Made          it made a logger (_brigade_loggers.py)
    ROOT (manager, before, after)   it changed the root logger
    READ (key, value)     it read a variable, which had this value (None: there was none)
    READ_SET (key, value)     the same of one that an import had set
    READ_ALL (names, {key: value})   it read all variables, of which those with such names count
    ATEXIT (function, arguments, named arguments)
    WARNED (message, filters, module)   it was warned, and that was shown, or would be with other
                                        filters (_brigade_warned.py)
    SEEN (module, name, value)  it has looked at that name, which had this value (_brigade_hooks.py)
    ASKED _Question       it has asked this of a logger (_brigade_asked.py)

What must stay true: the rules of _brigade_view.py.
"""

import sys

from _brigade_common import MISSING, borrow

_modules = sys.modules
_stat = sys.modules["posix"].stat
_warnings = sys.modules["_warnings"]
_told_of_collections = borrow("gc").callbacks

DEP, ABSENT, FOUND, EXTRA, LIST, ENVIRON, ATEXIT = range(7)
ATTRIBUTE, READ, READ_SET, READ_ALL, GIVEN, PART, LOGGER, ROOT, WARNED = range(7, 16)
SEEN, ASKED = 17, 18  # 16: _brigade_store.py


def stamp_of(spec, trusted):
    """What tells whether the file of `spec` is still the one of then; None if nothing can."""
    if type(spec.loader) in trusted or not spec.has_location:
        return None
    try:
        status = _stat(spec.origin)
    except (OSError, TypeError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


def _kind_of(loader):
    return loader if isinstance(loader, type) else type(loader)


class Node:
    __slots__ = (
        "name", "module", "ops", "known", "failed", "origin", "kind", "places", "stamp", "before",
        "bound", "within", "spec", "finalizers",
    )  # fmt: skip

    def __init__(self, spec, trusted):
        self.spec = spec
        self.name = spec.name
        self.module = MISSING
        self.ops = []
        self.known = set()  # names in ops
        self.failed = False  # its execution raised
        self.origin = spec.origin
        self.kind = _kind_of(spec.loader)
        self.places = self._places(spec)
        self.stamp = stamp_of(spec, trusted)
        self.before = MISSING  # what its parent had by its name before
        self.bound = True  # whether its parent has it by its name
        self.within = False  # whether it was executed within its package's own execution
        self.finalizers = ()  # of weakref, that its execution made

    @staticmethod
    def _places(spec):
        places = spec.submodule_search_locations
        return None if places is None else list(places)

    def dep(self, name):
        if name not in self.known and name != self.name:
            self.known.add(name)
            self.ops.append((DEP, name))

    def matches(self, spec, trusted):
        """Whether `spec`, found now, is of the file that this module was made of."""
        return (
            _kind_of(spec.loader) is self.kind
            and spec.origin == self.origin
            and self._places(spec) == self.places
            and stamp_of(spec, trusted) == self.stamp
        )


def warning_filters():
    """The list that warnings are looked up in, whether `warnings` is imported or not."""
    return getattr(_modules.get("warnings"), "filters", _warnings.filters)


def watched_lists():
    return [sys.path, sys.meta_path, sys.path_hooks, warning_filters(), _told_of_collections]


def filters_changed():
    """The C part of `warnings` keeps what it found in the filters, until told."""
    tell = getattr(_warnings, "_filters_mutated", None)
    if tell is not None:
        return tell()
    tell = getattr(_warnings, "_filters_mutated_lock_held", None)  # from 3.14 on
    if tell is not None:
        _warnings._acquire_lock()
        try:
            tell()
        finally:
            _warnings._release_lock()


def part_now(done, holder, name):
    """What a part of the import system is when all of `done`, [(kind, what)], has been."""
    for kind, what in reversed(done):
        if kind == PART and what[0] is holder and what[1] == name:
            return what[3]
    return holder.__dict__.get(name, MISSING)


def change_between(old, new):
    """(put in front, taken away, put at the end) that makes `old` into `new`; None if there is
    no such change."""
    for first in range(len(new) + 1):
        front = new[:first]
        kept = [item for item in old if item not in front and item in new]
        end = new[first + len(kept) :]
        if new[first : first + len(kept)] == kept and not [item for item in end if item in kept]:
            return front, [item for item in old if item in front + end or item not in new], end
    return None


def apply_change(change, items):
    """Make the change in the list `items` itself."""
    front, away, end = change
    items[:] = front + [item for item in items if item not in away] + end


def with_importers(nodes, problems):
    """{module: why} of what cannot be warm, with all that import it."""
    why = {name: text for name, text in problems.items() if name in nodes}
    grown = True
    while grown:
        grown = False
        for node in nodes.values():
            met = [name for name in [*node.known, node.name.rpartition(".")[0]] if name in why]
            if met and node.name not in why:
                why[node.name] = f"imports {met[0]}"
                grown = True
    return {**problems, **why}
