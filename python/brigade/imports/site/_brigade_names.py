"""Which names are new in sys.modules, without a look at all of them for each import.

    names = Names()        known are those that are there
    names.expect(name)     importlib is about to put it there
    names.are_otherwise()  whether there are others than expected, as far as their number tells
    names.new()            those that are not known, in their order; known from now on

A dict keeps the order in which its names were put in. So what is new stands behind three names that
followed each other at the last look and still do: of one alone it would not be known whether it was
taken out since and put in again, as importlib does with each module that was executed. Some more
are kept, since those still being executed come last. If no three of them are left, or the number is
not what that makes it, all are looked at: thousands, for each of thousands. (Who takes out three
that followed each other, puts them in again in their order behind a new one, and takes out another
for good, between two imports, hides the new one.)

What must stay true: the rules of _brigade_view.py.
"""

import sys

from _brigade_common import borrow

_modules = sys.modules
_first = borrow("itertools").islice
_KEPT = 64


class Names:
    def __init__(self):
        self._known = set(_modules)
        self._look()

    def expect(self, name):
        self._known.add(name)
        self._expected += name not in _modules

    def are_otherwise(self):
        return len(_modules) != self._expected

    def new(self):
        new = self._unknown(self._behind())
        if len(_modules) != self._expected + len(new):
            new = self._unknown(_modules)
        self._known.update(new)
        self._look()
        return new

    def _unknown(self, names):
        return [name for name in names if name not in self._known]

    def _look(self):
        last = list(_first(reversed(_modules), _KEPT))
        self._threes = set(zip(last, last[1:], last[2:]))
        self._expected = len(_modules)

    def _behind(self):
        behind = []
        for name in reversed(_modules):
            if (*behind[-2:], name) in self._threes:
                return behind[-3::-1]
            behind.append(name)
        return behind[::-1]
