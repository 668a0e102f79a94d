"""How a rank ends that was forked: as if it had imported itself what it did.

    end = End()         in a template, before it imports anything
    end.begin(table)    in a rank, before the program

When Python ends it takes the modules apart, and collects what the program has left in cycles: files
with what is to be written yet, objects with `__del__`. A collection passes over what is frozen, and
nearly all hangs on that, if only on the names of `__main__`. So nothing is frozen any more when the
exit functions have been called. What a template has imported and the program has not is kept until
the process is gone: by itself, the rank would not have had it.

What must stay true: the rules of _brigade_view.py.
"""

import sys

from _brigade_common import borrow
from _brigade_store import STORED


class End:
    def __init__(self):
        self._unfreeze = borrow("gc").unfreeze
        self._register = borrow("atexit").register
        self._table = None

    def begin(self, table):
        """Python 3.9 calls exit functions of one module `atexit` alone, the last that was made."""
        self._table, register = table, self._register
        if sys.version_info < (3, 10):
            number = table.index.get("atexit")
            register = None if number is None else table.modules[number].register
        if register:
            register(self._last)
        else:
            self._unfreeze()

    def _last(self):
        table = self._table
        unseen = [held for held, state in zip(table.modules, table.states) if state == STORED]
        _keep(unseen + table.forgotten)
        self._unfreeze()


def _keep(things):
    """For as long as the process lives: they are in a cycle with a code object, into which no
    collection looks."""
    code = _keep.__code__
    things.append(code.replace(co_consts=(*code.co_consts, things)))
