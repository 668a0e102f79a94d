"""What a template watches while it warms: what executions leave behind outside their modules.

    Variables(data, ...)    in the place of the dict behind os.environ; notes reads and writes
    Watch().look()          how everything is now that may not change
    Watch().changes(a, b)   what one look has otherwise than the other, in words
    Watch().collect()       frees what nothing refers to
    Watch().freeze()        what is here now is as long-lived as the process

What must stay true: the rules of _brigade_view.py; looking changes nothing.
"""

import sys

from _brigade_common import ReadDict, borrow, is_one_of, working_folder
from _brigade_nodes import ENVIRON, READ, READ_ALL, READ_SET

_modules = sys.modules
_posix = sys.modules["posix"]
_SEEN = (
    "the recursion limit", "the switch interval", "the flags of dlopen", "the trace function",
    "the profile function", "the garbage collector", "the umask", "the working directory",
    "the locale", "output", "a descriptor that stays open", "signal handlers",
)  # fmt: skip
# Where an older pybind11 keeps what its modules share, as a newer one does in the interpreter:
# nobody else looks at it, and whichever of them comes first in a rank finds it there or makes it.
_PYBIND11 = "__pybind11_internals_"
_WATCHED = sys, sys.modules["builtins"]
_NAMESPACES = [module.__dict__ for module in _WATCHED]


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


class Watch:
    def __init__(self, ignored):
        self._gc = borrow("gc")
        self._signal = borrow("_signal")
        self._locale = borrow("_locale")
        self._ignored = ignored  # attributes of sys and builtins that warming itself changes
        self._memory = []

    def catch_output(self):
        """Output goes to memory from now on, where it is not to a terminal; nobody sees it."""
        for fd in (1, 2):
            try:
                if _posix.isatty(fd):
                    continue
                memory = _posix.memfd_create("brigade-output")
                self._memory.append((fd, _posix.dup(fd), memory))
                _posix.dup2(memory, fd)
            except OSError:
                pass  # closed: nothing can be written there

    def release_output(self):
        """Whether anything was written."""
        written = self._flush()
        for fd, original, memory in self._memory:
            _posix.dup2(original, fd)
            _posix.close(original)
            _posix.close(memory)
        self._memory = []
        return bool(written)

    def _flush(self):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        return sum([_posix.fstat(memory).st_size for _fd, _original, memory in self._memory])

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
            [get_handler(number) for number in range(1, self._signal.NSIG)],
            *[(list(names), list(map(id, names.values()))) for names in _NAMESPACES],
        ]

    @staticmethod
    def _descriptors():
        """All that are open, and one that is not: the listing's own."""
        own = _posix.open("/proc/self/fd", _posix.O_PATH | _posix.O_CLOEXEC)
        _posix.close(own)
        return own, _posix.listdir("/proc/self/fd")

    @staticmethod
    def had(look, what):
        """Whether `sys` had the attribute `what` ("sys.name") at that look."""
        return what in [f"sys.{name}" for name in look[len(_SEEN) + _WATCHED.index(sys)][0]]

    def changes(self, before, after):
        """What the look `after` has otherwise than `before`, in words."""
        if before == after:
            return []
        found = [what for what, old, new in zip(_SEEN, before, after) if old != new]
        for module, old, new in zip(_WATCHED, before[len(_SEEN) :], after[len(_SEEN) :]):
            old, new = dict(zip(*old)), dict(zip(*new))
            found += [
                f"{module.__name__}.{name}"
                for name in {**old, **new}
                if old.get(name) != new.get(name)
                and name not in self._ignored
                and not name.startswith(_PYBIND11)
            ]
        return found
