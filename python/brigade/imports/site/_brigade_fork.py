"""A template: the process of a node that imports once, and is forked for each rank.

    start(environ, folder, restore)   returns only in a rank, in which Python goes on as it would
                                      have; in the template it serves until the library ends it

Beside it stand _brigade_warm.py (imports what the plan names), _brigade_show.py (lets a rank see a
module when it imports it), _brigade_store.py (how what was imported lies in memory),
_brigade_again.py (what a rank does anew), _brigade_streams.py (its environment and streams),
_brigade_end.py (its end) and _brigade_channel.py (speaks with the preloaded library).
docs/design/0023-fork.md has the whole.

What must stay true: the rules of _brigade_view.py. A template never runs the program. Where
anything is in doubt it refuses, and ranks start in the ordinary way. An import that did what the
plan does not know makes the whole process doubtful: what is loaded cannot be unloaded. It starts
itself again without that module, once.
"""

import sys

from _brigade_again import ACTIONS, BEFORE_A_FORK
from _brigade_channel import REPORT_BYTES, Channel
from _brigade_common import is_one_of, json, read_whole, working_folder
from _brigade_early import RENEW, look
from _brigade_end import End
from _brigade_loaders import Source
from _brigade_nodes import warning_filters, with_importers
from _brigade_otherwise import left as left_otherwise
from _brigade_otherwise import with_followers
from _brigade_show import Store, rank_begins
from _brigade_state import Settings, _Tally
from _brigade_streams import Streams, coerced, differs, parse
from _brigade_view import start as start_view
from _brigade_warm import Warmer

_posix = sys.modules["posix"]
_loads = sys.modules["marshal"].loads
_now_ns = sys.modules["time"].monotonic_ns
_VERSION = 1
_BINDS = b"OMP_PROC_BIND", b"OMP_PLACES", b"GOMP_CPU_AFFINITY"
# {module: why}, coded as brigade/fork/pins.py has it: what a first try found; what the user wishes
# otherwise than the plan ("": it is warm)
_LEFT, _PINS = b"BRIGADE_FORK_LEFT", b"BRIGADE_FORK_PINS"


def start(environ, folder, restore):
    channel = Channel()
    template = _Template(environ, folder, restore, channel)
    try:
        start_view(environ, folder)
        template.warm()
    except BaseException as error:
        template.refused = f"the template failed: {type(error).__name__}: {error}"
    channel.report(template.report())
    template.serve()


class _Template:
    def __init__(self, environ, folder, restore, channel):
        self._channel = channel
        self._environ = environ
        self._clean = dict(_posix.environ)
        self._otherwise = channel.otherwise(self._clean)
        self._restore = restore
        self._mark = folder.encode(sys.getfilesystemencoding(), "surrogateescape")
        self._read = set()
        self._limits = []  # names of more variables that were read, wherever they exist
        self._coerced = coerced(self._clean)
        self._streams = Streams()
        self._place = working_folder(), _posix.umask(0o77)
        _posix.umask(self._place[1])
        self._renew = []  # modules that were there before the first of ours
        self._end, self._table = End(), None
        self._warm = 0
        self._threads = False  # whether some stay when it forks
        self._found = {}  # {module: why}: what this template or a first try of it found
        self._called = {}  # likewise: since the program is called otherwise than in the trial
        self._began_ns = _now_ns()
        self.refused = ""  # why no rank can be forked

    # warming ------------------------------------------------------------------------

    def warm(self):
        plan, self.refused = self._plan()
        if not self.refused:
            self._limits, self.refused = look()
        if self.refused:
            return
        self._renew = [name for name in RENEW if name in sys.modules]
        pins = _words(self._environ, _PINS)
        _pin(plan, pins)
        if plan.get("called"):
            warm = {module for module, why in pins.items() if not why}
            given = sys.argv[1:], self._clean, self._place[0]
            found = left_otherwise(plan["called"], *given, warm)
            self._called = {m: why for m, why in found.items() if m not in plan["left"]}
        plan["left"].update(self._called)
        self._found = _words(self._environ, _LEFT)
        if _binds_threads(self._clean):
            self._found.update(_with_openmp(plan))
        if plan.get("called"):
            self._found = with_followers(plan["called"], self._found)
        plan["left"].update(self._found)
        plan["warm"] = [entry for entry in plan["warm"] if entry[0] not in plan["left"]]
        warmer = Warmer(plan, (Source,) if Settings.interposed else ())
        warmer.run(_first_entry())
        self._found.update(warmer.absent)
        if warmer.problems:
            self._give_up(with_importers(warmer.nodes, warmer.problems))
            return
        for module, action in plan["again"]:
            if action in BEFORE_A_FORK and module in warmer.nodes:
                BEFORE_A_FORK[action](warmer.nodes[module].module)
        warmer.hide()
        self._read = set(warmer.variables.read)
        self._limits += [
            pattern.encode()
            for kind in ("environ", "library")  # of both, what fits counts, read or not
            for module, patterns in plan.get("names", {}).get(kind, ())
            if module in warmer.nodes
            for pattern in patterns
        ]
        self._warm = sum([not node.failed for node in warmer.nodes.values()])
        mine = (plan.get("called") or {}).get("mine")
        store, watch = Store(warmer, plan["again"], mine), warmer.watch
        self._table = store.table
        threads = {
            name
            for module, names in plan.get("names", {}).get("thread", ())
            if module in warmer.nodes
            for name in names
        }
        variables = dict(dict.items(warmer.variables))
        del warmer, plan
        watch.collect()
        store.install()
        watch.freeze()
        self._probe(threads)
        if not self.refused:
            self._look_at_the_rest(variables)

    def report(self):
        """As many of the modules that were left here as there is room for, first causes first."""
        words = {
            "warm": str(self._warm),
            "seconds": f"{(_now_ns() - self._began_ns) / 1e9:.3f}",
            "refused": self.refused[:100],
            "left": {},
        }
        for name, why in {**self._called, **self._found}.items():
            words["left"][name] = why[:100]
            if len(json(words)) >= REPORT_BYTES:
                del words["left"][name]
                break
        return json(words)

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
            plan = _loads(read_whole(Settings.root + "/.brigade/fork/plan"))
        except (OSError, ValueError, EOFError, TypeError) as error:
            return None, f"the image has no plan: {error}"
        if not isinstance(plan, dict) or plan.get("version") != _VERSION:
            return None, "the image's plan is of another version"
        unknown = [action for _name, action in plan["again"] if action not in ACTIONS]
        if unknown:
            return None, f"the plan asks for {unknown[0]!r}, which is not known here"
        return plan, ""

    def _probe(self, allowed):
        """Fork once for nothing: libraries that know of it end their threads before, and one that
        stays is a thread that no rank would have, unless a rule says that it needs none. Late,
        because all that is written to after a fork is a page fault."""
        self._threads = True  # as far as is known
        pid = self._fork()
        if not pid:
            _posix._exit(0)
        try:
            _posix.waitpid(pid, 0)
        except ChildProcessError:
            pass  # it has ended, and SIGCHLD is ignored
        main = str(_posix.getpid())
        stay = [self._name_of(task) for task in _posix.listdir("/proc/self/task") if task != main]
        self._threads = bool(stay)
        if not allowed.issuperset(stay):
            self._give_up({"threads": f"{len(stay)} stay when the process is forked"})

    def _look_at_the_rest(self, variables):
        """No other try would find out by which module it is. Of the variables, what os.environ says
        is a rank's when it imports the module; what C says otherwise would be nobody's."""
        own = self._channel.own()
        names, more = self._channel.otherwise(variables)
        if not own and (more != self._otherwise[1] or names - self._otherwise[0]):
            own = "variables were changed past os.environ"
        if own:
            self.refused, self._warm = f"while modules were imported, {own}", 0

    @staticmethod
    def _name_of(task):
        try:
            name = read_whole(f"/proc/self/task/{task}/comm")
        except OSError:
            return ""
        return name.decode("utf-8", "backslashreplace").rstrip("\n")

    def _give_up(self, problems):
        """This process is of no use: another try without these {module: why}, or no rank is
        forked."""
        self._found.update(problems)
        self._start_again()
        name, why = next(iter(problems.items()))
        self.refused, self._warm = f"{name} {why}", 0

    def _start_again(self):
        """Execute this program anew, as a template that leaves what was found; once."""
        if _LEFT in self._environ:
            return
        more = self._channel.again()
        if more is None:
            return
        text = "\0".join(["00" + word for pair in self._found.items() for word in pair])
        coded = text.encode("utf-8", "backslashreplace").hex().encode()
        environ = {**self._environ, **more, _LEFT: coded}
        arguments = read_whole("/proc/self/cmdline").split(b"\0")[:-1]
        try:
            if self._place[0]:
                _posix.chdir(self._place[0])
            _posix.umask(self._place[1])
            _posix.execve(sys.executable, arguments, environ)
        except OSError:
            pass  # then it refuses

    # serving ------------------------------------------------------------------------

    def serve(self):
        """Fork for each request; returns only in a rank."""
        channel, fork = self._channel, self._fork
        if self.refused:
            channel.refuse_all(self.refused)
        else:
            self._multiply()
        while True:
            raw = self._await()
            environ = dict(raw)
            self._restore(environ, self._mark)
            why = self.refused or self._differs(environ)
            if why:
                channel.refuse(why)
                continue
            try:
                pid = fork()
            except OSError:
                pid = -1
            if pid:
                channel.forked(pid)
                continue
            channel.child()
            self._become(raw, environ)
            channel.begin()
            return

    def _multiply(self):
        """Where many ranks will come, copies of this process serve beside it."""
        for _ in range(self._channel.twins()):
            try:
                if not self._fork():
                    self._channel.twin()
                    return
            except OSError:
                return
            self._channel.twin_forked()

    def _fork(self):
        """Python (3.12 and later) warns where other threads stay."""
        if not self._threads:
            return sys.modules["os"].fork()
        filters = warning_filters()
        filters.insert(0, ("ignore", None, DeprecationWarning, None, 0))
        try:
            return sys.modules["os"].fork()
        finally:
            del filters[0]

    def _differs(self, environ):
        """Why a rank with these variables cannot be forked here, or ""; adds what Python's start
        would have added."""
        for name, (then, now) in self._coerced.items():
            if environ.get(name) == then:
                environ[name] = now
            else:
                environ.pop(name, None)
        more = [name for name in {**self._clean, **environ} if is_one_of(name, self._limits)]
        name = differs(self._read.union(more), self._clean, environ)
        return (
            "" if name is None else f"variable {name.decode('utf-8', 'backslashreplace')} differs"
        )

    def _await(self):
        """The environment of the next request."""
        try:
            block = self._channel.wait()
        except OSError:
            _posix._exit(125)  # nobody to serve; and it must not become a rank
        if block is None:
            _posix._exit(0)
        return parse(block)

    def _become(self, raw, environ):
        _posix.environ.clear()
        _posix.environ.update(environ)
        for name, (_then, now) in self._coerced.items():
            _posix.putenv(name, now)
        rank_begins()
        self._end.begin(self._table)
        for name in self._renew:
            ACTIONS[RENEW[name]](sys.modules[name])
        self._streams.renew()
        Settings.slot = int(raw.get(b"BRIGADE_SLOT") or 0)
        state = raw.get(b"BRIGADE_STATE", b"")
        Settings.state = state.decode(sys.getfilesystemencoding(), "surrogateescape")
        _Tally.hits = _Tally.written_ns = 0
        _Tally.startup_over = False


def _words(environ, name):
    """The pairs of a variable, of which each word says how much is as in the pair before."""
    text = bytes.fromhex(environ.get(name, b"").decode()).decode()
    pairs, pair = {}, ["", ""]
    for at, word in enumerate(text.split("\0") if text else ()):
        pair[at % 2] = pair[at % 2][: int(word[:2], 16)] + word[2:]
        if at % 2:
            pairs[pair[0]] = pair[1]
    return pairs


def _pin(plan, pins):
    """Change the plan as the user wishes. "others" are what may be warm: (how many warm ones come
    before it, module, origin)."""
    warm, taken = plan["warm"], 0
    added = [entry for entry in plan.get("others", ()) if pins.get(entry[1]) == ""]
    plan["warm"] = []
    for count, name, origin in added:
        plan["warm"] += [*warm[taken:count], (name, origin)]
        taken = max(taken, count)
    plan["warm"] += warm[taken:]
    for name, why in pins.items():
        if why:
            plan["left"][name] = why
        else:
            plan["left"].pop(name, None)


def _binds_threads(environ):
    """Whether OpenMP is told to bind its threads: to some of the processors that the process may
    use which loads it, and no rank need use the same."""
    told = [environ.get(name, b"") for name in _BINDS]
    return any(told) and told[0].strip().lower() != b"false"


def _with_openmp(plan):
    """{module: why} of those with such a library, by what counts of the variables that it reads."""
    return {
        module: "brings OpenMP, which is told to bind its threads"
        for module, patterns in plan.get("names", {}).get("library", ())
        if is_one_of(_BINDS[-1], [pattern.encode() for pattern in patterns])
    }


def _first_entry():
    """What Python will put in front of sys.path for the main script, or None."""
    script = sys.argv[0] if sys.argv else ""
    if script in ("", "-", "-c", "-m"):
        if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
            return None
        return working_folder() if script == "-m" else ""
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
