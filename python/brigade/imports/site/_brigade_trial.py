"""What modules do while they are imported: the trial's part in Python for `brigade run --fork`.

A module that is executed is on a stack, whose top the preloaded library is told (`importing`, see
src/view/record.h): what the process then does is that module's doing. Records, besides those of
_brigade_record.py (docs/design/0023-fork.md):

    imported   order    a module's execution begins; by: the one that asked, itself being executed
    imported   0        a module that is there already is asked for in the execution of another, or
                        the class of its loader lies in it, or a module without a spec of which
                        it has classes
    executed   order    that execution has ended; extra: `failed` if it raised
    event      0        `getenv`, `environ`: reads of os.environ, which the libc does not see;
                        `setenv`: writes, so that it is known whose work a changed value is;
                        `called`: see _brigade_calls.py; `imports`: a part of the import system
                        is another than before; `generator`: see _brigade_generators.py;
                        `mask`: other signals are blocked; `dlopen`: it is a library, and the
                        program has set how those are loaded;
                        `loader`: its loader's class is one of the program itself; `script`: the
                        file that `-m MODULE` means; `arguments`, `variable`: what tells those of
                        the program, and one that os.environ is asked for, from others; `asks`: in
                        which line of the program, or of a module of its own, and of which file an
                        import stands

What must stay true: the program imports and reads what it would have; what stands in for a part of
the interpreter adds no frame to a traceback that Python does not take out again.
"""

import sys

from _brigade_calls import Calls
from _brigade_common import ReadDict, borrow, is_own, words
from _brigade_generators import SHARED, Generators
from _brigade_nodes import warning_filters
from _brigade_otherwise import digest, digest_of_value
from _brigade_parts import Parts, for_no_import, in_words
from _brigade_warned import SHOWN, is_shown, watch
from _brigade_warned import is_own as is_own_warning

_bootstrap = sys.modules["_frozen_importlib"]
_modules = sys.modules
_SETTLES = -2  # a clock that nobody else asks by this number: src/view/hooks_watch.c
_NO_LINE = 1 << 30
_MOST_PLACES = 500  # characters
#: Who asks about the terminal where nothing is kept of the answer: nobody's own doing.
ARGUMENT_ADDED = "argparse.add_argument()"
_ExtensionFileLoader = sys.modules["_frozen_importlib_external"].ExtensionFileLoader
_IMPORTLIB_S = ("_frozen_importlib", "_frozen_importlib_external")


class _State:
    write = None
    thread = None
    main_thread = None
    settle = None
    calls = None
    parts = None
    generators = None
    moved = ()  # how often each of them was, by the last look
    blocked = None  # () -> which signals are
    mask = None  # by the last look
    flags = flags_of_then = 0  # of dlopen, when the program imported last, and at the start
    order = 0
    of_load = None  # the code of what executes a module
    filters = ()  # of warnings, at the start
    warns = 0  # how many modules were being executed when a warning was shown
    stacks = {}  # thread: names of modules that it is executing
    own = {""}  # the program, and modules of its own
    said = set()  # what has been recorded


def _stack():
    return _State.stacks.get(_State.thread(), ())


def _asker():
    stack = _stack()
    return stack[-1] if stack else ""


def _tell():
    """Say which module does what happens from now on. While threads import side by side nobody can
    tell: it counts as the program's doing."""
    stacks = [stack for stack in list(_State.stacks.values()) if stack]
    name = stacks[0][-1] if len(stacks) == 1 else ""
    if name and _State.warns == len(stacks[0]):
        name = SHOWN
    _State.settle()
    _State.write(("importing", "0", "", name, ""))


def _tell_of_terminal(begins):
    if begins:
        _State.settle()
        _State.write(("importing", "0", "", ARGUMENT_ADDED, ""))
    else:
        _tell()


def _once(*record):
    if record not in _State.said:
        _State.said.add(record)
        _State.write(record)


def _watch_executions(load_unlocked):
    def _load_unlocked(spec):
        name, by = words(getattr(spec, "name", "")), _asker()
        stack = _State.stacks.setdefault(_State.thread(), [])
        _note_parts()
        if by in _State.own:
            _State.calls.pause(by)
            _State.write(("event", "0", by, "asks", _place(by)))
            _State.flags = sys.getdlopenflags()
        _note_generators()
        _note_mask()
        _State.order += 1
        order = str(_State.order)
        origin = words(getattr(spec, "origin", None))
        own = is_own(getattr(spec, "origin", None))
        _State.write(("imported", order, by, name, origin))
        _note_loader(name, getattr(spec, "loader", None))
        _note_flags(name, getattr(spec, "loader", None))
        stack.append(name)
        _tell()
        if own:
            _State.own.add(name)
            _State.calls.go_on(name)
        ended = "failed"
        try:
            module = load_unlocked(spec)
            ended = ""
            return module
        finally:
            if own:
                _State.calls.pause(name)
            _note_parts()
            _note_without_spec(name)
            _note_generators()
            _note_mask()
            stack.pop()
            if not stack:
                _State.stacks.pop(_State.thread(), None)
            if by in _State.own:
                _State.calls.go_on(by)
            _tell()
            _State.write(("executed", order, by, name, ended))
            if name == "warnings":
                watch(_show_warning)

    return _load_unlocked


def _place(by):
    """Where it imports: "LINE FUNCTION LINE ...:FILE", from the file's own statement inwards; line
    0 before a program begins. What is not in the file's own statements (a function that is called
    when Python ends) or in another thread is after all."""
    if _State.thread() != _State.main_thread:
        return f"{_NO_LINE}:"
    names = getattr(_modules.get(by or "__main__"), "__dict__", None)
    frame, place, inside = sys._getframe(2), "0:", ""
    while frame is not None:
        if frame.f_globals is names:
            name, line = frame.f_code.co_name, frame.f_lineno
            outer = line if name == "<module>" else _NO_LINE
            place = f"{outer}{inside}:{words(frame.f_code.co_filename)}"
            inside = f" {name} {line}{inside}"
            if len(inside) > _MOST_PLACES:
                inside = f" {name} {_NO_LINE}"
        frame = frame.f_back
    return place


def _note_parts():
    """What was changed of the import system since the last look is the work of who executes."""
    for holder, name, _before, _now in _State.parts.changes():
        if not for_no_import(holder, name):
            _once("event", "0", _asker(), "imports", in_words(holder, name))


def _note_generators():
    """What was drawn since the last look, or seeded, is the work of who executes. What the program
    does so between its imports, _brigade_calls.py sees."""
    before, _State.moved = _State.moved, _State.generators.look()
    for name, then, now in zip(SHARED, before, _State.moved):
        if then != now and _asker():
            _once("event", "0", _asker(), "generator", name)


def _note_mask():
    if _State.thread() == _State.main_thread:
        before, _State.mask = _State.mask, _State.blocked()
        if before != _State.mask:
            _once("event", "0", _asker(), "mask", "")


def _note_loader(name, loader):
    """Where the class of its loader is not there, or not in use yet, a module is another one."""
    kind = loader if isinstance(loader, type) else type(loader)
    home = words(kind.__module__)
    if loader is None or home in _IMPORTLIB_S:
        return
    if home == "__main__":
        _once("event", "0", name, "loader", kind.__name__)
    elif home != name:
        _once("imported", "0", name, home, "")


def _note_flags(name, loader):
    """Who loads its libraries with flags of its own does so in a template, too; but whoever the
    program, or a module of its own, has set them for would have those of Python's start."""
    if _State.flags != _State.flags_of_then and isinstance(loader, _ExtensionFileLoader):
        _once("event", "0", name, "dlopen", "")


def _place_of(value):
    """The module of a class; some of C's have none. Nothing is asked of what is no class, as
    isinstance() would: objects of PyTorch warn whoever does."""
    try:
        is_class = issubclass(type(value), type)
        return type.__dict__["__module__"].__get__(value) if is_class else None
    except Exception:
        return None


def _note_without_spec(name):
    """What code in C has put into sys.modules by itself has no spec mostly, and no search of it is
    seen; but its classes are, in who has them by its names. It is there if what it lies in is."""
    names = getattr(_modules.get(name), "__dict__", {})
    for value in list(names.values()) if type(names) is dict else ():
        place = _place_of(value)
        if type(place) is not str or place in ("__main__", name) or place not in _modules:
            continue
        home = place
        while home and getattr(_modules.get(home), "__spec__", None) is None:
            home = home.rpartition(".")[0]
        if home not in ("", name, place):
            _once("imported", "0", name, words(home), "")


def _show_warning(message, original):
    """What it takes to show a warning (lines of the source are looked up) is nobody's doing, if a
    template will see the same one and can keep it for its ranks: not if the program wants to see
    more than it was told at its start."""
    stack, frame = _stack(), sys._getframe(2)
    if stack and is_own_warning(message, stack, _State.of_load, frame):
        if is_shown(message, _State.filters, frame):
            _State.warns = len(stack)
    _tell()
    try:
        original(message)
    finally:
        _State.warns = 0
        _tell()


def _watch_names(handle_fromlist):
    """`from package import module` of one that is there is no search."""

    def _handle_fromlist(module, fromlist, import_, **options):
        result = handle_fromlist(module, fromlist, import_, **options)
        package = getattr(module, "__name__", "")
        for name in fromlist:
            if f"{package}.{name}" in _modules:
                _asked_again(f"{package}.{name}")
        return result

    return _handle_fromlist


def _watch_locks(enter):
    """importlib.import_module takes the lock of a module that is there, too."""

    def __enter__(lock):
        if lock._name in _modules:
            _asked_again(lock._name)
        return enter(lock)

    return __enter__


def _asked_again(name):
    by = _asker()
    if by and by != name:
        _once("imported", "0", by, words(name), "")


def _is_initializing(spec):
    """Asked of each module that is there when it is imported again."""
    _asked_again(spec.name)
    return spec.__dict__.get("_initializing", False)


def _set_initializing(spec, value):
    spec.__dict__["_initializing"] = value


class _Variables(ReadDict):
    """The dict behind os.environ; it knows what it was at the start."""

    def _read(self, key):
        now = dict.get(self, key)
        if isinstance(key, str):
            key = key.encode("utf-8", "surrogateescape")
        if isinstance(key, bytes):
            changed = "" if now == _started.get(key) else "!"
            name = key.decode("utf-8", "surrogateescape")
            if "\0" not in name:
                self._note("getenv", name + changed)
                self._note_value(name, key)

    def _note_value(self, name, key):
        """What it was at the start."""
        if "=" not in name:
            self._note("variable", f"{name}={digest_of_value(_started.get(key))}")

    def _read_all(self):
        changed = "" if dict.__eq__(self, _started) else "!"
        self._note("environ", changed)

    def __setitem__(self, key, value):
        self._written(key)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key):
        self._written(key)
        dict.__delitem__(self, key)

    def _written(self, key):
        if isinstance(key, bytes) and key and b"\0" not in key:
            name = key.decode("utf-8", "surrogateescape")
            self._note("setenv", name)
            if not _asker():
                self._note_value(name, key)

    @staticmethod
    def _note(what, detail):
        _once("event", "0", _asker(), what, detail)


_started = {}


def _watch_environment(posix):
    """Put the watched dict in the place of the one that posix made, for `os` has it already."""
    variables = _Variables(posix.environ)
    _started.update(posix.environ)
    os = _modules.get("os")
    if os is not None and getattr(os.environ, "_data", None) is posix.environ:
        os.environ._data = variables
        posix.environ = variables


def start(write):
    """Begin to watch. `write(record, ...)` records."""
    _State.write = write
    _State.thread = borrow("_thread").get_ident
    _State.main_thread = _State.thread()
    clock = borrow("time").clock_gettime
    _State.settle = lambda: clock(_SETTLES)
    _bootstrap._load_unlocked = _watch_executions(_bootstrap._load_unlocked)
    _State.of_load = _bootstrap._load_unlocked.__code__
    _bootstrap._handle_fromlist = _watch_names(_bootstrap._handle_fromlist)
    locks = _bootstrap._ModuleLockManager
    locks.__enter__ = _watch_locks(locks.__enter__)
    _bootstrap.ModuleSpec._initializing = property(_is_initializing, _set_initializing)
    _watch_environment(_modules["posix"])
    _State.filters = list(warning_filters())
    watch(_show_warning)
    _State.parts = Parts()
    _State.generators = Generators()
    _State.moved = _State.generators.look()
    signal = borrow("_signal")
    _State.blocked = lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ())
    _State.mask = _State.blocked()
    _State.flags = _State.flags_of_then = sys.getdlopenflags()
    _State.calls = Calls(
        lambda who, what: _once("event", "0", who, "called", what),
        lambda path: _once("event", "0", "", "script", words(path)),
        _tell_of_terminal,
    )
    _State.calls.go_on("")
    write(("event", "0", "", "arguments", digest(sys.argv[1:])))
    _tell()
