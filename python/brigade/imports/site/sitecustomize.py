"""The first code of Brigade in a Python process: give the program its own environment back.

`brigade-rank` puts this folder first on PYTHONPATH, so that `site` imports this file in place of
the user's own `sitecustomize`. It
  1. takes the folder out of `sys.path` again, and Brigade's variables out of `os.environ`
     (the C environment keeps them: children started from it are ranks' children too);
  2. starts the import view, or in a trial the recorder; in a template (BRIGADE_FORK) it imports
     what ranks will need, and goes on only in each rank that is forked from it;
  3. imports the user's own `sitecustomize`, exactly as `site` would have done.

What must stay true: whatever goes wrong in 1 and 2, the program starts as without Brigade. No
module stays in `sys.modules` that the program did not import; only modules that every
interpreter holds in itself are used (no search, no file of the standard library is read). Any
Python reads this file, 2.7 as well: it says nothing there, and leaves imports alone.
"""


def _restore(environ, folder):
    """Edit os.environ's own dict: its methods would change the C environment as well.

    A variable that Brigade left alone must stay: each is recognised by what Brigade put in.
    """
    marks = (
        (b"PYTHONPATH", folder),
        (b"LD_AUDIT", b"libbrigade-"),
        (b"LD_PRELOAD", b"libbrigade-"),
        (b"GLIBC_TUNABLES", b"rtld.optional_static_tls="),
    )
    hidden = [
        b"BRIGADE_" + name
        for name in (b"STAGE", b"STATE", b"SLOT", b"ROOT", b"VIEW", b"RECORD", b"JOB")
        + (
            b"FORK",
            b"FORK_SOCKET",
            b"FORK_HASH",
            b"FORK_BEHIND",
            b"FORK_LEFT",
            b"FORK_SEEN",
            b"FORK_PINS",
            b"RECORD_FORK",
            b"SAVED_RECORD",
        )
    ]
    audited = b"libbrigade-" in environ.get(b"LD_AUDIT", b"")
    for name, mark in marks:
        saved = b"BRIGADE_SAVED_" + name
        hidden.append(saved)
        value = environ.get(name, b"")
        if mark not in value or name == b"GLIBC_TUNABLES" and not audited:
            continue
        if saved in environ:
            environ[name] = environ[saved]
        elif b":" not in value or name != b"GLIBC_TUNABLES":
            del environ[name]
    for name in hidden:
        environ.pop(name, None)


# Brigade's parts, in the order in which they need each other; the last one has start()
_RECORDER = ("_brigade_common", "_brigade_record")
_WATCHING_RECORDER = (
    "_brigade_common",
    "_brigade_parts",
    "_brigade_generators",
    "_brigade_calls",
    "_brigade_nodes",
    "_brigade_otherwise",
    "_brigade_warned",
    "_brigade_trial",
    "_brigade_record",
)
_VIEW = ("_brigade_state", "_brigade_loaders", "_brigade_finders", "_brigade_view")
_TEMPLATE = _VIEW + (
    "_brigade_common",
    "_brigade_channel",
    "_brigade_again",
    "_brigade_nodes",
    "_brigade_otherwise",
    "_brigade_parts",
    "_brigade_given",
    "_brigade_early",
    "_brigade_generators",
    "_brigade_defaults",
    "_brigade_watch",
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
    "_brigade_streams",
    "_brigade_fork",
)
_OLDEST = (3, 8)  # Python that the parts are written for; this file alone is read by any


def _code(posix, marshal, magic, tag, optimize, folder, name):
    """The code of `folder/name.py`, with the file name that importlib's own code has.

    Python leaves frames with that name out of the tracebacks of failed imports, which then read
    as they do without Brigade. Compiled code beside it is used when it is this interpreter's.
    """

    def read(path):
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            return posix.read(fd, posix.fstat(fd).st_size)
        finally:
            posix.close(fd)

    level = ".opt-" + str(optimize) if optimize else ""
    try:
        data = read("".join([folder, "/__pycache__/", name, ".", tag, level, ".pyc"]))
        # only code that Brigade itself compiled ahead (unchecked) is taken without a look
        if data[:8] == magic + b"\1\0\0\0":
            return marshal.loads(data[16:])
    except OSError:
        pass
    source = read("".join([folder, "/", name, ".py"]))
    return compile(source, "<frozen importlib._bootstrap_external>", "exec", dont_inherit=True)


def _load(sys, folder, names):
    """The start() of the last module in `names`; each may import those before it.

    They stand in sys.modules only meanwhile, and only there: no search can find them.
    """
    marshal = sys.modules["marshal"]
    magic = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
    tag, optimize = sys.implementation.cache_tag, sys.flags.optimize
    try:
        for name in names:
            module = type(sys)(name)
            code = _code(sys.modules["posix"], marshal, magic, tag, optimize, folder, name)
            sys.modules[name] = module
            exec(code, module.__dict__)
    finally:
        for name in names:
            sys.modules.pop(name, None)
    return module.start


def _start():
    import sys

    posix = sys.modules["posix"]
    folder = __file__.rpartition("/")[0]
    sys.path[:] = [p for p in sys.path if p != folder]
    sys.path_importer_cache.pop(folder, None)
    before = dict(posix.environ)
    mark = folder  # of Python 2
    if not isinstance(folder, bytes):
        mark = folder.encode(sys.getfilesystemencoding(), "surrogateescape")
    _restore(posix.environ, mark)
    more = ()
    if _is_away(posix, before):
        return
    if b"BRIGADE_RECORD" in before:
        names = _WATCHING_RECORDER if b"BRIGADE_RECORD_FORK" in before else _RECORDER
    elif _is_template(posix, before):
        names, more = _TEMPLATE, (_restore,)
    elif b"BRIGADE_STAGE" in before and b"python" in before.get(b"BRIGADE_VIEW", b"").split(b","):
        names = _VIEW
    else:
        return
    if sys.version_info < _OLDEST:
        if more:  # a template must not run the program
            posix._exit(125)
        return
    try:
        _load(sys, folder, names)(before, folder, *more)
    except Exception as problem:
        what = ": ".join([type(problem).__name__, str(problem)])
        sys.stderr.write("brigade: the import view is off in this process: " + what + "\n")
        if more or before.get(b"BRIGADE_STRICT") == b"1":
            posix._exit(125)


def _is_away(posix, environ):
    """Whether this process, in a container, sees other files than were staged (src/base/root.h)."""
    words = environ.get(b"BRIGADE_ROOT")
    if words is None:
        return False
    try:
        mounts, top = posix.stat("/proc/self/ns/mnt"), posix.stat("/proc/self/root")
    except OSError:
        return True
    return words != b"%d.%d.%d" % (mounts.st_ino, top.st_dev, top.st_ino)


def _is_template(posix, environ):
    """Whether this very process is to be one; a child of a template only has its variables."""
    words = environ.get(b"BRIGADE_FORK_SOCKET", b":%d" % posix.getpid()).split(b":")
    return environ.get(b"BRIGADE_FORK") == b"python" and words[1] == b"%d" % posix.getpid()


def _chain():
    """Import the next sitecustomize, or fail as the import of a missing one fails."""
    import sys

    bootstrap = sys.modules.get("_frozen_importlib")
    sys.modules.pop("sitecustomize", None)
    if bootstrap is None or sys.version_info < (3, 6):  # whose import waits for no other
        __import__("sitecustomize")
        return
    spec = bootstrap._find_spec("sitecustomize", None)
    if spec is None:
        raise ModuleNotFoundError("No module named 'sitecustomize'", name="sitecustomize")
    bootstrap._load(spec)


if __name__ == "sitecustomize":  # brigade.imports.inside_node starts the view by itself
    _start()
    _chain()
