"""Warming: a template imports what its plan names, and notes what each execution did.

    warmer = Warmer(plan, trusted)
    warmer.run()       imports; what must not happen, and did, is in warmer.problems
    warmer.hide()      the process looks as before, and warmer.nodes holds what was imported

While it runs, stand-ins take the place of importlib's own functions and of `__import__`: they see
what each module imports, for the first time (a load) and again (a request that is answered from
sys.modules). A module that was imported when a later one asks for it is as much a part of that
one's import: a program may import the later one alone.

What must stay true: the rules of _brigade_view.py; no stand-in outlives run(); a module that is
not in the plan is never executed.
"""

import sys

from _brigade_asked import Asked
from _brigade_end import Finalizers, watch_atexit
from _brigade_given import Given
from _brigade_hooks import Hooks
from _brigade_loggers import Loggers
from _brigade_main import with_main
from _brigade_names import Names
from _brigade_nodes import (
    ABSENT,
    ATTRIBUTE,
    EXTRA,
    FOUND,
    LIST,
    MISSING,
    PART,
    READ,
    READ_SET,
    WARNED,
    Node,
    change_between,
    filters_changed,
    watched_lists,
    with_importers,
)
from _brigade_parts import Parts, for_no_import, in_words
from _brigade_store import modules_of_one_block
from _brigade_warned import Passed, hidden_now, is_own, shown_now, watch
from _brigade_watch import Watch, watch_environ

_bootstrap = sys.modules["_frozen_importlib"]
_builtins = sys.modules["builtins"]
_modules = sys.modules
_FREEZE_EVERY = 32  # modules
_LISTS = "sys.path", "sys.meta_path", "sys.path_hooks", "warnings.filters", "gc.callbacks"
# attributes of sys and builtins that imports may change, or that warming itself does
_IGNORED = ("__import__", "_", "last_type", "last_value", "last_traceback", "last_exc")


class Warmer:
    def __init__(self, plan, trusted):
        self.warm = dict(plan["warm"])
        self.left = plan["left"]
        self.fails = frozenset(plan["fails"])  # modules whose execution raises
        self._main = plan["main"]  # the file that `-m MODULE` means
        self.trusted = trusted
        self.limits = {  # modules of whose reads of all variables few count: the names of those
            name: [pattern.encode() for pattern in patterns]
            for name, patterns in plan.get("names", {}).get("environ", ())
        }
        self.draws = dict(
            plan.get("names", {}).get("generator", ())
        )  # module: that it may draw from
        self.nodes = {}
        self.attributes = {}  # attributes that they gave sys
        self.extras = {}  # what modules put into sys.modules themselves
        self.problems = {}  # module: why it, and so this process, cannot be used
        self.absent = {}  # module that is not found: what Python said
        self.variables = None
        self._stack = []
        self._block = []  # modules to be
        self._given = Given()
        self._finalizers = Finalizers()
        self._loggers = Loggers()
        self._hooks = Hooks()
        stack = self._stack
        self._asked = Asked(lambda: stack[-1] if stack else None)
        self._raised = None, ""  # the last exception of an execution, and whose that was
        self._stand_ins = {}  # id: (stand-in, original)
        self.base = set(_modules)
        self._names = Names()
        self._passed = Passed(self._note_hidden).filter
        self.watch = Watch(_IGNORED)

    # the run ------------------------------------------------------------------------

    def run(self, first_entry):
        """Import all of the plan; `first_entry` is what sys.path will begin with, or None."""
        lists = watched_lists()
        before = [list(items) for items in lists]
        cache = dict(sys.path_importer_cache)
        environ = self._watch_environ()
        self.watch.catch_output()
        if first_entry is not None:
            sys.path.insert(0, first_entry)
        lists[3].insert(0, self._passed)
        self._lists = [list(items) for items in watched_lists()]
        self.began = self._lists[:3]
        self._block = modules_of_one_block(len(self.warm))
        without_main = with_main(self._main, first_entry, self._blame)
        restore = self._stand_in()
        self._parts = Parts()
        try:
            for name in self.warm:
                if name not in self.nodes and name not in self.base and not self._inside(name):
                    self._import(name)
        finally:
            restore()
            without_main()
            self._block.clear()
            if self.watch.release_output():
                self._blame("something was written to stdout or stderr", "the imports")
            environ()
        self._compare()
        if watched_lists()[3] is not lists[3]:
            self._blame("put another list in the place of warnings.filters", "the imports")
        for items, then in zip(lists, before):
            items[:] = then
        filters_changed()
        sys.path_importer_cache.clear()
        sys.path_importer_cache.update(cache)

    def _inside(self, name):
        """Whether the module is in a package that is left, or that has shown to be in doubt."""
        parts = name.split(".")
        packages = [".".join(parts[:count]) for count in range(1, len(parts))]
        return any(part in self.left or part in self.problems for part in packages)

    def _import(self, name):
        try:
            _bootstrap._gcd_import(name)
        except BaseException as error:
            self._stack.clear()
            culprit = self._raised[1] if self._raised[0] is error else name
            if type(error) is ModuleNotFoundError and error.name == culprit not in self.nodes:
                self.absent[name] = str(error)  # nothing of it has been executed
            elif culprit not in self.fails:
                self._blame(f"{type(error).__name__}: {error}", culprit)

    def _compare(self):
        """What raises in the program, or does not, and does otherwise here, is another import: the
        program may have set what it depends on."""
        fails = self.fails
        others = [name for name, node in self.nodes.items() if node.failed != (name in fails)]
        doubtful = with_importers(self.nodes, self.problems) if others else ()
        for name in others:
            if name not in doubtful:
                places = ["a template", "the trial"]
                here, there = reversed(places) if name in fails else places
                self._blame(f"fails in {here}, and not in {there}", name)

    def _blame(self, why, name=None):
        self.problems.setdefault(name or (self._stack[-1].name if self._stack else "?"), why)

    def _unwanted(self, spec):
        """Why this module must not be executed here, or None."""
        if spec.name in self.left:
            return f"imports {spec.name}, which is left: {self.left[spec.name]}"
        if spec.name not in self.warm:
            if spec.loader is None or spec.origin in ("built-in", "frozen"):
                return None
            return f"imports {spec.name}, which was not imported in the trial"
        if (spec.origin or "") != self.warm[spec.name]:
            return f"imports {spec.name}, which is {spec.origin} and was {self.warm[spec.name]}"
        return None

    # what executions do -------------------------------------------------------------

    def _stand_in(self):
        """Put the stand-ins in place; what takes them away again."""
        load, find_spec = _bootstrap._load_unlocked, _bootstrap._find_spec
        new_module = _bootstrap._new_module
        find_and_load, import_original = _bootstrap._find_and_load, _builtins.__import__
        of_import = _bootstrap._find_and_load_unlocked.__code__
        of_c = _bootstrap._call_with_frames_removed.__code__
        stack = self._stack

        def _new_module(name):
            if not self._block:
                return new_module(name)
            module = self._block.pop()
            module.__init__(name)
            return module

        def _load_unlocked(spec):
            return self._load(load, spec)

        def _find_spec(name, path, target=None):
            spec = find_spec(name, path, target)
            if stack and (spec is None or sys._getframe(1).f_code is not of_import):
                self._note()
                node, found = stack[-1], spec is not None
                if (found, name) not in node.known:
                    node.known.add((found, name))
                    node.ops.append((FOUND, (name, spec.origin)) if found else (ABSENT, name))
            return spec

        def _find_and_load(name, import_):
            module = find_and_load(name, import_)
            if stack:
                self._dep(name)
            return module

        def __import__(name, globals=None, locals=None, fromlist=(), level=0):
            module = import_original(name, globals, locals, fromlist, level)
            if stack:
                self._requested(name, globals, fromlist, level)
            return module

        def is_initializing(spec):
            """Asked of a module that is there: all that is seen of it if code in C imports it."""
            if stack and sys._getframe(1).f_code is of_c:
                if spec.name in _modules:
                    self._dep(spec.name)
            return spec.__dict__.get("_initializing", False)

        def set_initializing(spec, value):
            spec.__dict__["_initializing"] = value

        places = [
            (_bootstrap, "_new_module", new_module, _new_module),
            (_bootstrap, "_load_unlocked", load, _load_unlocked),
            (_bootstrap, "_find_spec", find_spec, _find_spec),
            (_bootstrap, "_find_and_load", find_and_load, _find_and_load),
            (_builtins, "__import__", import_original, __import__),
            *self._hooks.watched_loaders(lambda: stack[-1].name if stack else ""),
        ]
        for place, name, original, ours in places:
            setattr(place, name, ours)
            self._stand_ins[id(ours)] = ours, original
        if "atexit" in _modules:
            self._watch_atexit(_modules["atexit"])
        self._watch_warnings()
        self._watch_loggers()
        _bootstrap.ModuleSpec._initializing = property(is_initializing, set_initializing)

        def restore():
            nonlocal self
            del _bootstrap.ModuleSpec._initializing
            for place, name, original, _ours in places:
                setattr(place, name, original)
            self._asked.put_back()
            self._forget_stand_ins()
            self = None  # what is in C may keep a stand-in for good, and with it all that it has

        return restore

    def _forget_stand_ins(self):
        """A module may have taken a stand-in for its own; it gets the original."""
        for name in [*self.nodes, "atexit", "warnings"]:
            names = getattr(_modules.get(name), "__dict__", {})
            for key, value in list(names.items()):
                ours, original = self._stand_ins.get(id(value), (None, None))
                if ours is not None and ours is value:
                    names[key] = original

    def _load(self, load, spec):
        reason = self._unwanted(spec)
        if reason:
            self._blame(reason)
            raise ImportError(f"brigade: {reason}", name=spec.name)
        stack, name = self._stack, spec.name
        if stack:
            self._note_all()
            stack[-1].dep(name)
        node = self.nodes[name] = Node(spec, self.trusted)
        self._names.expect(name)
        parent, _dot, child = name.rpartition(".")
        node.within = any(above.name == parent for above in stack)
        node.before = getattr(_modules.get(parent), "__dict__", {}).get(child, MISSING)
        blamed, before = len(self.problems), self.watch.look()
        self._hooks.settle()
        stack.append(node)
        try:
            node.module = load(spec)
        except BaseException as error:
            node.failed = True
            if self._raised[0] is not error:
                self._raised = error, name
            raise
        finally:
            if stack:
                self._note_all(ended=True)
                self._given.note_replaced(node.module, node.ops)
                changed = self._without_new(self.watch.changes(before, self.watch.look()), before)
                if changed and blamed == len(self.problems):
                    self._blame(f"changed {', '.join(changed)}")
                stack.pop()
                self._hooks.settle()
        self._given.remember(name, node.module)
        node.finalizers = self._finalizers.new()
        if len(self.nodes) % _FREEZE_EVERY == 0:
            self.watch.freeze()
        if name == "atexit":
            self._watch_atexit(node.module)
        if name == "warnings":
            self._watch_warnings()
        if name == "logging":
            self._watch_loggers()
        return node.module

    def _without_new(self, changed, before):
        """What of it is not a new attribute of sys, that can be had once more, nor random numbers
        that the module may draw."""
        others, draws = [], self.draws.get(self._stack[-1].name, ())
        for what in changed:
            place, _dot, name = what.partition(".")
            if what in self.attributes:
                continue  # of an import within
            if self.watch.forgives(what, draws, before):
                continue
            if place != "sys" or self.watch.had(before, what):
                others.append(what)
                continue
            self.attributes[what] = name, getattr(sys, name)
            self._stack[-1].ops.append((ATTRIBUTE, self.attributes[what]))
        return others

    def _requested(self, name, asker, fromlist, level):
        """Note an import that may have been answered from sys.modules."""
        if level:
            package = (asker or {}).get("__package__")
            if package is None:
                package = asker["__spec__"].parent
            package = package.rsplit(".", level - 1)[0]
            name = f"{package}.{name}" if name else package
        names = [name]
        if fromlist:
            names += [f"{name}.{part}" for part in fromlist]
            if "*" in fromlist:
                names += [f"{name}.{part}" for part in getattr(_modules.get(name), "__all__", ())]
        for full in names:
            if full in _modules:
                self._dep(full)

    def _dep(self, name):
        """The innermost module imports this one. Again is nothing new: what else it has done is
        noted, in order, when there is."""
        node = self._stack[-1]
        if name not in self.base and name not in node.known:
            self._note()
            node.dep(name)

    def _note(self, ended=False):
        """What changed since the last look is the work of the innermost module."""
        lists = watched_lists()
        if lists != self._lists:
            self._note_lists(lists)
        if self.variables.ops:
            self._note_variables()
        if ended or self._names.are_otherwise():
            node = self._stack[-1]
            for name in self._names.new():
                self.extras[name] = None
                node.ops.append((EXTRA, name))

    def _note_lists(self, lists):
        node = self._stack[-1]
        for number, items in enumerate(lists):
            if items != self._lists[number]:
                change = change_between(self._lists[number], items)
                self._lists[number] = list(items)
                if change is None:
                    self._blame(f"changed {_LISTS[number]}")
                else:
                    node.ops.append((LIST, (number, change)))

    def _note_variables(self):
        node = self._stack[-1]
        for op in self.variables.ops:
            if op[0] not in (READ, READ_SET):
                node.ops.append(op)
            elif op not in node.known:
                node.known.add(op)
                node.ops.append(op)
        self.variables.ops.clear()

    def _note_all(self, ended=False):
        """At an end of an execution, or between two: with what costs more to look at."""
        self._note(ended)
        node = self._stack[-1]
        self._hooks.note(node.name, node.ops, ended)
        self._given.note(node.ops)
        self._loggers.note(node.ops)
        for what in self._parts.changes():
            if for_no_import(*what[:2]):
                node.ops.append((PART, what))
            else:
                self._blame(f"changed {in_words(*what[:2])}")

    def _watch_environ(self):
        """What makes os.environ the plain one again."""

        def limits():
            return self.limits.get(self._stack[-1].name) if self._stack else None

        def everything():
            if self._stack:
                self._blame("reads all of the environment")

        self.variables, restore = watch_environ(limits, everything)
        return restore

    def _watch_atexit(self, module):
        watched = watch_atexit(module, self._stack)
        self._stand_ins[id(watched[0])] = watched

    def _watch_loggers(self):
        self._stand_ins.update((id(pair[0]), pair) for pair in self._asked.watch())

    def _watch_warnings(self):
        def show(message, original):
            if not self._stack:
                return original(message)
            self._note_all()
            frame = sys._getframe(2)
            if is_own(message, [node.name for node in self._stack], of_load, frame):
                self._stack[-1].ops.append((WARNED, shown_now(message, self._passed, frame)))
            else:
                self._blame("warns whoever imports it")

        of_load = Warmer._load.__code__
        watched = watch(show)
        if watched is not None:
            self._stand_ins[id(watched[0])] = watched
            self._given.look_again(_modules["warnings"])

    def _note_hidden(self, text, category, module):
        """A warning that nobody sees here: once for all that say the same. What is told when memory
        is freed is told at any time, and belongs to nobody."""
        if not self._stack or issubclass(category, ResourceWarning):
            return
        self._note()
        node, key = self._stack[-1], (WARNED, text, category, module)
        if key in node.known:
            return
        node.known.add(key)
        frame, of_load = sys._getframe(2), Warmer._load.__code__
        what = hidden_now(text, category, module, self._passed, frame, of_load)
        if what is not None:
            node.ops.append((WARNED, what))

    # afterwards ---------------------------------------------------------------------

    def hide(self):
        """Take what was imported out of sys.modules, out of the packages it is in, and what it gave
        sys."""
        for node in self.nodes.values():
            current = _modules.get(node.name, MISSING)
            if node.failed or current is MISSING:
                node.failed = True
                continue
            node.module = current
            parent, _dot, child = node.name.rpartition(".")
            if parent:
                self._unbind(node, _modules.get(parent), child)
        for node in self.nodes.values():
            if not node.failed:
                del _modules[node.name]
        for name, _value in self.attributes.values():
            delattr(sys, name)
        for name in self.extras:
            self.extras[name] = _modules.pop(name, None)
        self._given.take_away()
        self._loggers.hide()
        self._parts.put_back()

    @staticmethod
    def _unbind(node, parent, child):
        if getattr(parent, "__dict__", {}).get(child) is not node.module:
            node.bound = False
        elif node.within:
            pass  # wherever its package is shown, so is it
        elif node.before is MISSING or node.before is node.module:
            delattr(parent, child)
        else:
            setattr(parent, child, node.before)
