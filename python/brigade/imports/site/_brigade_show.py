"""What a template has imported, and how it appears in a rank when the rank imports it.

    store = Store(warmer, again)
    store.install()

An import takes its ordinary way through importlib: locks, the parent first, the search, finders of
the program's own. Only where the module would be made, in `module_from_spec` as `_load_unlocked`
calls it, a stored one is taken in its place, if the search has found the file that it was made
of, and if the same is true of all that its execution imported. Each of these is searched for as
always, in the order of then; or not, where the search could not but find what it found then: the
import tables answer for each folder, nothing in it has changed, and finders and
sys.path are as they were. If one is found elsewhere, or has been put there by the program,
nothing is shown: the module is executed as always, and what it imports may be shown by itself.

What must stay true: the rules of _brigade_view.py; no frame of this file is on the stack while a
module executes, and none in a traceback; what is looked at for each module is in the Table, since
to look is to write.
"""

import sys

from _brigade_again import ACTIONS
from _brigade_asked import answers_alike
from _brigade_common import is_own
from _brigade_finders import Finder, folder_of
from _brigade_given import give_back
from _brigade_hooks import is_as_then
from _brigade_loggers import may_come
from _brigade_nodes import (
    ABSENT,
    ASKED,
    ATTRIBUTE,
    DEP,
    EXTRA,
    FOUND,
    GIVEN,
    LIST,
    LOGGER,
    MISSING,
    PART,
    READ,
    READ_ALL,
    READ_SET,
    ROOT,
    SEEN,
    WARNED,
    apply_change,
    filters_changed,
    part_now,
    watched_lists,
)
from _brigade_parts import is_made_by_the_first
from _brigade_renew import carry_out, renew
from _brigade_same import is_otherwise, variables_are
from _brigade_state import Settings, touched_folders
from _brigade_store import KIND_BITS, KINDS, NAME, NOT_HERE, SHOWING, STORED, TOP, Table
from _brigade_strange import may_set
from _brigade_warned import is_shown_here

_bootstrap = sys.modules["_frozen_importlib"]
_external = sys.modules["_frozen_importlib_external"]
_PathFinder = _external.PathFinder
_FINDERS = (Finder, _external.FileFinder)
_Module = type(sys)
_modules = sys.modules
_threads = sys.modules["_thread"]._count
_environ = sys.modules["posix"].environ
_environ_at_start = {}
# what Cython's modules put into sys.modules, if it is not there: whose it is does not matter
_SHARED = ("cython_runtime", "_cython_")


def rank_begins():
    """The environment is the rank's, and the program has not changed it."""
    _environ_at_start.update(_environ)


class _Otherwise(Exception):
    """An import within the import would now find something else."""


class _Shown:
    """Stands in for the loader of a module that has been executed before; once."""

    def __init__(self, spec, stored):
        self._spec, self._loader, self._stored = spec, spec.loader, stored

    def exec_module(self, _module):
        self._spec.loader = self._loader
        self._stored._initializing = False


def _tell_of_filters(lists):
    """If a show has changed them, as who changes them does. What has been warned of once is
    forgotten by that."""
    filters, before = lists[3]
    if filters != before:
        filters_changed()


class Store:
    def __init__(self, warmer, again, mine=None):
        actions = {}
        for name, action in again:
            actions.setdefault(name, []).append(ACTIONS[action])
        self.table = Table(warmer.nodes, actions)
        self._extras = warmer.extras
        self._trusted = warmer.trusted
        self._base = warmer.base
        self._lists = warmer.began  # sys.path and the lists of finders, as they were then
        self._search_of_then = _bootstrap._find_spec
        self._settled = False  # nothing can be found elsewhere than then, but for what is asked
        self._touched = frozenset()  # folders in which something is not as then
        self._unseen = False  # nothing is certain of what is not installed software
        self._alone = False  # settled, and no other thread can look while modules are shown
        self._untouched = False  # the program has changed no variable
        self._answers = {}  # package: what _is_as_then() found, in this show
        self._seen = b""  # whether a module was found to be in sys.modules, in this show
        self._mine = mine  # {module of the program's own: its origin}, of the trial; or None
        self._strange = False  # one was executed that the trial did not: nobody knows what it set

    def install(self):
        self.table.lay_out()
        original = _bootstrap.module_from_spec
        of_load = _bootstrap._load_unlocked.__code__
        of_import = _bootstrap._find_and_load_unlocked.__code__
        table, frame_at = self.table, sys._getframe
        index, states, failed, mine = table.index, table.states, table.failed, self._mine

        def module_from_spec(spec):
            number = index.get(spec.name)
            if number is not None and states[number] == STORED and not failed[number]:
                frame = frame_at(1)
                if frame.f_code is of_load and frame.f_back.f_code is of_import:
                    before = table.modules[number]
                    if self._show(number, spec):
                        spec.loader = _Shown(spec, table.nodes[number].spec)
                        return _modules[spec.name]
                    module = original(spec)
                    renew(table, self._extras, number, spec, module, before)
                    return module
            elif mine is not None and mine.get(spec.name) != spec.origin and is_own(spec.origin):
                self._strange = self._strange or may_set(spec.origin)
            return original(spec)

        for name in ("__module__", "__qualname__", "__doc__"):
            setattr(module_from_spec, name, getattr(original, name))
        _bootstrap.module_from_spec = module_from_spec

    def _show(self, number, spec):
        """Whether the module, and what it imported, stands in sys.modules now."""
        table = self.table
        node = table.nodes[number]
        if self._strange or not node.matches(spec, self._trusted) or self._is_kept_away():
            table.forget(number)
            return False
        done = []
        lists = [(items, list(items)) for items in watched_lists()]
        then, self._settled = self._lists, self._is_settled()
        self._alone = self._settled and not _threads()
        self._untouched = _environ == _environ_at_start
        self._answers.clear()
        self._seen = bytearray(len(table.states))
        node.spec._initializing = True  # others that import it wait, as while a module executes
        self._begin(number)
        try:
            self._replay(number, done)
            self._do_again(number)
        except Exception:
            _modules.pop(node.name, None)
            self._take_back(done, lists)
            self._lists = then
            table.forget(number)
            return False
        _tell_of_filters(lists)
        self._finish(number, done)
        return True

    def _is_kept_away(self):
        """Whether a module that was there before all warming must not be imported now, as by who
        wants the part in Python of one that has another in C. No import of it was noted."""
        return any(_modules.get(name, MISSING) is None for name in self._base)

    def _take_back(self, done, lists):
        for kind, what in reversed(done):
            if kind == EXTRA:
                _modules.pop(what, None)
            elif kind == DEP:
                number, package, child, before = what
                self.table.states[number] = STORED
                _modules.pop(self.table.names[number], None)
                if package is not None:
                    give_back(package, child, before)
            elif kind == GIVEN:
                give_back(*what)
        for items, then in lists:
            if items != then:
                items[:] = then

    def _begin(self, number):
        table = self.table
        table.states[number] = SHOWING
        if not self._alone:
            table.take_out(number)
        _modules[table.names[number]] = table.modules[number]

    def _replay(self, number, done):
        """Make the searches of an execution; fill sys.modules and the lists."""
        seen, others = self._seen, self.table.others
        for code in self.table.done_by(number):
            kind, what = code & KINDS, code >> KIND_BITS
            if kind == DEP:
                if not seen[what]:
                    self._request(what, done)
                continue
            if kind == READ and self._untouched:
                continue
            what = others[what]
            if kind == ABSENT:
                if is_otherwise(what):
                    raise _Otherwise(what)
                if what in _modules or self._is_as_then(what):
                    continue
                if self._search(what) is not None:
                    raise _Otherwise(what)
            elif kind == FOUND:
                name, origin = what
                if is_otherwise(name, origin):
                    raise _Otherwise(name)
                if self._is_as_then(name):
                    continue
                spec = self._search(name)
                if spec is None or spec.origin != origin:
                    raise _Otherwise(name)
            elif kind == LIST:
                which, change = what
                apply_change(change, watched_lists()[which])
                self._answers.clear()
                if self._settled:
                    self._lists = [list(items) for items in watched_lists()[:3]]
            elif kind == EXTRA:
                if what not in _modules:
                    _modules[what] = self._extras[what]
                    done.append((EXTRA, what))
                elif not what.startswith(_SHARED):
                    raise _Otherwise(what)
            elif kind == GIVEN:
                self._give(what, done)
            elif kind == WARNED:
                is_shown = is_shown_here(what)
                if is_shown is None:
                    raise _Otherwise(what)
                done += [(kind, what)] if is_shown else []
            elif kind == NAME:
                if what not in _modules:
                    raise _Otherwise(what)
            elif kind in (READ, READ_SET, READ_ALL):
                if not variables_are(kind, what, done):
                    raise _Otherwise(what)
            elif kind == SEEN:
                if not is_as_then(what, done):
                    raise _Otherwise(what)
            elif kind == ASKED:
                if not answers_alike(what):
                    raise _Otherwise(what)
            else:
                if kind == ATTRIBUTE and hasattr(sys, what[0]):
                    raise _Otherwise(what)
                if kind in (LOGGER, ROOT) and not may_come(kind, what, done):
                    raise _Otherwise(what)
                if kind == PART and part_now(done, *what[:2]) is not what[2]:
                    if is_made_by_the_first(*what[:2]):
                        continue
                    raise _Otherwise(what)
                done.append((kind, what))

    def _give(self, what, done):
        name, attribute, value, before, names = what
        held = _modules.get(name)
        if getattr(held, "__dict__", None) is not names:
            raise _Otherwise(name)
        if before is not MISSING and names.get(attribute, MISSING) is not before:
            raise _Otherwise(name)
        done.append((GIVEN, (held, attribute, held.__dict__.get(attribute, MISSING))))
        held.__dict__[attribute] = value

    def _request(self, number, done):
        table = self.table
        name = table.names[number]
        held = _modules.get(name, MISSING)
        if held is not MISSING:
            if not table.failed[number] and not table.is_module(number, held):
                raise _Otherwise(name)
            self._seen[number] = self._alone
            return
        package = table.packages[number]
        if package >= 0:
            self._request(package, done)
            if name in _modules:
                self._request(number, done)
                return
        elif package == NOT_HERE and name.rpartition(".")[0] not in _modules:
            raise _Otherwise(name)
        if table.states[number] != STORED:
            raise _Otherwise(name)
        if self._alone:
            self._appear(number, done)
            return
        with _bootstrap._ModuleLockManager(name):
            if name not in _modules:
                self._appear(number, done)
                return
        self._request(number, done)  # another thread has imported it meanwhile

    def _appear(self, number, done):
        """What importlib does for a module that is imported within another's execution."""
        table = self.table
        name = table.names[number]
        if not self._is_as_then(name, table.packages[number]):
            spec = self._search(name)
            if spec is None or not table.nodes[number].matches(spec, self._trusted):
                raise _Otherwise(name)
        if table.failed[number]:
            _modules[name] = None  # what it imports may ask for it
            try:
                self._replay(number, done)
            finally:
                del _modules[name]
            return
        sys.audit("import", name, None, sys.path, sys.meta_path, sys.path_hooks)
        stored = None if self._alone else table.nodes[number].spec
        if stored is not None:
            stored._initializing = True
        self._begin(number)
        try:
            self._replay(number, done)
            _modules[name] = _modules.pop(name)
            self._do_again(number)
        finally:
            if stored is not None:
                stored._initializing = False
            done.append((DEP, (number, *self._bind(number))))

    def _is_settled(self):
        """Whether finders, sys.path and what they look at are as when the template warmed."""
        if not Settings.interposed or _bootstrap._find_spec is not self._search_of_then:
            return False
        finders = sys.path_importer_cache.values()
        if any(finder is not None and type(finder) not in _FINDERS for finder in finders):
            return False
        now = [list(items) for items in watched_lists()[:3]]
        touched = touched_folders()
        if touched is None:
            return False
        self._touched, self._unseen = touched
        elsewhere = self.table.elsewhere
        if elsewhere and (self._unseen or self._touched & elsewhere):
            return False
        return now == self._lists

    def _is_as_then(self, name, package=NOT_HERE):
        """Whether a search for `name` would be answered by tables alone, as it was then. What it
        leaves in sys.path_importer_cache is left."""
        if not self._settled:
            return False
        if package == NOT_HERE:
            above = name.rpartition(".")[0]
            package = self.table.index.get(above, NOT_HERE) if above else TOP
        answer = self._answers.get(package)
        if answer is None:
            answer = self._tables_answer(name, package)
            if package != NOT_HERE:
                self._answers[package] = answer
        return answer

    def _tables_answer(self, name, package):
        cache, tables = sys.path_importer_cache, Settings.tables
        if package >= 0 and self.table.states[package] == SHOWING:
            path = self.table.paths[package]  # nobody can have changed it yet
            if path is None:
                return False
        else:
            above = name.rpartition(".")[0]
            path = getattr(_modules.get(above), "__path__", None) if above else sys.path
            if type(path) is not list:
                return False
            if not all(entry in tables or cache.get(entry, MISSING) is None for entry in path):
                return False
        for entry in path:
            if entry not in cache:
                _PathFinder._path_importer_cache(entry)
        if not self._touched and not self._unseen:
            return True
        return not any(map(self._is_touched, map(cache.get, path)))

    def _is_touched(self, finder):
        """Whether what it would find in its folder may have changed."""
        if finder is None:
            return False
        if type(finder) is not Finder:
            return True
        folder, lasts = folder_of(finder)
        return folder in self._touched or (self._unseen and not lasts)

    @staticmethod
    def _search(name):
        parent = name.rpartition(".")[0]
        return _bootstrap._find_spec(name, _modules[parent].__path__ if parent else None)

    def _finish(self, number, done):
        """All will be shown: the rest of what the executions did."""
        self.table.shown(number)
        for kind, what in done:
            if kind == DEP:
                self.table.shown(what[0])
            else:
                carry_out(kind, what)

    def _do_again(self, number):
        for action in self.table.again.get(number, ()):
            action(self.table.modules[number])

    def _bind(self, number):
        """Give its package the module. (package or None, name in it, what it had before)."""
        table = self.table
        child = table.children[number]
        if child is None or table.within[number] or table.packages[number] == TOP:
            return None, "", None
        package = _modules[table.names[number].rpartition(".")[0]]
        before = package.__dict__.get(child, MISSING)
        try:
            if type(package) is _Module:
                package.__dict__[child] = table.modules[number]
            else:
                setattr(package, child, table.modules[number])
        except AttributeError:
            return None, "", None  # importlib warned of it when the template warmed
        return package, child, before
