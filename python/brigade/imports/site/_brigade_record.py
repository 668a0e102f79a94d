"""The trial's observer of imports: every search of the import system becomes a record.

It stands around `importlib._bootstrap._find_spec`, through which each search of each import
passes, whatever finder answers. Records are those of the contract:

    interpreter   once a process   what decides how this interpreter searches, as JSON
    import        each search      who asked, the name, where it was found
    path-entry    each new one     a string that was searched, as in sys.path_importer_cache

They go to the preloaded library, if it records this process, as the path of a `readlink` that
never reaches the kernel (BRG_RECORD_MESSAGE in record.h). Without it they go to
`<host>.<pid>.<start_ns>.py.rec`, as the seven NUL-terminated strings of the contract (kind,
status, by, path, extra, time_ns, pid), each written at once and the file closed again.

What must stay true: the program imports what it would have imported; nothing is lost when the
process is killed, no descriptor is held, and a forked child's records are its own.
"""

import sys

from _brigade_common import borrow, json, words

_bootstrap = sys.modules["_frozen_importlib"]
_external = sys.modules["_frozen_importlib_external"]
_posix = sys.modules["posix"]
_modules = sys.modules
_watching = _modules.get("_brigade_trial")  # there for `brigade run --fork`


_monotonic_ns = borrow("time").monotonic_ns
_wall_ns = borrow("time").time_ns
_MACHINERY = ("importlib", "_frozen_importlib", "_frozen_importlib_external", __name__)
_COMPILED_AHEAD = (
    "sitecustomize",
    "_brigade_state",
    "_brigade_loaders",
    "_brigade_finders",
    "_brigade_view",
)
_COMPILED_AHEAD_TO_FORK = (
    *(
        "_brigade_common",
        "_brigade_channel",
        "_brigade_again",
        "_brigade_nodes",
        "_brigade_otherwise",
        "_brigade_given",
        "_brigade_parts",
        "_brigade_early",
        "_brigade_generators",
        "_brigade_defaults",
        "_brigade_watch",
    ),
    *(
        "_brigade_store",
        "_brigade_end",
        "_brigade_hooks",
        "_brigade_asked",
        "_brigade_loggers",
        "_brigade_main",
        "_brigade_names",
        "_brigade_warned",
        "_brigade_warm",
        "_brigade_renew",
        "_brigade_same",
        "_brigade_strange",
        "_brigade_show",
    ),
    *("_brigade_streams", "_brigade_fork"),
)
_MESSAGE = b"/.brigade/record/"
_FLAGS = _posix.O_WRONLY | _posix.O_CREAT | _posix.O_APPEND | _posix.O_CLOEXEC


class _Log:
    folder = ""
    pid = 0
    path = ""
    start_ns = 0
    known = set()  # path entries written so far


def _write(*records):
    """Record (kind, status, by, path, extra), each."""
    records = [record for record in records if not _hand_over(record)]
    if records:
        _append(records)


def _hand_over(record):
    """Give a record to the preloaded library. False if there is none, or it could not tell where
    a string ends."""
    text = "\x1f".join(record)
    if text.count("\x1f") >= len(record):
        return False
    try:
        _posix.readlink(_MESSAGE + text.encode("utf-8", "surrogateescape"))
    except OSError:
        return False
    return True


def _append(records):
    pid = _posix.getpid()
    if pid != _Log.pid:
        _Log.pid = pid
        host = _posix.uname().nodename
        _Log.path = f"{_Log.folder}/{host}.{pid}.{_wall_ns()}.py.rec"
    tail = f"\0{_monotonic_ns() - _Log.start_ns}\0{pid}\0"
    text = "".join(["\0".join(record) + tail for record in records])
    try:
        fd = _posix.open(_Log.path, _FLAGS, 0o600)
        try:
            _posix.write(fd, text.encode("utf-8", "surrogateescape"))
        finally:
            _posix.close(fd)
    except OSError:
        pass  # the trial's folder is gone or full: the program goes on


def _asker():
    """The module whose code asked for the import: the nearest frame outside importlib."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if name and name.partition(".")[0] not in _MACHINERY:
            return name
        frame = frame.f_back
    return ""


def _observe(find_spec):
    def _find_spec(name, path, target=None):
        spec = None
        try:
            spec = find_spec(name, path, target)
            return spec
        finally:
            status = "0" if spec is not None else "2"
            fresh = [entry for entry in sys.path_importer_cache if entry not in _Log.known]
            _Log.known.update(fresh)
            _write(
                *[("path-entry", "0", "", words(entry), "") for entry in fresh],
                (
                    "import",
                    status,
                    words(_asker()),
                    words(name),
                    words(getattr(spec, "origin", None)),
                ),
            )

    return _find_spec


def _compiled(folder, names):
    """The code of Brigade's own modules as this interpreter compiles it, as hexadecimal text."""
    dumps = _modules["marshal"].dumps
    codes = {}
    for name in names:
        with _external._io.open_code(f"{folder}/{name}.py") as file:
            source = file.read()
        codes[name] = dumps(
            compile(source, "<frozen importlib._bootstrap_external>", "exec", dont_inherit=True)
        ).hex()
    return codes


def _interpreter(environ, folder):
    names = _COMPILED_AHEAD
    if b"BRIGADE_RECORD_FORK" in environ:
        names += _COMPILED_AHEAD_TO_FORK
    return {
        "executable": sys.executable or "",
        "version": ".".join([str(n) for n in sys.version_info[:3]]),
        "cache_tag": sys.implementation.cache_tag,
        "magic": _external.MAGIC_NUMBER.hex(),
        "optimization": str(sys.flags.optimize or ""),
        "extension_suffixes": _external.EXTENSION_SUFFIXES,
        "check_hash_pycs": _modules["_imp"].check_hash_based_pycs,
        "path": [entry for entry in sys.path if isinstance(entry, str)],
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "view": _compiled(folder, names),
    }


def start(environ, folder):
    """Begin to record. `environ`: the environment before it was cleaned; `folder`: of this file."""
    _Log.folder = environ[b"BRIGADE_RECORD"].decode(sys.getfilesystemencoding(), "surrogateescape")
    _Log.start_ns = _monotonic_ns()
    _write(("interpreter", "0", "", sys.executable or "", json(_interpreter(environ, folder))))
    _bootstrap._find_spec = _observe(_bootstrap._find_spec)
    if _watching is not None:
        _watching.start(_write)
