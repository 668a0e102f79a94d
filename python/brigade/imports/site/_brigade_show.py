"""What a template has imported, and how it appears in a rank when the rank imports it.

    store = Store(warmer, again)
    store.install()

An import takes its ordinary way through importlib: locks, the parent first, the search, finders of
the program's own. Only where the module would be made, in `module_from_spec` as `_load_unlocked`
calls it, a stored one is taken in its place, if the search has found the file that it was made
of, and if the same is true of all that its execution imported. Each of these is searched for as
always, in the order of then; or not, where the search could not but find what it found then: the
import tables answer for each folder, nothing that they tell of has changed, and finders and
sys.path are as they were. If one is found elsewhere, or has been put there by the program,
nothing is shown: the module is executed as always, and what it imports may be shown by itself.

What must stay true: the rules of _brigade_view.py; no frame of this file is on the stack while a
module executes, and none in a traceback.
"""

import sys

from _brigade_again import ACTIONS
from _brigade_finders import Finder
from _brigade_nodes import (
    ABSENT,
    ATEXIT,
    DEP,
    ENVIRON,
    EXTRA,
    FORGOTTEN,
    FOUND,
    LIST,
    MISSING,
    STORED,
    apply_change,
    filters_changed,
    watched_lists,
)
from _brigade_state import Settings, anything_changed

_bootstrap = sys.modules["_frozen_importlib"]
_external = sys.modules["_frozen_importlib_external"]
_PathFinder = _external.PathFinder
_FINDERS = (Finder, _external.FileFinder)
_modules = sys.modules


class _Otherwise(Exception):
    """An import within the import would now find something else."""


class _Shown:
    """Stands in for the loader of a module that has been executed before; once."""

    def __init__(self, spec, stored):
        self._spec, self._loader, self._stored = spec, spec.loader, stored

    def exec_module(self, _module):
        self._spec.loader = self._loader
        self._stored._initializing = False


class Store:
    def __init__(self, warmer, again):
        self._nodes = nodes = warmer.nodes
        self._extras = warmer.extras
        self._trusted = warmer.trusted
        self._lists = warmer.began  # sys.path and the lists of finders, as they were then
        self._search_of_then = _bootstrap._find_spec
        self._settled = False
        for name, action in again:
            if name in nodes:
                nodes[name].again += (ACTIONS[action],)

    def install(self):
        original = _bootstrap.module_from_spec
        of_load = _bootstrap._load_unlocked.__code__
        of_import = _bootstrap._find_and_load_unlocked.__code__
        nodes, frame_at = self._nodes, sys._getframe

        def module_from_spec(spec):
            node = nodes.get(spec.name)
            if node is not None and node.state == STORED and not node.failed:
                frame = frame_at(1)
                if frame.f_code is of_load and frame.f_back.f_code is of_import:
                    stored = node.spec
                    if self._show(node, spec):
                        spec.loader = _Shown(spec, stored)
                        return _modules[spec.name]
            return original(spec)

        for name in ("__module__", "__qualname__", "__doc__"):
            setattr(module_from_spec, name, getattr(original, name))
        _bootstrap.module_from_spec = module_from_spec

    def _show(self, node, spec):
        """Whether the module, and what it imported, stands in sys.modules now."""
        if not node.matches(spec, self._trusted):
            node.state, node.module = FORGOTTEN, MISSING
            return False
        done = []
        lists = [(items, list(items)) for items in watched_lists()]
        then, self._settled = self._lists, self._is_settled()
        node.spec._initializing = True  # others that import it wait, as while a module executes
        _modules[node.name] = node.module
        try:
            self._replay(node, done)
        except Exception:
            _modules.pop(node.name, None)
            self._take_back(done, lists)
            self._lists = then
            node.state, node.module = FORGOTTEN, MISSING
            return False
        self._finish(node, done)
        return True

    @staticmethod
    def _take_back(done, lists):
        for kind, what in reversed(done):
            if kind == EXTRA:
                _modules.pop(what, None)
            elif kind == DEP:
                node, parent, child, before = what
                _modules.pop(node.name, None)
                if before is MISSING:
                    parent.__dict__.pop(child, None)
                elif parent is not None:
                    setattr(parent, child, before)
        for items, then in lists:
            if items != then:
                items[:] = then
        filters_changed()

    def _replay(self, node, done):
        """Make the searches of the execution of `node`; fill sys.modules and the lists."""
        for kind, what in node.ops:
            if kind == DEP:
                self._request(what, done)
            elif kind == ABSENT:
                if what in _modules or self._is_as_then(what):
                    continue
                if self._search(what) is not None:
                    raise _Otherwise(what)
            elif kind == FOUND:
                name, origin = what
                if self._is_as_then(name):
                    continue
                spec = self._search(name)
                if spec is None or spec.origin != origin:
                    raise _Otherwise(name)
            elif kind == LIST:
                number, change = what
                apply_change(change, watched_lists()[number])
                if self._settled:
                    self._lists = [list(items) for items in watched_lists()[:3]]
            elif kind == EXTRA:
                if what in _modules:
                    raise _Otherwise(what)
                _modules[what] = self._extras[what]
                done.append((EXTRA, what))
            else:
                done.append((kind, what))

    def _request(self, name, done):
        node = self._nodes.get(name)
        held = _modules.get(name, MISSING)
        if held is not MISSING:
            if node is not None and not node.failed and not node.is_module(held):
                raise _Otherwise(name)
            return
        parent, _dot, _child = name.rpartition(".")
        if parent:
            self._request(parent, done)
            if name in _modules:
                self._request(name, done)
                return
        if node is None or node.state != STORED:
            raise _Otherwise(name)
        with _bootstrap._ModuleLockManager(name):
            if name not in _modules:
                self._appear(node, done)
                return
        self._request(name, done)  # another thread has imported it meanwhile

    def _appear(self, node, done):
        """What importlib does for a module that is imported within another's execution."""
        name = node.name
        if not self._is_as_then(name):
            spec = self._search(name)
            if spec is None or not node.matches(spec, self._trusted):
                raise _Otherwise(name)
        if node.failed:
            _modules[name] = None  # what it imports may ask for it
            try:
                self._replay(node, done)
            finally:
                del _modules[name]
            return
        sys.audit("import", name, None, sys.path, sys.meta_path, sys.path_hooks)
        stored = node.spec
        stored._initializing = True
        _modules[name] = node.module
        try:
            self._replay(node, done)
            _modules[name] = _modules.pop(name)
            self._do_again(node)
        finally:
            stored._initializing = False
            done.append((DEP, (node, *self._bind(node))))

    def _is_settled(self):
        """Whether finders, sys.path and what they look at are as when the template warmed."""
        if not Settings.interposed or _bootstrap._find_spec is not self._search_of_then:
            return False
        finders = sys.path_importer_cache.values()
        if any(finder is not None and type(finder) not in _FINDERS for finder in finders):
            return False
        now = [list(items) for items in watched_lists()[:3]]
        return now == self._lists and not anything_changed()

    def _is_as_then(self, name):
        """Whether a search for `name` would be answered by tables alone, as it was then. What it
        leaves in sys.path_importer_cache is left."""
        parent = name.rpartition(".")[0]
        path = getattr(_modules.get(parent), "__path__", None) if parent else sys.path
        if not self._settled or type(path) is not list:
            return False
        cache, tables = sys.path_importer_cache, Settings.tables
        if not all(entry in tables or cache.get(entry, MISSING) is None for entry in path):
            return False
        for entry in path:
            if entry not in cache:
                _PathFinder._path_importer_cache(entry)
        return True

    @staticmethod
    def _search(name):
        parent = name.rpartition(".")[0]
        return _bootstrap._find_spec(name, _modules[parent].__path__ if parent else None)

    def _finish(self, node, done):
        """All will be shown: the rest of what the executions did."""
        self._do_again(node)
        node.shown()
        filters_changed()
        for kind, what in done:
            if kind == DEP:
                what[0].shown()
            elif kind == ENVIRON:
                name, value = what
                environ = _modules["os"].environb
                if value is None:
                    environ.pop(name, None)
                else:
                    environ[name] = value
            elif kind == ATEXIT:
                function, arguments, named = what
                _modules["atexit"].register(function, *arguments, **named)

    @staticmethod
    def _do_again(node):
        for action in node.again:
            action(node.module)

    @staticmethod
    def _bind(node):
        """Give its package the module. (package or None, name in it, what it had before)."""
        parent, _dot, child = node.name.rpartition(".")
        if not parent or not node.bound:
            return None, "", None
        package = _modules[parent]
        before = package.__dict__.get(child, MISSING)
        try:
            setattr(package, child, node.module)
        except AttributeError:
            return None, "", None  # importlib warned of it when the template warmed
        return package, child, before
