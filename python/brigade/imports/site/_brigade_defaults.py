"""What counts for all of a process, or for all of a thread, and is kept outside of modules: who
changes it.

    DEFAULTS                    what it is, in words
    Defaults().look()           how each of it is now; equal to another look's if nothing changed

Most of it belongs to a module that may not be there yet: how it is when that one has come is how
everybody finds it, and the same as its not being there.

What must stay true: the rules of _brigade_view.py; looking changes nothing, and is cheap.
"""

import sys

from _brigade_common import MISSING, borrow

_modules = sys.modules
_get_digits = getattr(sys, "get_int_max_str_digits", int)  # came with Python 3.11
_is_same = borrow("_operator").is_
_CONTEXTS = "_contextvars"
_BUILT_IN = borrow(_CONTEXTS).copy_context if _CONTEXTS in sys.builtin_module_names else None


def _of_decimal(names):
    """The context in use, if there is one: it is made, of DefaultContext, when it is first asked
    for, and whoever looks does not."""
    get_context = _contexts()
    if get_context is None:
        return repr(names["getcontext"]())
    kind = names["Context"]
    for value in get_context().values():
        if type(value) is kind:
            return repr(value)
    return repr(names["DefaultContext"])


# what, the module, and what to ask of its names
_KEPT = (
    ("the context of decimal", "_decimal", _of_decimal),
    ("faulthandler", "faulthandler", lambda names: names["is_enabled"]()),
    ("the time that sockets wait", "_socket", lambda names: names["getdefaulttimeout"]()),
    ("the longest field of csv", "_csv", lambda names: names["field_size_limit"]()),
    (
        "the start method of multiprocessing",
        "multiprocessing.context",
        lambda names: id(names["_default_context"]._actual_context),
    ),
    # of NumPy before 2: a newer one has both in context variables
    ("the errors of numpy", "numpy.core.umath", lambda names: names["geterrobj"]()),
    (
        "the print options of numpy",
        "numpy.core.arrayprint",
        lambda names: repr(names["_format_options"]),
    ),
)
DEFAULTS = (
    "the digits of integers", "the origins of coroutines", "the hooks of generators",
    "the stack of threads", "how numbers are rounded", "context variables",
    *[what for what, _module, _ask in _KEPT],
)  # fmt: skip
_SMALL, _HALF, _ONE, _LITTLE = 2.0**-1022, 0.5, 1.0, 2.0**-60  # nothing that a compiler computes


def _contexts():
    """What copies the context, or None where nobody could have used it in Python."""
    return _BUILT_IN or getattr(_modules.get(_CONTEXTS), "copy_context", None)


def _rounded():
    """In words, because a processor that takes small numbers for 0 finds them equal to it."""
    return repr((_SMALL * _HALF, _ONE + _LITTLE, _ONE - _LITTLE))


class _Variables:
    """Of a context, by identity, so that no value is asked what it equals."""

    def __init__(self, values):
        self.values = values

    def __eq__(self, other):
        return len(self.values) == len(other.values) and all(
            map(_is_same, self.values, other.values)
        )

    __hash__ = None


class Defaults:
    def __init__(self):
        self._first = [MISSING] * len(_KEPT)
        self._get_stack_size = borrow("_thread").stack_size

    def look(self):
        """In the order of DEFAULTS."""
        return (
            _get_digits(),
            sys.get_coroutine_origin_tracking_depth(),
            sys.get_asyncgen_hooks(),
            self._get_stack_size(),
            _rounded(),
            self._variables(),
            *map(self._kept, range(len(_KEPT))),
        )

    def _variables(self):
        """All but decimal's, which is looked at more closely."""
        get_context = _contexts()
        kind = getattr(_modules.get("_decimal"), "Context", None)
        found = []
        for pair in get_context().items() if get_context is not None else ():
            if kind is None or type(pair[1]) is not kind:
                found += pair
        return _Variables(found)

    def _kept(self, number):
        """None: it is not there, or as it was first found."""
        _what, module, ask = _KEPT[number]
        names = getattr(_modules.get(module), "__dict__", None)
        if names is None:
            return None
        try:
            if names["__spec__"].__dict__.get("_initializing"):
                return None  # to ask one in C for what it has not made yet may end the process
            value = ask(names)
        except Exception:
            return None  # it is not there (yet)
        if self._first[number] is MISSING:
            self._first[number] = value
        return None if value == self._first[number] else (value,)
