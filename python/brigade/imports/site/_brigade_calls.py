"""What a trial's program, and each module of its own, does with others between its imports: a later
import may read it.

    calls = Calls(record, main, asks_for_terminal)
                              record(who, "module.function") for each function outside the standard
                              library that is called from another package, or from another module
                              of a package by a module of it; and by the program, once for each
                              module of which a name, or the generator, is another than before,
                              of the standard library a public one (what a module sets, its text
                              says: brigade/fork/source/effects.py; to look at all takes its time);
                              "*" after very many calls; main(path) of what `-m` has found;
                              asks_for_terminal(whether that begins) of what argparse asks, and
                              forgets, when an argument is added to a parser
    calls.go_on(who)          what happens now is its doing; "": the program's
    calls.pause(who)          an import of its begins, or it has been imported

A module is the program's own if it comes neither with Python nor from site-packages.
`torch.set_default_dtype(...)`, `numpy.random.seed(...)` or `settings.precision = 8`, and then the
import of a module that makes something at once: a template would import it without. Python tells
of calls (sys.setprofile) as long as the program has set no such function itself; not of those of
Cython's functions, which the generator of NumPy has: its state is compared.

The standard library is a module like any other to who puts something else in its place:
`socket.socket = ...`, `sys.stdout = ...`, gevent. A later `from socket import socket` holds what
was put there. Private names there are caches, mostly.

What must stay true: the program runs as it would; a call in another thread than the main one is not
seen.
"""

import sys

from _brigade_common import USED_LATE, comes_with_python
from _brigade_generators import numpy_state

_modules = sys.modules
_Module = type(sys)
_MINE = "__main__"
_OURS = "_brigade", "sitecustomize", "usercustomize"
# of the standard library, what sets something that a later import may read
_SETTERS = {"random": (), "decimal": ("getcontext", "setcontext"), "locale": ("setlocale",)}
# of the standard library, names that others look at when they are used; "": all
_USED_LATE = {
    "warnings": ("",), "mimetypes": ("",), **USED_LATE,
    "sys": (*USED_LATE["sys"], "path", "meta_path", "path_hooks", "ps1", "ps2", "last_type",
            "last_value", "last_traceback", "last_exc"),
}  # fmt: skip
_bootstrap = sys.modules["_frozen_importlib"]
_PYTHONS_OWN = _bootstrap.BuiltinImporter, _bootstrap.FrozenImporter
_MOST = 200_000  # calls between two imports; what is imported after so many is not looked into
_IMPORTLIB_S = ("importlib", "_frozen_importlib", "_frozen_importlib_external")
_NUMPY = "numpy.random.mtrand"
_OF_TERMINAL = ("get_terminal_size", "isatty")
_PARSERS = ("argparse", "shutil", "_colorize")


def _adds_an_argument(frame):
    """To a parser, which makes a formatter to see whether the help can be shown, and lets it go: it
    asks how wide a line may be, and whether there may be colours."""
    while frame is not None and frame.f_globals.get("__name__") in _PARSERS:
        if frame.f_code.co_name == "add_argument":
            return True
        frame = frame.f_back
    return False


class Calls:
    def __init__(self, record, main, asks_for_terminal):
        self._record = record
        self._main = main
        self._asks_for_terminal = asks_for_terminal
        self._asks = None  # the function that is called for it
        self._seeks = getattr(sys, "argv", ())[:1] == ["-m"]
        self._who = ""
        self._said = set()
        self._calls = 0
        self._harmless = {}  # package: whether it is of the standard library, or nobody's
        self._before = {}  # module: its names, and what they were

    def go_on(self, who):
        self._who = who
        if (who, "*") in self._said:
            self._before = {}  # nothing more is to be known
            return
        self._before, self._calls = {} if who else self._look(), 0
        if sys.getprofile() is None:
            sys.setprofile(self._profile)

    def pause(self, who):
        if sys.getprofile() == self._profile:
            sys.setprofile(None)
        if self._seeks and sys.argv[:1] != ["-m"]:
            self._has_found()
        now = self._look() if self._before else {}
        for name, before in self._before.items():
            if now.get(name, before) != before and self._differs(name, before, now[name]):
                self._say(name)

    def _has_found(self):
        """Python itself puts the file of `-m MODULE` into sys.argv."""
        self._seeks = False
        self._main(sys.argv[0])
        if "sys" in self._before:
            argv = self._before["sys"][1][-1]
            argv[:1] = sys.argv[:1]

    def _differs(self, module, before, after):
        """Whether more has changed than importlib does when an import has ended."""
        before, after = dict(zip(*before)), dict(zip(*after))
        library = self._is_harmless(module.partition(".")[0])
        late = _USED_LATE.get(module, ()) if library else ()
        return any(
            before.get(name) != after.get(name) and f"{module}.{name}" not in _modules
            for name in {**before, **after}
            if name != "__warningregistry__"
            and not (library and (str(name).startswith("_") or name in late or "" in late))
        )

    def _say(self, what):
        if (self._who, what) not in self._said:
            self._said.add((self._who, what))
            self._record(self._who, what)

    def _profile(self, frame, event, argument):
        try:
            self._see(frame, event, argument)
        except Exception:
            pass  # too deep a recursion of the program's; it would be raised there

    def _see(self, frame, event, argument):
        self._calls += 1
        if self._calls > _MOST:
            sys.setprofile(None)
            self._say("*")
            return
        if event == "call":
            caller = frame.f_back
            name = frame.f_globals.get("__name__")
            function = frame.f_code.co_name
        elif event == "c_call":
            caller = frame
            owner = getattr(argument, "__self__", None)
            name = getattr(argument, "__module__", None)
            if type(owner) is _Module:
                name = owner.__name__
            elif not name and owner is not None:
                name = type(owner).__module__
            function = argument.__name__
            if function in _OF_TERMINAL and _adds_an_argument(frame):
                self._asks = argument
                self._asks_for_terminal(True)
        else:
            if self._asks is not None and argument is self._asks:
                self._asks = None
                self._asks_for_terminal(False)
            return
        if type(name) is not str or name in (_MINE, self._who):
            return
        package = name.partition(".")[0]
        if self._is_harmless(package) or function not in (_SETTERS.get(package) or (function,)):
            return
        above = caller.f_globals.get("__name__") if caller is not None else None
        if type(above) is str and above.partition(".")[0] == package and above != self._who:
            return
        if function == "find_spec" and str(above).partition(".")[0] in _IMPORTLIB_S:
            return  # a finder is asked for what is imported now
        self._say(f"{name}.{function}")

    def _is_harmless(self, package):
        known = self._harmless.get(package)
        if known is None:
            known = self._harmless[package] = self._judge(package)
        return known

    @staticmethod
    def _judge(package):
        if package in _SETTERS:
            return False
        if package.startswith("_brigade"):
            return True
        module = _modules.get(package)
        if module is not None and type(module) is not _Module:
            return False  # a lazy one would be loaded by looking at it
        spec = getattr(module, "__spec__", None)
        if getattr(spec, "loader", None) in _PYTHONS_OWN:
            return True  # whether it names an origin or, as in Python 3.8, does not
        origin = getattr(spec, "origin", None)
        if type(origin) is not str:
            return spec is None or origin is not None  # a namespace package may be anybody's
        return comes_with_python(origin)

    def _look(self):
        """Of each module but the program and Brigade's: its names, and what they refer to."""
        seen = {}
        for name, module in list(_modules.items()):
            if type(module) is _Module and name != _MINE and not name.startswith(_OURS):
                names = module.__dict__
                seen[name] = list(names), list(map(id, names.values()))
        if "sys" in seen:
            names, values = seen["sys"]
            seen["sys"] = [*names, "argv, in it"], [*values, list(getattr(sys, "argv", ()))]
        state = numpy_state()
        if state is not None:
            seen[_NUMPY] = list(state), list(state.values())
        return seen
