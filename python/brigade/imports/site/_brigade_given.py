"""What modules give to others that were executed before them: a lazy attribute that is kept once it
was asked for, something put in from outside. It is there when the giver is shown, and no earlier.

    given = Given()
    given.remember(name, module)     a module was executed
    given.note(ops)                  what others have now besides is the work of this execution
    take_away(nodes)                 as if nothing had been given; give_back(...) of a single one

Of what was replaced nothing is known, nor of what is inside another's lists and dicts.

What must stay true: the rules of _brigade_view.py; a look at a thousand modules, twice for each of
them, takes a few percent of what importing them takes.
"""

import sys

from _brigade_common import borrow
from _brigade_nodes import GIVEN, MISSING

_modules = sys.modules
_compress, _is_otherwise = borrow("itertools").compress, borrow("_operator").ne


class Given:
    def __init__(self):
        self._names = []  # __dict__ of each module that was executed
        self._owners = []  # what that is called
        self._counts = []  # how many names there were at the last look

    def remember(self, name, module):
        names = getattr(module, "__dict__", None)
        if type(names) is dict:
            self._names.append(names)
            self._owners.append(name)
            self._counts.append(len(names))

    def note(self, ops):
        counts = list(map(len, self._names))
        if counts == self._counts:
            return
        for at in _compress(range(len(counts)), map(_is_otherwise, counts, self._counts)):
            owner, names = self._owners[at], self._names[at]
            for attribute in list(names)[self._counts[at] :]:
                if f"{owner}.{attribute}" not in _modules:  # that, importlib does
                    ops.append((GIVEN, (owner, attribute, names[attribute])))
        self._counts = counts


def take_away(nodes):
    for node in nodes.values():
        for kind, what in node.ops:
            if kind == GIVEN:
                owner, attribute, _value = what
                nodes[owner].module.__dict__.pop(attribute, None)


def give_back(module, attribute, before):
    if before is MISSING:
        module.__dict__.pop(attribute, None)
    else:
        setattr(module, attribute, before)
