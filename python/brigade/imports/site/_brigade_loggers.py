"""Loggers that modules make when they are imported: there when the module is shown, or when the
program asks for them, and no earlier.

    loggers = Loggers()
    loggers.note(ops)         new loggers, and changes of the root logger, are this execution's work
    loggers.hide()            as if there were none; what a rank then asks `logging` for it gets
    may_come(kind, what, done)   whether it can be put in its place in this rank, when what is in
                              `done` has been
    bring(kind, what)         put it there

Programs silence, list or disable the loggers that there are (`disable_existing_loggers`), and then
import more. A module keeps its logger as an object of its own, so what is hidden is the object that
somebody gets who asks for that name: as new, and what the module did with it is done when it is
shown. That is what `Manager.loggerClass` is set for, as long as any is hidden.

What must stay true: the rules of _brigade_view.py; a look is cheap, for it happens twice a module.
"""

import sys

from _brigade_asked import settled
from _brigade_nodes import LOGGER, ROOT, part_now

_modules = sys.modules


def _manager():
    """The manager of the program's `logging`, or None if that is not there (yet)."""
    return getattr(getattr(_modules.get("logging"), "Logger", None), "manager", None)


def _root_state(manager):
    root = manager.root
    return root.level, list(root.handlers), list(root.filters), manager.disable


class _Maker:
    """In the place of a class of loggers: makes what is hidden, or one of the class that it would
    have been."""

    def __init__(self, logging, manager, hidden):
        self.logging, self.manager, self.hidden = logging, manager, hidden
        self.wanted = None  # the name that is put in its place now, of whatever class it is

    def __call__(self, name):
        held = self.hidden.get(name)
        if held is None or name != self.wanted and not self._makes_alike(type(held)):
            return self.logging._loggerClass(name)
        del self.hidden[name]
        if not self.hidden and self.manager.loggerClass is self:
            self.manager.loggerClass = None
        return held

    def _makes_alike(self, kind):
        """Whether what was hidden is as a new one: its class gives it nothing of its own."""
        usual = self.logging._loggerClass
        return kind is usual and usual.__init__ is self.logging.Logger.__init__


class _Made:
    """A logger and what was done with it."""

    def __init__(self, logger):
        self.logger = logger
        self.manager = logger.manager
        self.name = logger.name
        self.maker = None
        self.usual = _modules["logging"]._loggerClass  # what a new one is, when it has been made

    def hide(self, maker):
        it, self.maker = self.logger, maker
        self.level, self.handlers, self.filters = it.level, it.handlers, it.filters
        self.propagate, self.disabled = it.propagate, it.disabled
        it.level, it.handlers, it.filters = 0, [], []
        it.propagate, it.disabled, it.parent = True, False, None
        names, usual = it.__dict__, {"manager", *maker.logging.Logger(it.name).__dict__}
        self.more = {name: names.pop(name) for name in list(names) if name not in usual}
        getattr(it, "_cache", {}).clear()

    def may_come(self, done):
        manager, maker = _manager(), self.maker
        held = manager and manager.loggerDict.get(self.name)
        if manager is not self.manager or held is self.logger:
            return manager is self.manager
        if held is not None and type(held) is not maker.logging.PlaceHolder:
            return False
        usual = part_now(done, maker.logging, "_loggerClass")
        return manager.loggerClass is maker and self.name in maker.hidden and usual is self.usual

    def bring(self):
        it, self.maker.wanted = self.logger, self.name
        self.manager.getLogger(self.name)
        self.maker.wanted = None
        for handler in self.handlers:
            it.addHandler(handler)
        for each in self.filters:
            it.addFilter(each)
        it.__dict__.update(self.more)
        if self.level:
            it.setLevel(self.level)
        if not self.propagate:
            it.propagate = False
        if self.disabled:
            it.disabled = True
        settled(it)


class Loggers:
    def __init__(self):
        self._manager, self._logging = _manager(), None
        self._first = self._items = {}
        self._root = self._first_root = None
        self._parents = []
        self._made = []
        if self._manager is not None:
            self._begin()

    def _begin(self):
        self._logging = _modules["logging"]
        self._first = self._items = dict(self._manager.loggerDict)
        self._root = self._first_root = _root_state(self._manager)
        self._parents = [
            (item, item.parent) for item in self._first.values() if hasattr(item, "parent")
        ]

    def note(self, ops):
        manager = self._manager
        if manager is None:
            manager = self._manager = _manager()
            if manager is None:
                return
            self._begin()
        now = manager.loggerDict
        if list(now.values()) != list(self._items.values()):
            before, self._items = self._items, dict(now)
            for name, item in self._items.items():
                if item is not before.get(name) and hasattr(item, "parent"):
                    self._made.append(_Made(item))
                    ops.append((LOGGER, self._made[-1]))
        state = _root_state(manager)
        if state != self._root:
            ops.append((ROOT, (manager, self._root, state)))
            self._root = state

    def hide(self):
        manager, made = self._manager, self._made
        if manager is None:
            return
        _set_root(manager, self._first_root)
        if made:
            hidden = {one.name: one.logger for one in made}
            maker = _Maker(self._logging, manager, hidden)
            manager.loggerClass = maker
            for one in made:
                one.hide(maker)
        manager.loggerDict.clear()
        manager.loggerDict.update(self._first)
        for item in self._first.values():
            children = getattr(item, "loggerMap", {})
            for child in [child for child in children if child.parent is None]:
                del children[child]
        for item, parent in self._parents:
            item.parent = parent


def _set_root(manager, state):
    root = manager.root
    root.level, root.handlers[:], root.filters[:], manager.disable = state
    clear = getattr(manager, "_clear_cache", None)
    if clear is not None:
        clear()
    settled(root)


def may_come(kind, what, done):
    if kind == LOGGER:
        return what.may_come(done)
    manager, before, _after = what
    if manager is not _manager():
        return False
    pending = [other[2] for each, other in done if each == ROOT]
    return (pending[-1] if pending else _root_state(manager)) == before


def bring(kind, what):
    if kind == LOGGER:
        what.bring()
    else:
        _set_root(what[0], what[2])
