"""What modules ask of loggers when they are imported: a program that has set up `logging` before
gives other answers than a template.

    Asked(running)         stand-ins in the class of loggers, as soon as there is one;
                           `running()` is the Node of what is being executed, or None
      .watch()             puts them there, if `logging` has been executed; [(ours, original)]
      .put_back()          the class is as it was
    settled(logger)        how it is now is a show's work, and not the program's
    answers_alike(what)    whether this rank would be told the same

An answer follows from how the logger is and those above it, up to the root. In a rank, each of them
is what it was when the module asked, unless the program has made it another one than it would be
with nothing at work but what has been shown. So it is not each change of the program's that
counts, but another answer. `logger.debug(...)` asks, too, whether it is to say something.

What must stay true: the rules of _brigade_view.py; what `logging` itself looks at is not asked, and
a rank's class of loggers has nothing of ours.
"""

import sys

from _brigade_nodes import ASKED, MISSING

_modules = sys.modules
_ATTRIBUTES = "level", "handlers", "propagate", "disabled"
_METHODS = "isEnabledFor", "getEffectiveLevel", "hasHandlers"
_NEW = (0, (), True, False), 0  # a logger that nobody has done anything with
_INSIDE = "logging", "_brigade_loggers"
_settled = {}  # name of a logger: its state, and what the manager says; it refers to nothing else


def _state(logger):
    """In the order of _ATTRIBUTES, of its own names: no property is asked."""
    names = logger.__dict__
    handlers = tuple(map(id, names.get("handlers", ())))
    return names.get("level", 0), handlers, names.get("propagate", True), names.get("disabled")


def settled(logger):
    manager = logger.manager
    _settled["" if logger is manager.root else logger.name] = _state(logger), manager.disable


def _above(name):
    """It and the names above it, which end at the root's, ""."""
    names = [name] if name else []
    while "." in name:
        name = name.rpartition(".")[0]
        names.append(name)
    return [*names, ""]


def _held(manager, name):
    """The logger of that name, or None; also of one that keeps elsewhere what is asked for."""
    if not name:
        return manager.root
    logger = manager.loggerDict.get(name)
    return logger if "level" in getattr(logger, "__dict__", ()) else None


class _Question:
    """`what` is asked of logger `name`: one of _METHODS, with this level, or one of _ATTRIBUTES."""

    __slots__ = "what", "level", "manager", "names", "states", "disable"

    def __init__(self, what, level, manager, name):
        self.what, self.level, self.manager = what, level, manager
        self.names, self.disable = _above(name), manager.disable
        held = [_held(manager, name) for name in self.names]
        self.states = [None if logger is None else _state(logger) for logger in held]

    def answer(self, states, disable):
        """`states`: of each of `names`; None: there is no such logger."""
        if self.what in _ATTRIBUTES:
            return states[0][_ATTRIBUTES.index(self.what)]
        states = [state for state in states if state is not None]
        if self.what == "hasHandlers":
            for _level, handlers, propagates, _disabled in states:
                if handlers or not propagates:
                    return bool(handlers)
            return False
        level = next((state[0] for state in states if state[0]), 0)
        if self.what == "getEffectiveLevel":
            return level
        return not states[0][3] and disable < self.level and level <= self.level

    def key(self):
        return self.what, self.level, self.names[0], self.answer(self.states, self.disable)


class Asked:
    def __init__(self, running):
        self._running = running
        self._places = []

    def watch(self):
        kind = getattr(_modules.get("logging"), "Logger", None)
        if kind is None or self._places:
            return []
        pairs = [(name, self._method(name, kind.__dict__.get(name))) for name in _METHODS]
        pairs += [(name, self._attribute(name)) for name in _ATTRIBUTES]
        self._places = [(kind, name, kind.__dict__.get(name, MISSING)) for name, _ours in pairs]
        for name, ours in pairs:
            setattr(kind, name, ours)
        return [(ours, original) for (_, ours), (*_, original) in zip(pairs, self._places)]

    def put_back(self):
        for kind, name, original in self._places:
            if original is MISSING:
                delattr(kind, name)
            else:
                setattr(kind, name, original)
        self._places = []
        self._running = lambda: None  # somebody may have kept one of them

    def _method(self, what, original):
        def ask(logger, *level):
            answer = original(logger, *level)
            if sys._getframe(1).f_code.co_name != "isEnabledFor":
                self._note(what, level[0] if level else 0, logger)
            return answer

        return ask

    def _attribute(self, what):
        def get(logger):
            try:
                value = logger.__dict__[what]
            except KeyError:
                raise AttributeError(what) from None
            asker = str(sys._getframe(1).f_globals.get("__name__"))
            if asker.partition(".")[0] not in _INSIDE:
                self._note(what, 0, logger)
            return value

        def put(logger, value):
            logger.__dict__[what] = value

        return property(get, put)

    def _note(self, what, level, logger):
        node = self._running()
        manager = getattr(logger, "manager", None)
        if node is None or manager is None:
            return
        name = "" if logger is manager.root else logger.name
        if _held(manager, name) is not logger:
            return  # nobody can ask for it, nor for what is above it
        question = _Question(what, level, manager, name)
        key = ASKED, question.key()
        if key not in node.known:
            node.known.add(key)
            node.ops.append((ASKED, question))


def answers_alike(question):
    manager = question.manager
    if getattr(getattr(_modules.get("logging"), "Logger", None), "manager", None) is not manager:
        return False
    states, disable = list(question.states), question.disable
    for number, name in enumerate(question.names):
        logger = _held(manager, name)
        if logger is not None and _state(logger) != _settled.get(name, _NEW)[0]:
            states[number] = _state(logger)
    if manager.disable != _settled[""][1]:
        disable = manager.disable
    return question.answer(states, disable) == question.answer(question.states, question.disable)
