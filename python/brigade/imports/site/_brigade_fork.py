"""A template: the process of a node that imports once, and is forked for each rank.

    start(environ, folder, restore)   returns only in a rank, in which Python goes on as it would
                                      have; in the template it serves until the library ends it

Beside it stand _brigade_warm.py (imports what the plan names), _brigade_show.py (lets a rank see a
module when it imports it), _brigade_again.py (what a rank does anew), _brigade_streams.py (its
environment and streams) and _brigade_channel.py (speaks with the preloaded library).
docs/design/0023-fork.md has the whole.

What must stay true: the rules of _brigade_view.py. A template never runs the program. Where
anything is in doubt it refuses, and ranks start in the ordinary way. An import that did what the
plan does not know makes the whole process doubtful: what is loaded cannot be unloaded. It starts
itself again without that module, once.
"""

import sys

from _brigade_again import ACTIONS
from _brigade_channel import Channel
from _brigade_loaders import Source
from _brigade_show import Store
from _brigade_state import Settings, _Tally
from _brigade_streams import Streams, differs, parse
from _brigade_view import start as start_view
from _brigade_warm import Warmer

_posix = sys.modules["posix"]
_loads = sys.modules["marshal"].loads
_now_ns = sys.modules["time"].monotonic_ns
_VERSION = 1
_LEFT = b"BRIGADE_FORK_LEFT"  # what a first try found: name NUL why NUL ..., hexadecimal


def start(environ, folder, restore):
    channel = Channel()
    try:
        start_view(environ, folder)
        template = _Template(environ, folder, restore)
        template.warm()
    except BaseException as error:
        why = f"the template failed: {type(error).__name__}: {error}"
        channel.report(_json({"refused": why}))
        _refuse_all(channel, why)
    channel.report(_json(template.report))
    template.serve(channel)


def _refuse_all(channel, why):
    while True:
        _await(channel)
        channel.refuse(why)


def _await(channel):
    try:
        return channel.wait()
    except OSError:
        _posix._exit(125)  # nobody to serve; and it must not become a rank


class _Template:
    def __init__(self, environ, folder, restore):
        self._environ = environ
        self._clean = dict(_posix.environ)
        self._restore = restore
        self._mark = folder.encode(sys.getfilesystemencoding(), "surrogateescape")
        self._read = set()
        self._refused = ""
        self._streams = Streams()
        self.report = {"warm": [], "left": {}, "refused": "", "seconds": ""}

    # warming ------------------------------------------------------------------------

    def warm(self):
        began = _now_ns()
        plan, self._refused = self._plan()
        if not self._refused:
            plan["left"].update(_found_before(self._environ))
            plan["warm"] = [entry for entry in plan["warm"] if entry[0] not in plan["left"]]
            self.report["left"] = dict(plan["left"])
            self._import(plan)
        self.report["refused"] = self._refused
        self.report["seconds"] = f"{(_now_ns() - began) / 1e9:.3f}"

    def _plan(self):
        """(plan, why there is none or it cannot be used)."""
        seeded = self._environ.get(b"PYTHONHASHSEED", b"random") not in (b"", b"random")
        if self._environ.get(b"BRIGADE_FORK_HASH") == b"refuse" and not seeded:
            return None, "ranks would share the seed of string hashing (PYTHONHASHSEED sets one)"
        if sys.flags.verbose or "importtime" in sys._xoptions:
            return None, "-v and -X importtime show each import as it happens"
        if b"PYTHONPROFILEIMPORTTIME" in self._environ:
            return None, "PYTHONPROFILEIMPORTTIME shows each import as it happens"
        try:
            fd = _posix.open(Settings.root + "/.brigade/fork/plan", _posix.O_RDONLY)
            try:
                plan = _loads(_posix.read(fd, _posix.fstat(fd).st_size))
            finally:
                _posix.close(fd)
        except (OSError, ValueError, EOFError, TypeError) as error:
            return None, f"the image has no plan: {error}"
        if not isinstance(plan, dict) or plan.get("version") != _VERSION:
            return None, "the image's plan is of another version"
        unknown = [action for _name, action in plan["again"] if action not in ACTIONS]
        if unknown:
            return None, f"the plan asks for {unknown[0]!r}, which is not known here"
        return plan, ""

    def _import(self, plan):
        warmer = Warmer(plan, (Source,) if Settings.interposed else ())
        warmer.run(_first_entry())
        if not warmer.problems:
            self._probe(warmer.problems)
        if warmer.problems:
            left = warmer.importers()
            self.report["left"].update(left)
            if _LEFT not in self._environ:
                _start_again(self._environ, left)
            name, why = next(iter(warmer.problems.items()))
            self._refused = f"{name}: {why}"
            return
        warmer.hide()
        self._read = set(warmer.variables.read)
        store = Store(warmer.nodes, warmer.extras, warmer.trusted, plan["again"])
        store.install()
        self.report["warm"] = [node.name for node in warmer.nodes.values() if not node.failed]

    @staticmethod
    def _probe(problems):
        """Fork once for nothing: libraries that know of it end their threads before, and one that
        stays is a thread that no rank would have."""
        os = sys.modules["os"]
        pid = os.fork()
        if not pid:
            _posix._exit(0)
        os.waitpid(pid, 0)
        threads = _posix.listdir("/proc/self/task")
        if len(threads) > 1:
            problems["threads"] = f"{len(threads) - 1} stay when the process is forked"

    # serving ------------------------------------------------------------------------

    def serve(self, channel):
        fork = sys.modules["os"].fork
        while True:
            raw = parse(_await(channel))
            environ = dict(raw)
            self._restore(environ, self._mark)
            why = self._refused
            if not why:
                name = differs(self._read, self._clean, environ)
                if name is not None:
                    why = f"variable {name.decode('utf-8', 'backslashreplace')} differs"
            if why:
                channel.refuse(why)
                continue
            pid = fork()
            if pid:
                channel.forked(pid)
                continue
            channel.child()
            self._become(raw, environ)
            return

    def _become(self, raw, environ):
        _posix.environ.clear()
        _posix.environ.update(environ)
        self._streams.renew()
        Settings.slot = int(raw.get(b"BRIGADE_SLOT") or 0)
        state = raw.get(b"BRIGADE_STATE", b"")
        Settings.state = state.decode(sys.getfilesystemencoding(), "surrogateescape")
        _Tally.hits = _Tally.written_ns = 0
        _Tally.startup_over = False


def _found_before(environ):
    """{module: why} of what a first try found."""
    words = bytes.fromhex(environ.get(_LEFT, b"").decode()).decode().split("\0")
    return dict(zip(words[::2], words[1::2]))


def _start_again(environ, left):
    """Execute this program again, as a template that leaves these modules, too."""
    text = "\0".join([word for name, why in left.items() for word in (name, why)])
    fd = _posix.open("/proc/self/cmdline", _posix.O_RDONLY)
    arguments = b""
    while True:
        part = _posix.read(fd, 1 << 16)
        if not part:
            break
        arguments += part
    environ = {**environ, _LEFT: text.encode("utf-8", "backslashreplace").hex().encode()}
    try:
        _posix.execve(sys.executable, arguments.split(b"\0")[:-1], environ)
    except OSError:
        pass  # then it refuses


def _first_entry():
    """What Python will put in front of sys.path for the main script, or None."""
    script = sys.argv[0] if sys.argv else ""
    if script in ("", "-", "-c", "-m"):
        if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
            return None
        return _posix.getcwd() if script == "-m" else ""
    path = sys.modules["os"].path
    held = dict(sys.path_importer_cache)
    try:
        for hook in sys.path_hooks:
            try:
                hook(path.abspath(script))
            except ImportError:
                continue
            return path.abspath(script)  # a folder or an archive with __main__ in it
    finally:
        sys.path_importer_cache.clear()
        sys.path_importer_cache.update(held)
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
        return None
    return path.dirname(path.realpath(script))


def _json(value):
    """JSON of the report; the json package is not the program's import."""
    if isinstance(value, str):
        return f'"{"".join([_json_character(c) for c in value])}"'
    if isinstance(value, dict):
        return "{" + ", ".join([f"{_json(k)}: {_json(v)}" for k, v in value.items()]) + "}"
    return "[" + ", ".join([_json(item) for item in value]) + "]"


def _json_character(char):
    if " " <= char <= "~" and char not in '"\\':
        return char
    coded = char.encode("utf-16-be", "surrogatepass")
    units = [coded[at : at + 2] for at in range(0, len(coded), 2)]
    return "".join([f"\\u{int.from_bytes(unit, 'big'):04x}" for unit in units])
