"""What programs set in the interpreter and others look at when they use it (`sys.excepthook`), or
ask a function for (`sys.getrecursionlimit`): the modules that have done so when they were imported.

    hooks = Hooks()
    hooks.watched_loaders(running) what is to stand in for the loaders' own functions meanwhile:
                                   [(class, name, original, ours)]; `running()` is the name of the
                                   module that is being executed
    hooks.note(name, ops, ended)   what that module has looked at; it keeps it, or its own
                                   statements name it
    hooks.settle()                 what has changed since was nobody's work
    is_as_then(what, done)         whether it is the same in this rank, when what is in `done` has
                                   been

Where it is another one, such a module is executed. Not seen: a function that is called as a module
is imported, looks at one, and neither changes nor keeps it.

What must stay true: the rules of _brigade_view.py; no frame of ours is there while a module
executes; a look is cheap, for it happens twice a module.
"""

import sys

from _brigade_common import USED_LATE
from _brigade_loaders import Source, Sourceless
from _brigade_nodes import MISSING, SEEN, part_now

# functions that tell what programs set in the interpreter, and no more: word -> module
_TELLS = {
    "getrecursionlimit": "sys", "getswitchinterval": "sys", "get_int_max_str_digits": "sys",
    "isenabled": "gc", "get_threshold": "gc", "get_debug": "gc",
    "getdefaulttimeout": "socket", "field_size_limit": "csv", "list_dialects": "csv",
    "getsignal": "signal",
}  # fmt: skip
_SIGNALS = range(1, 65)
_WORDS = frozenset([name for names in USED_LATE.values() for name in names]).union(_TELLS)
_UNUSED = "threading"  # keeps sys.excepthook for its main thread, and would ask for it in others
_external = sys.modules["_frozen_importlib_external"]
_modules = sys.modules
_count = sys.getrefcount
_Code = type((lambda: None).__code__)
_OF_A_FUNCTION = 0x1  # CO_OPTIMIZED


def _words(code):
    """Of a module's own statements, and those of classes in it."""
    words = _WORDS.intersection(code.co_names)
    for value in code.co_consts:
        if type(value) is str and value in _WORDS:
            words = words | {value}
        elif type(value) is _Code and not value.co_flags & _OF_A_FUNCTION:
            words = words | _words(value)
    return words


class Hooks:
    def __init__(self):
        held = [(name, getattr(sys, name, None)) for name in USED_LATE["sys"]]
        self._names = [name for name, value in held if callable(value)]
        self._values = [value for _name, value in held if callable(value)]
        self._named = {}  # module that is being executed: the words in its statements
        self.settle()

    def settle(self):
        self._counts = list(map(_count, self._values))

    def watched_loaders(self, running):
        def watched(original):
            def get_code(self, fullname):
                code = original(self, fullname)
                if running() == fullname and code is not None:
                    named[fullname] = _words(code)
                return code

            return get_code

        named = self._named
        classes = _external.SourceLoader, _external.SourcelessFileLoader, Source, Sourceless
        originals = [(kind, kind.__dict__["get_code"]) for kind in classes]
        return [(kind, "get_code", own, watched(own)) for kind, own in originals]

    def note(self, name, ops, ended):
        counts = list(map(_count, self._values))
        found = []
        if counts != self._counts:
            pairs = zip(self._names, self._counts, counts)
            found = [("sys", hook) for hook, before, now in pairs if now > before]
            self._counts = counts
        words = self._named.pop(name, ()) if ended else ()
        found += [(home, word) for home, of in USED_LATE.items() for word in of if word in words]
        for home, word in found if name != _UNUSED else ():
            if home in _modules:
                ops.append((SEEN, (home, word, _modules[home].__dict__.get(word, MISSING))))
        for word, home in _TELLS.items():
            if word in words and home in _modules and home != name:
                ops.append((SEEN, (home, word, _told(home, word))))


def _told(home, word):
    ask = _modules[home].__dict__.get(word)
    if ask is None:
        return MISSING
    return [ask(number) for number in _SIGNALS] if word == "getsignal" else ask()


def is_as_then(what, done):
    home, word, value = what
    if word in _TELLS:
        return _told(home, word) == value
    return part_now(done, _modules[home], word) is value
