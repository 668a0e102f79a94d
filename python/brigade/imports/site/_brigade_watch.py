"""What a template watches while it warms: what executions leave behind outside their modules.

    Variables(data)     stands in for the dict behind os.environ; notes what is read and written
    Watch().look()      {what: how it is now}, for what may not change
    Watch().freeze()    what is here now is as long-lived as the process
    changes(a, b)       what one look has otherwise than the other, in words

What must stay true: the rules of _brigade_view.py; looking changes nothing.
"""

import sys

from _brigade_common import ReadDict, borrow

_modules = sys.modules
_posix = sys.modules["posix"]
_MISSING = object()


class Variables(ReadDict):
    """The environment while a template warms. Reads of what was written here do not count."""

    def __init__(self, data, everything):
        dict.__init__(self, data)
        self.read = set()
        self.written = []  # (key, value or None), in order
        self.own = set()
        self._everything = everything  # called when all of it is read

    def _read(self, key):
        if key not in self.own:
            self.read.add(key)

    def _read_all(self):
        self._everything()

    def __setitem__(self, key, value):
        self.own.add(key)
        self.written.append((key, value))
        dict.__setitem__(self, key, value)

    def __delitem__(self, key):
        ReadDict.__delitem__(self, key)
        self.own.add(key)
        self.written.append((key, None))


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

    def freeze(self):
        """Have no collection of a rank visit what is here: to visit is to write, and a page that is
        written is shared no longer."""
        self._gc.collect()
        self._gc.freeze()

    def look(self):
        gc = self._gc
        seen = {
            "the recursion limit": sys.getrecursionlimit(),
            "the switch interval": sys.getswitchinterval(),
            "the flags of dlopen": sys.getdlopenflags(),
            "the trace function": sys.gettrace(),
            "the profile function": sys.getprofile(),
            "the garbage collector": (
                gc.isenabled(), gc.get_threshold(), gc.get_debug(), len(gc.callbacks)
            ),
        }  # fmt: skip
        for module in (sys, sys.modules["builtins"]):
            for name, value in module.__dict__.items():
                if name not in self._ignored:
                    seen[f"{module.__name__}.{name}"] = id(value)
        mask = _posix.umask(0o77)
        _posix.umask(mask)
        seen.update(
            {
                "the umask": mask,
                "the working directory": _posix.getcwd(),
                "the locale": self._locale.setlocale(self._locale.LC_ALL, None),
                "output": self._flush(),
                "a descriptor that stays open": self._descriptors(),
                "signal handlers": [
                    self._signal.getsignal(number) for number in range(1, self._signal.NSIG)
                ],
            }
        )
        return seen

    @staticmethod
    def _descriptors():
        held = []
        for name in _posix.listdir("/proc/self/fd"):
            try:
                _posix.fstat(int(name))
            except OSError:
                continue  # of the listing itself
            held.append(name)
        return sorted(held)


def changes(before, after):
    """What `after` has otherwise than `before`, in words."""
    return [
        what
        for what in {**before, **after}
        if before.get(what, _MISSING) != after.get(what, _MISSING)
    ]
