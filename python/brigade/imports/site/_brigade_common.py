"""What the trial's recorder and the template of ranks both need.

    borrow(name)     a module that is built into the interpreter
    words(value)     text that a record can hold
    json(value)      JSON; the json package is not the program's import
    read_whole(path) a file's bytes
    working_folder() its path, or None
    ReadDict         a dict that tells what is read of it
    USED_LATE        names of modules that programs set, and others look at when they use them; who
                     looks at import is found when a template warms (_brigade_hooks.py)
    MISSING          in the place of a value that is not there
    is_own(origin)   whether a module is the program's own; comes_with_python(origin)
    is_one_of(name, patterns)   whether a name is among those; `*` at the end: all that begin so

What must stay true: the rules of _brigade_view.py.
"""

import sys

_modules = sys.modules
_posix = sys.modules["posix"]
_READ = _posix.O_RDONLY | _posix.O_CLOEXEC
_PIECE_BYTES = 1 << 16
MISSING = object()
USED_LATE = {
    "sys": ("excepthook", "unraisablehook", "displayhook", "breakpointhook", "tracebacklimit",
            "dont_write_bytecode"),
    "threading": ("excepthook",),
}  # fmt: skip


def borrow(name):
    """A module that is built into the interpreter, left out of sys.modules if it was not there."""
    held = name in _modules
    module = __import__(name)
    if not held:
        del _modules[name]
    return module


def working_folder():
    """None: it is gone, or nobody may know where it is."""
    try:
        return _posix.getcwd()
    except OSError:
        return None


def words(value):
    return value if isinstance(value, str) and "\0" not in value else ""


def json(value):
    if isinstance(value, str):
        return f'"{"".join([_json_character(c) for c in value])}"'
    if isinstance(value, dict):
        return "{" + ", ".join([f"{json(k)}: {json(v)}" for k, v in value.items()]) + "}"
    return "[" + ", ".join([json(item) for item in value]) + "]"


def _json_character(char):
    if " " <= char <= "~" and char not in '"\\':
        return char
    coded = char.encode("utf-16-be", "surrogatepass")
    units = [coded[at : at + 2] for at in range(0, len(coded), 2)]
    return "".join([f"\\u{int.from_bytes(unit, 'big'):04x}" for unit in units])


def read_whole(path):
    """Also of files whose size nobody knows, as those of /proc."""
    fd = _posix.open(path, _READ)
    try:
        pieces = [_posix.read(fd, _PIECE_BYTES)]
        while pieces[-1]:
            pieces.append(_posix.read(fd, _PIECE_BYTES))
    finally:
        _posix.close(fd)
    return b"".join(pieces)


def is_one_of(name, patterns):
    for pattern in patterns:
        if name == pattern or (pattern.endswith(b"*") and name.startswith(pattern[:-1])):
            return True
    return False


class ReadDict(dict):
    """Tells what is read of it: `_read(key)`, and `_read_all()` where it may be anything."""

    def __getitem__(self, key):
        self._read(key)
        return dict.__getitem__(self, key)

    def __contains__(self, key):
        self._read(key)
        return dict.__contains__(self, key)

    def get(self, key, default=None):
        self._read(key)
        return dict.get(self, key, default)

    def pop(self, key, *default):
        self._read(key)
        return dict.pop(self, key, *default)

    def setdefault(self, key, default=None):
        self._read(key)
        return dict.setdefault(self, key, default)

    def __delitem__(self, key):
        self._read(key)
        dict.__delitem__(self, key)

    __hash__ = None


def _reads_all(name):
    method = getattr(dict, name)

    def read(self, *arguments):
        self._read_all()
        return method(self, *arguments)

    read.__name__ = name
    return read


for _name in ("__iter__", "__len__", "__eq__", "__ne__", "__repr__", "__reversed__", "__or__",
              "__ror__", "keys", "values", "items", "copy", "popitem"):  # fmt: skip
    if hasattr(dict, _name):  # `|` came with Python 3.9
        setattr(ReadDict, _name, _reads_all(_name))


def is_own(origin):
    """Whether a module that has this origin is the program's own: it comes neither with Python nor
    from site-packages. (Plans say so, too: brigade/fork/otherwise.py.)"""
    return (
        type(origin) is str
        and origin.endswith((".py", ".pyc"))
        and "/site-packages/" not in origin
        and "/dist-packages/" not in origin
        and not comes_with_python(origin)
    )


def comes_with_python(origin):
    library = getattr(sys.modules.get("os"), "__file__", "").rpartition("/")[0] + "/"
    return origin.startswith(library) and "/site-packages/" not in origin
