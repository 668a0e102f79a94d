"""What a rank has from its template and must have of its own: environment, standard streams.

    parse(block)            the environment as Python reads it at its start
    coerced(environ)        {name: (then, now)} of what Python's start has put into the environment
    differs(names, a, b)    the first variable that decides and is not the same, or None
    Streams().renew()       sys.stdin, stdout and stderr as Python would have made them

What must stay true: the rules of _brigade_view.py; streams, and their buffers, stay the same
objects: modules may hold them.
"""

import sys

from _brigade_common import read_whole

_posix = sys.modules["posix"]
_io = sys.modules["_io"]

# read by libc and by Python's start, which no dict of ours can see
_OF_THE_START = (b"PYTHON", b"LC_", b"LANG", b"MALLOC_", b"GLIBC_", b"LD_")
_OF_THE_START_EXACTLY = (b"HOME", b"PATH", b"TZ", b"TZDIR", b"LOCPATH", b"__PYVENV_LAUNCHER__")


def parse(block):
    """{name: value} of `name=value` entries, each with NUL behind it; the first of a name wins."""
    environ = {}
    for entry in block.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals:
            environ.setdefault(name, value)
    return environ


def coerced(environ):
    """Python sets LC_CTYPE at its start, for itself and its children, where the locale is C."""
    value = environ.get(b"LC_CTYPE")
    then = parse(read_whole("/proc/self/environ")).get(b"LC_CTYPE")
    return {} if then == value else {b"LC_CTYPE": (then, value)}


def differs(names, here, there):
    """The first variable of `names`, or that Python's start reads, that is not the same in both."""
    of_the_start = {
        name
        for name in {**here, **there}
        if name.startswith(_OF_THE_START) or name in _OF_THE_START_EXACTLY
    }
    for name in sorted(of_the_start.union(names)):
        if here.get(name) != there.get(name):
            return name
    return None


def _kind(fd):
    """What decides how Python opens a standard stream; None if it is closed."""
    try:
        status = _posix.fstat(fd)
    except OSError:
        return None
    try:
        _posix.lseek(fd, 0, 1)
        seekable = True
    except OSError:
        seekable = False
    return _posix.isatty(fd), status.st_mode & 0o170000, status.st_blksize, seekable


class Streams:
    _NAMES = ("stdin", "stdout", "stderr")

    def __init__(self):
        self._before = [_kind(fd) for fd in range(3)]
        self._shape = [self._parts(getattr(sys, name)) for name in self._NAMES]

    @staticmethod
    def _parts(text):
        """(text, buffer or None, raw) of a stream that Python made; None of any other."""
        if type(text) is not _io.TextIOWrapper:
            return None
        buffer = text.buffer
        if type(buffer) is _io.FileIO:
            return text, None, buffer
        if type(buffer) not in (_io.BufferedReader, _io.BufferedWriter):
            return None
        return (text, buffer, buffer.raw) if type(buffer.raw) is _io.FileIO else None

    def renew(self):
        for fd, name in enumerate(self._NAMES):
            kind, parts = _kind(fd), self._shape[fd]
            if kind is None:
                setattr(sys, name, None)
                setattr(sys, f"__{name}__", None)
            elif parts is None:
                if self._before[fd] is None:
                    self._open(fd, name)
            elif kind != self._before[fd] or kind[3]:
                self._again(fd, kind, *parts)

    @staticmethod
    def _again(fd, kind, text, buffer, raw):
        """Make the same objects anew: what they know of their file is of another one. Only the
        lowest is another object, for it never forgets whether it can seek."""
        encoding, errors, name = text.encoding, text.errors, raw.name
        through, mode = text.write_through, text.mode
        raw = _io.FileIO(fd, "rb" if fd == 0 else "wb", closefd=False)
        raw.name = name
        if buffer is not None:
            buffer.__init__(raw, kind[2] if kind[2] > 1 else _io.DEFAULT_BUFFER_SIZE)
        lines = buffer is not None and (kind[0] or (fd == 2 and sys.version_info >= (3, 9)))
        text.__init__(raw if buffer is None else buffer, encoding, errors, "\n", lines, through)
        text.mode = mode

    def _open(self, fd, name):
        """The template had none at this descriptor."""
        like = next((parts[0] for parts in self._shape if parts), None)
        encoding = like.encoding if like else sys.getfilesystemencoding()
        errors = "backslashreplace" if fd == 2 else like.errors if like and fd else "strict"
        mode = "r" if fd == 0 else "w"
        text = _io.open(fd, mode, encoding=encoding, errors=errors, newline="\n", closefd=False)
        text.buffer.raw.name = f"<{name}>"
        text.mode = mode
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)
