"""What a template watches while it warms: what executions leave behind outside their modules.

    watch_environ(limits, everything)   the Variables that take the place of the dict behind
                            os.environ, and note reads and writes; what makes it the plain one again
    Watch().look()          how everything is now that may not change
    Watch().changes(a, b)   what one look has otherwise than the other, in words
    Watch().collect()       frees what nothing refers to
    Watch().freeze()        what is here now is as long-lived as the process

What must stay true: the rules of _brigade_view.py; looking changes nothing.
"""

import sys

from _brigade_common import MISSING, ReadDict, borrow, is_one_of, working_folder
from _brigade_defaults import DEFAULTS, Defaults
from _brigade_generators import SHARED, Generators
from _brigade_nodes import ENVIRON, READ, READ_ALL, READ_SET

_modules = sys.modules
_posix = sys.modules["posix"]
_now = sys.modules["time"].monotonic
_Text = sys.modules["_io"].TextIOWrapper
_OF_GENERATORS = [f"the random numbers of {name}" for name in SHARED]
_SEEN = (
    "the recursion limit", "the switch interval", "the flags of dlopen", "the trace function",
    "the profile function", "the garbage collector", "the umask", "the working directory",
    "the locale", "output", "a descriptor that stays open", "signal handlers",
    "the standard streams",
    "the limits", "the priority", "the processors it may use", "the timers",
    *_OF_GENERATORS, *DEFAULTS,
)  # fmt: skip
# Where an older pybind11 keeps what its modules share, as a newer one does in the interpreter:
# nobody else looks at it, and whichever of them comes first in a rank finds it there or makes it.
_PYBIND11 = "__pybind11_internals_"
_PAGE_BYTES = 4096
_SECOND = 1.0
_HELD = range(960, 1024)  # descriptors of src/fork/held.h; others there, it refuses at last
_WATCHED = sys, sys.modules["builtins"]
_NAMESPACES = [module.__dict__ for module in _WATCHED]
_is_same = borrow("_operator").is_


class _Namespace:
    """The names of one, and their values: by identity, so that no value is asked what it equals."""

    __slots__ = "names", "values"

    def __init__(self, space):
        self.names, self.values = list(space), list(space.values())

    def is_still(self, space):
        """Whether `space` is as it was."""
        return self.names == list(space) and all(map(_is_same, self.values, space.values()))

    def as_dict(self):
        return dict(zip(self.names, self.values))


class Variables(ReadDict):
    """The environment while a template warms. Reads of what was written here are no reads of what
    the process was started with."""

    def __init__(self, data, limits, everything):
        dict.__init__(self, data)
        self.read = set()
        self.ops = []  # reads and writes, in order, as a Node has them
        self.own = set()
        self._limits = limits  # () -> patterns of what counts now of what is read; None: all
        self._everything = everything  # called when all of it is read, and all counts

    def _read(self, key):
        limits = self._limits()
        if limits is None or is_one_of(key, limits):
            kind = READ_SET if key in self.own else READ
            self.ops.append((kind, (key, dict.get(self, key))))
            if kind == READ:
                self.read.add(key)

    def _read_all(self):
        limits = self._limits()
        if limits is None:
            self._everything()
        else:
            found = {key: dict.get(self, key) for key in dict.keys(self) if is_one_of(key, limits)}
            self.ops.append((READ_ALL, (limits, found)))

    def __setitem__(self, key, value):
        self.own.add(key)
        self.ops.append((ENVIRON, (key, value)))
        dict.__setitem__(self, key, value)

    def __delitem__(self, key):
        ReadDict.__delitem__(self, key)
        self.own.add(key)
        self.ops.append((ENVIRON, (key, None)))


def watch_environ(limits, everything):
    os, plain = _modules["os"], _posix.environ
    variables = Variables(plain, limits, everything)

    def put(data):
        os.environ._data = os.environb._data = _posix.environ = data

    put(variables)
    return variables, lambda: put(plain)


def _ways(stream):
    """What may be reconfigured of a stream of Python's, and told afterwards."""
    if type(stream) is not _Text:
        return None
    return stream.line_buffering, stream.write_through, stream.encoding, stream.errors


class Watch:
    def __init__(self, ignored):
        self._gc = borrow("gc")
        self._signal = borrow("_signal")
        self._locale = borrow("_locale")
        self._ignored = ignored  # attributes of sys and builtins that warming itself changes
        self._generators, self._defaults = Generators(), Defaults()
        self._caught, self._memory = [], -1  # (descriptor, where it went); where it goes
        self._listing = self._limits = -1  # of what is open; what the process is allowed
        self._alarm = 0.0
        self._opened = None, None  # what was counted, and what that was taken for
        self._held = [_Namespace(space) for space in _NAMESPACES]
        self._numbers = range(1, self._signal.NSIG)  # of signals

    def catch_output(self):
        """Output goes to memory from now on, where it is not to a terminal; nobody sees it."""
        for fd in (1, 2):
            try:
                if _posix.isatty(fd):
                    continue
                original = _posix.dup(fd)
                if self._memory < 0:
                    self._memory = _posix.memfd_create("brigade-output")
                self._caught.append((fd, original))
                _posix.dup2(self._memory, fd)
            except OSError:
                pass  # closed: nothing can be written there
        self._listing = _posix.open("/proc/self/fd", _posix.O_PATH | _posix.O_CLOEXEC)
        self._limits = _posix.open("/proc/self/limits", _posix.O_RDONLY | _posix.O_CLOEXEC)
        self._generators.open()

    def release_output(self):
        """Whether anything was written."""
        written = self._flush()
        for fd, original in self._caught:
            _posix.dup2(original, fd)
            _posix.close(original)
        for fd in (self._memory, self._listing, self._limits):
            if fd >= 0:
                _posix.close(fd)
        self._caught, self._memory, self._listing, self._limits = [], -1, -1, -1
        self._generators.close()
        return bool(written)

    def _flush(self):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        return _posix.fstat(self._memory).st_size if self._memory >= 0 else 0

    def collect(self):
        """All that was set aside, too."""
        self._gc.unfreeze()
        self._gc.collect()

    def freeze(self):
        """Have no collection visit what is here. While a template warms, it makes nothing but
        objects that stay; in a rank, to visit is to write, and a page that is written is shared no
        longer."""
        self._gc.freeze()

    def look(self):
        """In the order of _SEEN, and then the names in each of `_NAMESPACES`. This is done twice a
        module: cheap to make, and cheap to compare if nothing has changed."""
        gc, get_handler = self._gc, self._signal.getsignal
        mask = _posix.umask(0o77)
        _posix.umask(mask)
        return [
            sys.getrecursionlimit(),
            sys.getswitchinterval(),
            sys.getdlopenflags(),
            sys.gettrace(),
            sys.getprofile(),
            (gc.isenabled(), gc.get_threshold(), gc.get_debug(), id(gc.callbacks)),
            mask,
            working_folder(),
            self._locale.setlocale(self._locale.LC_ALL, None),
            self._flush(),
            self._descriptors(),
            list(map(get_handler, self._numbers)),
            [_ways(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)],
            _posix.pread(self._limits, _PAGE_BYTES, 0),
            _posix.getpriority(_posix.PRIO_PROCESS, 0),
            _posix.sched_getaffinity(0),
            self._timers(),
            *self._generators.look(),
            *self._defaults.look(),
            *self._names(),
        ]

    def _timers(self):
        """When the alarm comes, by the clock, and what else is set: at first only the alarm that
        ends a template which takes too long."""
        get = self._signal.getitimer
        left = get(self._signal.ITIMER_REAL)[0]
        alarm = left and _now() + left
        if abs(alarm - self._alarm) > _SECOND:
            self._alarm = alarm
        others = self._signal.ITIMER_VIRTUAL, self._signal.ITIMER_PROF
        return self._alarm, [any(get(which)) for which in others]

    def _names(self):
        """Of each of `_NAMESPACES`; the same object as at the last look if nothing has changed."""
        for number, space in enumerate(_NAMESPACES):
            if not self._held[number].is_still(space):
                self._held[number] = _Namespace(space)
        return self._held

    def _descriptors(self):
        """How many are open, and the first number that is not. A kernel that does not count them
        (before 6.2) has to list them. What libraries hold of their own files does not count."""
        free = _posix.dup(self._listing)
        _posix.close(free)
        count = _posix.fstat(self._listing).st_size
        if not count or (free, count) != self._opened[0]:
            numbers = [fd for fd in _posix.listdir("/proc/self/fd") if int(fd) not in _HELD]
            self._opened = (free, count), (free, numbers if count == 0 else len(numbers))
        return self._opened[1]

    @staticmethod
    def had(look, what):
        """Whether `sys` had the attribute `what` ("sys.name") at that look."""
        return what in [f"sys.{name}" for name in look[len(_SEEN) + _WATCHED.index(sys)].names]

    def forgives(self, what, draws, before):
        """Whether these are numbers of one of the generators `draws`. Then they count for nobody:
        to whoever is executed around it all is as it was at the look `before`."""
        number = _OF_GENERATORS.index(what) if what in _OF_GENERATORS else -1
        if number < 0 or SHARED[number] not in draws:
            return False
        self._generators.forget(number, before[_SEEN.index(what)])
        return True

    def changes(self, before, after):
        """What the look `after` has otherwise than `before`, in words."""
        if before == after:
            return []
        found = [what for what, old, new in zip(_SEEN, before, after) if old != new]
        for module, old, new in zip(_WATCHED, before[len(_SEEN) :], after[len(_SEEN) :]):
            old, new = old.as_dict(), new.as_dict()
            found += [
                f"{module.__name__}.{name}"
                for name in {**old, **new}
                if old.get(name, MISSING) is not new.get(name, MISSING)
                and name not in self._ignored
                and not name.startswith(_PYBIND11)
            ]
        return found
