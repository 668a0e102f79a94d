"""What modules give to others that were there before them: a lazy attribute that is kept once it
was asked for, something put in from outside, a function in the place of the other's own. It is
there when the giver is shown, and no earlier.

    given = Given()
    given.remember(name, module)     a module was executed
    given.note(ops)                  what others have now besides is the work of this execution
    given.note_replaced(module, ops) at its end: functions and classes that it has put in the place
                                     of those of modules that it names
    given.take_away()                as if nothing had been given; give_back(...) of a single one

An op is (module, attribute, value, what was there or MISSING, the names of that module). Of other
things that were replaced nothing is known, nor of what is inside another's lists and dicts: what is
but half undone would be worse than what is there early.

What must stay true: the rules of _brigade_view.py; a look at a thousand modules, twice for each of
them, takes a few percent of what importing them takes.
"""

import sys

from _brigade_common import borrow
from _brigade_nodes import GIVEN, MISSING
from _brigade_parts import for_no_import

_modules = sys.modules
_Module = type(sys)
_compress, _is_otherwise = borrow("itertools").compress, borrow("_operator").ne
_is_same = borrow("_operator").is_
# these are watched by others, and have stand-ins in them meanwhile
_WATCHED = ("sys", "builtins", "atexit", "_frozen_importlib", "_frozen_importlib_external")


def _is_watched(module):
    """By whatever name: importlib._bootstrap is _frozen_importlib."""
    return any(module is _modules.get(name) for name in _WATCHED)


class Given:
    def __init__(self):
        self._names = []  # __dict__ of each module that was executed
        self._owners = []  # what that is called
        self._counts = []  # how many names there were at the last look
        self._held = {}  # id of a module's __dict__: [what it is called, names, values]
        self._done = []  # ops, in the order in which they happened
        for name, module in list(_modules.items()):
            if type(module) is _Module and not _is_watched(module):
                self._hold(name, module.__dict__)

    def remember(self, name, module):
        names = getattr(module, "__dict__", None)
        if type(names) is dict:
            self._names.append(names)
            self._owners.append(name)
            self._counts.append(len(names))
            if type(module) is _Module and not _is_watched(module):
                self._hold(name, names)

    def _hold(self, name, names):
        self._held[id(names)] = [name, list(names), list(names.values())]

    def look_again(self, module):
        """After a stand-in was put there: that is no import's doing."""
        names = module.__dict__
        if id(names) in self._held:
            self._hold(self._held[id(names)][0], names)

    def note(self, ops):
        counts = list(map(len, self._names))
        if counts == self._counts:
            return
        for at in _compress(range(len(counts)), map(_is_otherwise, counts, self._counts)):
            owner, names = self._owners[at], self._names[at]
            for attribute in list(names)[self._counts[at] :]:
                if f"{owner}.{attribute}" not in _modules:  # that, importlib does
                    self._give(ops, owner, attribute, MISSING, names)
        self._counts = counts

    def note_replaced(self, module, ops):
        for other in list(getattr(module, "__dict__", {}).values()):
            if type(other) is not _Module or other is module:
                continue
            names = other.__dict__
            held = self._held.get(id(names))
            if held is None:
                continue
            owner, keys, values = held
            if len(values) == len(names) and all(map(_is_same, names.values(), values)):
                continue
            before = dict(zip(keys, values))
            self._hold(owner, names)
            for attribute, value in list(names.items()):
                then = before.get(attribute, value)
                both = callable(then) and callable(value)
                if then is not value and both and not for_no_import(other, attribute):
                    self._give(ops, owner, attribute, then, names)

    def _give(self, ops, owner, attribute, before, names):
        self._done.append((owner, attribute, names[attribute], before, names))
        ops.append((GIVEN, self._done[-1]))

    def take_away(self):
        for _owner, attribute, _value, before, names in reversed(self._done):
            if before is MISSING:
                names.pop(attribute, None)
            else:
                names[attribute] = before


def give_back(module, attribute, before):
    if before is MISSING:
        module.__dict__.pop(attribute, None)
    else:
        setattr(module, attribute, before)
