"""Warnings that are shown while a module is imported, and those that filters keep from it.

    watch(show)         `show(message, original)` is called in the place of what prints a warning;
                        (what does so, the original); None where `warnings` is not imported yet
    is_own(message, names, of_load, frame)   whether it is laid to what is executed, and not to who
                        imports that
    is_shown(message, filters, frame)        whether it would be shown with these filters
    shown_now(message, passed, frame)        what a node keeps of one; `passed`: see below
    Passed(tell).filter  a filter to stand in front of all others that fits no warning:
                        `tell(text, category, module)` is called of each that comes so far
    hidden_now(text, category, module, passed, frame, of_load)   what a node keeps of one that is
                        ignored; None: it is not ignored
    is_shown_here(what) whether a rank would show it, too
    bring(what)         shows it

A rank shows it as its program has it shown by then: by its own function, into its own list, to its
own standard error. Whether it is shown is a matter of the filters: where they are others than when
the template warmed, and do not say that it is to be ignored, the module is executed instead. So it
is with one that was ignored when the template warmed: the program may want to see it, or collect it
(`catch_warnings(record=True)`), and no trial sees what is not printed.

What must stay true: the rules of _brigade_view.py; a warning that says where its memory came from,
or that is written to a file of its own, is printed as ever.
"""

import sys

from _brigade_nodes import warning_filters

#: Who writes, of a warning that is shown in a module's import, in a trial: nobody's own doing.
SHOWN = "warnings.warn()"

_modules = sys.modules


def watch(show):
    warnings = _modules.get("warnings")
    original = getattr(warnings, "_showwarnmsg_impl", None)
    if original is None or not hasattr(warnings, "_showwarnmsg"):
        return None

    def _showwarnmsg_impl(msg):
        if msg.file is None and msg.source is None:
            show(msg, original)
        else:
            original(msg)

    warnings._showwarnmsg_impl = _showwarnmsg_impl
    return _showwarnmsg_impl, original


def _laid_to(message, frame, of_load=None):
    """The frame that a warning names, from `frame` outwards, and how many of the code `of_load`
    are left on the way; None if it names none of them."""
    left = 0
    while frame is not None:
        if frame.f_code is of_load:
            left += 1
        elif (frame.f_code.co_filename, frame.f_lineno) == (message.filename, message.lineno):
            break
        frame = frame.f_back
    return frame, left


def is_own(message, names, of_load, frame):
    """`names`: modules that are being executed, the innermost last, each in a frame of the code
    `of_load`; `frame`: of who warns. A package's own imports are the same whoever imports it."""
    innermost = names[-1] + "."
    within = [at for at, name in enumerate(names) if innermost.startswith(name + ".")]
    named, left = _laid_to(message, frame, of_load)
    if named is None:
        return message.filename not in ("sys", "<sys>")  # who stands above all
    return left < len(names) - within[0]


def is_shown(message, filters, frame):
    """As Python/_warnings.c looks for what is to be done. The first time: what has been warned of
    before does not count."""
    return _action(message, filters, _module_of(message, frame)) not in ("ignore", "error")


def _module_of(message, frame):
    named = _laid_to(message, frame)[0]
    return named.f_globals.get("__name__", "") if named else ""


def _action(message, filters, module):
    """`module`: that it is laid to; None if that is not known: then "" where it decides. Not to
    the program itself, by whose own filter the trial has seen it printed."""
    text = str(message.message)
    for action, words, category, where, lineno in filters:
        if (
            issubclass(message.category, category)
            and lineno in (0, message.lineno)
            and _fits(words, text)
        ):
            if module is None and where not in (None, "__main__"):
                return ""
            if _fits(where, module):
                return action
    return "default"


def _fits(pattern, text):
    if pattern is None or type(pattern) is str:  # as the interpreter's own filters have it
        return pattern in (None, text)
    return pattern.match(text) is not None


def shown_now(message, passed, frame):
    return message, _others(passed), _module_of(message, frame)


def _others(passed):
    return [item for item in warning_filters() if item is not passed]


class Passed:
    """Filters are compared by `match` of two patterns, and by the class, in an order that depends
    on the version; the words always are first."""

    def __init__(self, tell):
        self._tell, self._found = tell, {}
        kind = type("_Kind", (type,), {"__subclasscheck__": self._of("category")})
        never = sys.maxsize  # a line's number
        self.filter = ("default", self._pattern("text"), kind("Any", (), {}),
                       self._pattern("module"), never)  # fmt: skip

    def _of(self, what):
        def ask(_asked, value):
            if what == "text":
                self._found.clear()
            self._found[what] = value
            if len(self._found) == 3:
                self._tell(**self._found)
                self._found.clear()
            return True

        return ask

    def _pattern(self, what):
        return type("_Pattern", (), {"match": self._of(what)})()


class _Hidden:
    __slots__ = "message", "category"
    lineno = -1  # not known: filters of one line fit none

    def __init__(self, text, category):
        self.message, self.category = text, category


def hidden_now(text, category, module, passed, frame, of_load):
    """Where it is laid to whoever imports, that may be another module in a rank, and `module` is
    kept as None."""
    filters = _others(passed)
    message = _Hidden(text, category)
    if _action(message, filters, module) != "ignore":
        return None
    while frame is not None and frame.f_code is not of_load:
        if frame.f_globals.get("__name__") == module:
            return message, filters, module
        frame = frame.f_back
    return message, filters, None


def is_shown_here(what):
    """None: it cannot be told, for other filters would show others, or show it otherwise."""
    message, then, module = what
    if not hasattr(_modules.get("warnings"), "_showwarnmsg"):
        return None
    if then == warning_filters():
        return type(message) is not _Hidden
    return False if _action(message, warning_filters(), module) == "ignore" else None


def bring(what):
    if type(what[0]) is not _Hidden:
        _modules["warnings"]._showwarnmsg(what[0])
