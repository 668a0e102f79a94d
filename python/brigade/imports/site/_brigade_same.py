"""Whether what an execution looked at, while a template warmed, is still the same when its module
is to be shown.

    is_otherwise(name)               whether something stands in sys.modules by a name that was
                                     searched for in vain
    is_otherwise(name, origin)       whether what stands there is not what a search found, which
                                     nobody had imported
    variables_are(kind, what, done)  whether variables that were read are what they were, when what
                                     is in `done` has been

A program puts stand-ins into sys.modules, or None, so that who tries an import goes without.

What must stay true: the rules of _brigade_view.py; no attribute of a module is asked for: a lazy
one would be loaded.
"""

import sys

from _brigade_common import is_one_of
from _brigade_nodes import ENVIRON, MISSING, READ_ALL

_modules = sys.modules
_environ = sys.modules["posix"].environ


def is_otherwise(name, origin=MISSING):
    held = _modules.get(name, MISSING)
    if origin is MISSING:
        return held is not MISSING and held is not None
    if held is MISSING:
        return False
    spec = None if held is None else object.__getattribute__(held, "__dict__").get("__spec__")
    return spec is None or spec.origin != origin


def variables_are(kind, what, done):
    now = _environ
    if any(of == ENVIRON for of, _what in done):
        now = {**now, **dict([what for of, what in done if of == ENVIRON])}
    names, then = what
    if kind == READ_ALL:
        found = {key: now[key] for key in now if is_one_of(key, names)}
        return {key: value for key, value in found.items() if value is not None} == then
    return now.get(names) == then
