"""The import view of a rank: path entry finders that answer from the image's import tables.

    PathFinder -> sys.path_hooks -> Finder(path entry)         a table for it: found, absent, ask
                                      -> ModuleSpec + loader   code read from node memory

This file starts the view. Beside it stand _brigade_finders.py, _brigade_loaders.py, and
_brigade_state.py (counters, changes). `brigade.imports.table` describes the tables and makes them.
A Finder is a FileFinder; whenever its table cannot answer, or must not be trusted, it searches as
one, in the real file system.

When a table is trusted:
  interposed   (the preloaded library watches the job's changes) as long as the job's state says
               that neither the folder nor, of a package, the package's folder has changed, and,
               if the path entry goes by links, that no link or folder was moved;
  alone        until invalidate_caches();
and, if the folder is not LISTED, while its mtime is the one in the table, and a source's mtime and
size are those in its .pyc. Interposed, the image answers what is asked for that, as long as the
process starts up.
An absence in a folder that is not LISTED is trusted only until invalidate_caches(). A module
that is loaded already is always searched for real: it is being reloaded.

What must stay true: these four files import nothing but each other; they run before the program,
in CPython 3.8 and later, under the file name of importlib's own code, and leave no module in
sys.modules (see sitecustomize.py); specs and modules are what FileFinder would have made.
"""

import sys

from _brigade_finders import Finder
from _brigade_loaders import redirect_libraries
from _brigade_state import Settings, counted, read_number

_external = sys.modules["_frozen_importlib_external"]
_imp = sys.modules["_imp"]
_posix = sys.modules["posix"]

_open, _pread, _close = _posix.open, _posix.pread, _posix.close
_loads = sys.modules["marshal"].loads
_READ = _posix.O_RDONLY | _posix.O_CLOEXEC
_FileFinder = _external.FileFinder
_HEADER_BYTES = 136  # of struct brg_index, as far as it is needed here


def _make_hooks(search_files, original):
    """Two hooks that make Finders; both leave other paths to Python's own hooks.

    The first stands before all others, which saves asking zipimport about every folder; it does
    nothing once a program has changed `sys.path_hooks`. The second takes the place of
    FileFinder's, so that hooks that a program puts before FileFinder's still come first.
    """
    tables = Settings.tables

    def path_hook_for_folder_of_image(path):
        if path in tables and sys.path_hooks == hooks:
            return Finder(path, tables[path])
        raise ImportError("not a path entry of the image", path=path)

    def path_hook_for_FileFinder(path):
        """Path hook for importlib.machinery.FileFinder."""
        if path in tables:
            return Finder(path, tables[path])
        return search_files(path)

    hooks = [path_hook_for_FileFinder if hook is search_files else hook for hook in original]
    hooks.insert(0, path_hook_for_folder_of_image)
    return hooks


def table_key():
    """Names the table of this interpreter; `brigade.imports.table.Interpreter.key` is its twin."""
    return "|".join(
        [
            _external.MAGIC_NUMBER.hex(),
            sys.implementation.cache_tag,
            str(sys.flags.optimize or ""),
            _imp.check_hash_based_pycs,
            *_external.EXTENSION_SUFFIXES,
        ]
    )


def _read_tables():
    fd = _open(Settings.index, _READ)
    try:
        if _posix.fstat(fd).st_uid != _posix.geteuid():
            return {}  # somebody else's: not to be believed, least of all unmarshalled
        header = _pread(fd, _HEADER_BYTES, 0)
        size = read_number(header, 128, 8)
        section = _pread(fd, size, read_number(header, 120, 8))
    finally:
        _close(fd)
    if not size or len(section) != size:
        return {}
    return _loads(section).get(table_key(), {})


def start(environ, _folder):
    """Install the view. `environ`: the environment before it was cleaned, bytes to bytes.

    Returns what tells its counters; None if there is no table for this Python, or no place for it.
    """

    def variable(name):
        return environ.get(name, b"").decode(sys.getfilesystemencoding(), "surrogateescape")

    stage = variable(b"BRIGADE_STAGE")
    Settings.index = stage + "/index"
    Settings.root = stage + "/root"
    Settings.state = variable(b"BRIGADE_STATE")
    Settings.slot = int(variable(b"BRIGADE_SLOT") or 0)
    Settings.strict = variable(b"BRIGADE_STRICT") == "1"
    Settings.interposed = "interpose" in variable(b"BRIGADE_VIEW").split(
        ","
    ) and "libbrigade-preload" in variable(b"LD_PRELOAD")
    Settings.details = _external._get_supported_file_loaders()
    level = sys.flags.optimize
    opt = f".opt-{level}" if level else ""
    Settings.pyc_suffix = f".{sys.implementation.cache_tag}{opt}.pyc"
    Settings.tables = tables = _read_tables()
    files = [h for h in sys.path_hooks if getattr(h, "__name__", "") == "path_hook_for_FileFinder"]
    if not tables or len(files) != 1:
        return None
    if not Settings.interposed:
        redirect_libraries()
    sys.path_hooks[:] = _make_hooks(files[0], sys.path_hooks)
    for path, finder in list(sys.path_importer_cache.items()):
        if path in tables and type(finder) is _FileFinder:
            sys.path_importer_cache[path] = Finder(path, tables[path])
    return counted
