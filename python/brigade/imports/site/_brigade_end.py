"""How a rank ends that was forked: as if it had imported itself what it did.

    end = End()         in a template, before it imports anything
    end.begin(table)    in a rank, before the program
    watch_atexit(module, stack)   what a module registers is noted, while those of `stack` are being
                        executed; (stand-in, original)

When Python ends it calls exit functions, collects, takes the modules apart, and collects again what
the program has left in cycles: files with what is to be written yet, objects with `__del__`. A
collection passes over what is frozen, and nearly all hangs on that, if only on the names of
`__main__`. Until the modules are taken apart all that they refer to is in use, so the first
collection may pass over it: a rank copies each page that one visits. Then nothing is frozen any
more, and nothing of ours refers to a module.

What a template has imported and the program has not comes to an end as well, but for what it gave
weakref.finalize, which is called by nobody, unless something there might do something then: by
itself, the rank would not have had it. It is kept until the process is gone, and what it refers to
with it. That is looked at by who has not imported all, as it ends: every object is.

What must stay true: the rules of _brigade_view.py.
"""

import sys

from _brigade_common import borrow
from _brigade_nodes import ATEXIT
from _brigade_store import FORGOTTEN, STORED

_reference = sys.modules["_weakref"].ref
_bases_of = type.__dict__["__mro__"].__get__
_names_of = type.__dict__["__dict__"].__get__
_callback_of = _reference.__callback__.__get__
_generators = type(_ for _ in ()), type((lambda: (yield))())
# whose functions do no more, when what is referred to ends, than forget it
_FORGETTING = "weakref", "_weakrefset", "logging", "threading", "_frozen_importlib"
_LAST_GENERATION = 2


class End:
    def __init__(self):
        gc = borrow("gc")  # whose names the program may change
        self._freeze, self._unfreeze, self._objects = gc.freeze, gc.unfreeze, gc.get_objects
        self._is_on, self._callbacks = gc.isenabled, gc.callbacks
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
        for node, state in zip(self._table.nodes, self._table.states):
            for finalizer in node.finalizers if state == STORED else ():
                finalizer.detach()
        if self._is_on():
            self._callbacks.append(self._collected)
        else:
            self._let_go()  # modules are taken apart next

    def _collected(self, phase, info):
        if phase == "stop" and info["generation"] == _LAST_GENERATION:
            self._callbacks.remove(self._collected)
            self._let_go()

    def _let_go(self):
        table, states = self._table, self._table.states
        unseen = [held for held, state in zip(table.modules, states) if state == STORED]
        unseen += table.forgotten
        own = set(map(id, self._objects())) if unseen else ()  # what is frozen is not among them
        states[:] = bytes([FORGOTTEN]) * len(states)  # nothing is shown any more
        table.nodes, table.modules, table.forgotten, table.others = [], [], [], []
        table.again = {}
        self._freeze()  # behind what is older: finalizers are called in that order
        self._unfreeze()
        if unseen and self._acts(own):
            _keep(unseen)

    def _acts(self, own):
        """Whether what the template has imported may do something when it ends."""
        if id(self) in own:  # the program itself had nothing frozen any more: who can tell?
            return True
        kinds = {}
        return any(
            _acts_at_its_end(thing, kinds) for thing in self._objects() if id(thing) not in own
        )


class Finalizers:
    """Of weakref, which calls all of them as Python ends."""

    def __init__(self):
        self._known = set()

    def new(self):
        weakref = sys.modules.get("weakref")
        pending = getattr(getattr(weakref, "finalize", None), "_registry", ())
        found = [one for one in pending if one not in self._known]
        self._known.update(found)
        return found


def watch_atexit(module, stack):
    original = module.register

    def register(func, *args, **kwargs):
        """What a module registers is registered when the program imports it; what it makes others
        register (weakref.finalize) has been noted by them, and is done."""
        caller, name = sys._getframe(1), stack and stack[-1].name
        own = name == caller.f_globals.get("__name__") and "register" in caller.f_code.co_names
        if not stack or not (own or name == getattr(func, "__module__", None)):
            return original(func, *args, **kwargs)
        stack[-1].ops.append((ATEXIT, (func, args, kwargs)))
        return func

    module.register = register
    return register, original


def _acts_at_its_end(thing, kinds):
    """Whether Python code may be called when it ends, but for what only forgets it."""
    kind = type(thing)
    if id(kind) not in kinds:
        bases = _bases_of(kind)
        kinds[id(kind)] = kind, _reference in bases, any("__del__" in _names_of(b) for b in bases)
    _kind, refers, ends = kinds[id(kind)]
    if refers:
        callback = _callback_of(thing)
        return type(callback) is type(_acts_at_its_end) and callback.__module__ not in _FORGETTING
    return ends and kind.__module__ != "_io" and kind not in _generators


def _keep(things):
    """For as long as the process lives: they are in a cycle with a code object, into which no
    collection looks."""
    code = _keep.__code__
    things.append(code.replace(co_consts=(*code.co_consts, things)))
