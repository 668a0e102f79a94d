"""The import view of a rank: path entry finders that answer from the image's import tables.

    PathFinder -> sys.path_hooks -> Finder(path entry)         a table for it: found, absent, ask
                                      -> ModuleSpec + loader   code read from node memory

`brigade.imports.table` describes the tables and makes them. A Finder is a FileFinder; whenever
its table cannot answer, or must not be trusted, it searches as one, in the real file system.

When a table is trusted:
  interposed   (the preloaded library watches all changes) as long as the job's state says that
               neither the folder nor, of a package, the package's folder has changed;
  alone        a LISTED folder: until invalidate_caches(); any other folder: while its mtime is
               the one in the table, and a source's mtime and size are those in its .pyc.
An absence in a folder that is not LISTED is trusted only until invalidate_caches(). A module
that is loaded already is always searched for real: it is being reloaded.

What must stay true: this file imports nothing; it runs before the program, in CPython 3.9 and
later, under the file name of importlib's own code (see sitecustomize.py); specs and modules are
what FileFinder would have made.
"""

import sys

_external = sys.modules["_frozen_importlib_external"]
_bootstrap = sys.modules["_frozen_importlib"]
_imp = sys.modules["_imp"]
_posix = sys.modules["posix"]

_open, _pread, _pwrite, _close = _posix.open, _posix.pread, _posix.pwrite, _posix.close
_stat, _fstat = _posix.stat, _posix.fstat
_now_ns = sys.modules["time"].time_ns
_loads = sys.modules["marshal"].loads
_READ = _posix.O_RDONLY | _posix.O_CLOEXEC
_READ_WRITE = _posix.O_RDWR | _posix.O_CLOEXEC
_fix_co_filename = _imp._fix_co_filename
_FileFinder = _external.FileFinder
_SourceFileLoader = _external.SourceFileLoader
_SourcelessFileLoader = _external.SourcelessFileLoader
_ExtensionFileLoader = _external.ExtensionFileLoader
_ModuleSpec = _bootstrap.ModuleSpec
_SUFFIXES = _external.EXTENSION_SUFFIXES
_modules = sys.modules

# kinds, as in brigade.imports.table
_KIND_BITS, _KIND_MASK = 4, 15
_ABSENT, _UNKNOWN, _NAMESPACE = 0, 1, 2
_SOURCE, _EXTENSION, _SOURCELESS = 3, 5, 7  # of a module; one more: of a package
_SOURCE_ONLY = 1  # in place of the size of a .pyc

_HEADER_BYTES = 136  # of struct brg_index, as far as it is needed here
_ENTRY_BYTES, _KIND_OFFSET, _DIR = 144, 16, 2
# struct brg_state, struct brg_slot, struct brg_miss, and enum brg_miss_cause
_SLOTS_OFF, _DIRTY_OFF, _MISSES_OFF, _NEXT_MISS, _DIRTY_ANY = 32, 40, 48, 60, 64
_SLOT_BYTES, _LAST_LOAD, _HITS, _MISSES = 128, 16, 32, 40
_MISS_BYTES, _MISS_PATH_BYTES = 256, 240
_UNKNOWN_NAME, _NO_CONTENT, _CHANGED, _STAGE = 0, 1, 2, 6
_CAUSES = {
    _UNKNOWN_NAME: "not looked up in the trial",
    _NO_CONTENT: "known, but its contents are not in the image",
    _STAGE: "the staged copy could not be used",
}  # those that end a strict process
_TALLY_EVERY_NS, _PAUSE_NS = 20_000_000, 2_000_000_000
_PYC_HEADER = 16


class _Settings:
    """What this process was told; set once by start()."""

    root = ""  # <stage>/root
    index = ""  # <stage>/index
    state = ""  # the job's state file, or ""
    slot = 0
    interposed = False
    strict = False
    tables = {}
    details = ()
    pyc_suffix = ""


def _number(data, at, width):
    return int.from_bytes(data[at : at + width], "little")


def _word(value):
    return (value & 0xFFFFFFFF).to_bytes(4, "little")


# Counting ########################################################################


class _Tally:
    """Look-ups that were answered and not yet added to this rank's slot."""

    hits = 0
    written_ns = 0
    startup_over = False


def _hit():
    """Count an answer. The slot is written now and then: the count is short by a few at the end.

    Here and below counters are read and written without lock, for figures that people read.
    """
    _Tally.hits += 1
    now = _now_ns()
    since = now - _Tally.written_ns
    if since < _TALLY_EVERY_NS:
        return
    if _Tally.written_ns and since > _PAUSE_NS:
        _Tally.startup_over = True
    hits, _Tally.hits, _Tally.written_ns = _Tally.hits, 0, now
    try:
        fd = _open(_Settings.state, _READ_WRITE)
        try:
            slot = _number(_pread(fd, 8, _SLOTS_OFF), 0, 8) + _SLOT_BYTES * _Settings.slot
            _add(fd, slot + _HITS, hits, 8)
            if not _Tally.startup_over:
                _pwrite(fd, now.to_bytes(8, "little"), slot + _LAST_LOAD)
        finally:
            _close(fd)
    except OSError:
        _Tally.startup_over = True  # nobody counts any more


def _add(fd, at, value, width):
    """Add to a counter of the state file; its value before."""
    before = _number(_pread(fd, width, at), 0, width)
    _pwrite(fd, (before + value).to_bytes(width, "little"), at)
    return before


def _miss(cause, path):
    """Count a look-up that goes to the real file system; what strict mode forbids ends here.

    The preloaded library, where there is one, sees the calls that follow, and counts those.
    """
    if _Settings.interposed and cause != _STAGE:
        return
    try:
        fd = _open(_Settings.state, _READ_WRITE)
        try:
            header = _pread(fd, 72, 0)
            slot = _number(header, _SLOTS_OFF, 8) + _SLOT_BYTES * _Settings.slot
            _add(fd, slot + _MISSES + 8 * cause, 1, 8)
            number = _add(fd, _NEXT_MISS, 1, 4)
            if number < _number(header, 16, 4):
                text = path.encode("utf-8", "surrogateescape")
                record = bytes((cause, 0)) + len(text).to_bytes(2, "little")
                record += b"import".ljust(12, b"\0") + text[-(_MISS_PATH_BYTES - 1) :]
                _pwrite(
                    fd,
                    record.ljust(_MISS_BYTES, b"\0"),
                    _number(header, _MISSES_OFF, 8) + _MISS_BYTES * number,
                )
        finally:
            _close(fd)
    except OSError:
        pass  # a job without a state file is not counted
    if _Settings.strict and cause in _CAUSES:
        sys.stderr.write(f"brigade: strict: import {path}: {_CAUSES[cause]}\n")
        sys.stderr.flush()
        _posix._exit(125)


# Changes during the job ##########################################################


def _entry_number(path):
    """The entry of folder `path` in the index, or None. Linear probing, FNV-1a (index.h)."""
    key = path.encode("utf-8", "surrogateescape")
    mixed = 0xCBF29CE484222325
    for byte in key:
        mixed = ((mixed ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    fd = _open(_Settings.index, _READ)
    try:
        header = _pread(fd, _HEADER_BYTES, 0)
        buckets = _number(header, 36, 4)
        entries_at, buckets_at, strings_at = (_number(header, at, 8) for at in (56, 64, 104))
        for step in range(buckets):
            slot = (mixed + step) & (buckets - 1)
            number = _number(_pread(fd, 4, buckets_at + 4 * slot), 0, 4)
            if number == 0xFFFFFFFF:
                return None
            entry = _pread(fd, _ENTRY_BYTES, entries_at + _ENTRY_BYTES * number)
            size = _number(entry, 4, 4)
            if size == len(key) and _pread(fd, size, strings_at + _number(entry, 0, 4)) == key:
                return number if entry[_KIND_OFFSET] == _DIR else None
    finally:
        _close(fd)
    return None


_entry_numbers = {}


def _changed(folder, package=None):
    """Whether the state's dirty bits name `folder`, or `package` in it.

    A change is marked on the entry and on its parent, so a folder's bit stands for its files.
    Unknown counts as changed.
    """
    try:
        fd = _open(_Settings.state, _READ)
        try:
            if _pread(fd, 8, _DIRTY_ANY) == b"\0\0\0\0\0\0\0\0":
                return False
            bits_at = _number(_pread(fd, 8, _DIRTY_OFF), 0, 8)
            for path in (folder, package) if package else (folder,):
                if path not in _entry_numbers:
                    _entry_numbers[path] = _entry_number(path)
                number = _entry_numbers[path]
                if number is None:
                    return True
                byte = _pread(fd, 1, bits_at + number // 8)
                if not byte or byte[0] >> number % 8 & 1:
                    return True
            return False
        finally:
            _close(fd)
    except OSError:
        return True


# Loaders #########################################################################


def _staged_code(loader):
    """The code object from node memory, once for each loader; None if it must be got for real."""
    size = loader._bytes
    loader._bytes = 0
    try:
        if size == _SOURCE_ONLY:
            return loader.source_to_code(_read_whole(loader._staged), loader.path)
        fd = _open(loader._staged, _READ)
        try:
            data = _pread(fd, size, _PYC_HEADER)
        finally:
            _close(fd)
        if len(data) != size - _PYC_HEADER:
            raise OSError("its size is wrong")
    except OSError:
        _miss(_STAGE, loader.path)
        return None
    return _loads(data)


def _read_whole(path):
    fd = _open(path, _READ)
    try:
        return _pread(fd, _fstat(fd).st_size, 0)
    finally:
        _close(fd)


class _Source(_SourceFileLoader):
    """A SourceFileLoader whose first get_code() takes the code from node memory.

    Where there was no valid .pyc, the staged source is compiled, and no .pyc is written: hundreds
    of ranks would write the same one. Later calls, and everything else, are SourceFileLoader's
    own and see the real files.
    """

    __slots__ = ("_staged", "_bytes")

    def get_code(self, fullname):
        if self._bytes and fullname == self.name:
            code = _staged_code(self)
            if code is not None:
                if code.co_filename != self.path:
                    _fix_co_filename(code, self.path)
                return code
        return _SourceFileLoader.get_code(self, fullname)

    def __eq__(self, other):
        return isinstance(other, _SourceFileLoader) and self.__dict__ == other.__dict__

    __hash__ = _SourceFileLoader.__hash__

    def __reduce__(self):
        return _SourceFileLoader, (self.name, self.path)


class _CheckedSource(_Source):
    """The same where sources may change unseen: one stat of the source, as importlib makes."""

    __slots__ = ()

    def get_code(self, fullname):
        if self._bytes and not self._matches_source():
            self._bytes = 0
        return _Source.get_code(self, fullname)

    def _matches_source(self):
        try:
            source = _stat(self.path)
            if self._bytes == _SOURCE_ONLY:
                staged = _stat(self._staged)
                return (source.st_mtime_ns, source.st_size) == (staged.st_mtime_ns, staged.st_size)
            fd = _open(self._staged, _READ)
            try:
                header = _pread(fd, _PYC_HEADER, 0)
            finally:
                _close(fd)
        except OSError:
            return False
        return not any(header[4:8]) and header[8:] == (
            _word(int(source.st_mtime)) + _word(source.st_size)
        )


class _Sourceless(_SourcelessFileLoader):
    """A SourcelessFileLoader whose first get_code() takes the code from node memory."""

    __slots__ = ("_staged", "_bytes")

    def get_code(self, fullname):
        if self._bytes and fullname == self.name:
            code = _staged_code(self)
            if code is not None:
                return code
        return _SourcelessFileLoader.get_code(self, fullname)

    def __eq__(self, other):
        return isinstance(other, _SourcelessFileLoader) and self.__dict__ == other.__dict__

    __hash__ = _SourcelessFileLoader.__hash__

    def __reduce__(self):
        return _SourcelessFileLoader, (self.name, self.path)


class _Extension(_ExtensionFileLoader):
    """An ExtensionFileLoader that maps the staged file; only where nothing redirects ld.so."""

    __slots__ = ("_staged",)

    def create_module(self, spec):
        staged = _ModuleSpec(spec.name, spec.loader, origin=self._staged)
        try:
            module = _bootstrap._call_with_frames_removed(_imp.create_dynamic, staged)
        except ImportError as problem:
            if problem.path != self._staged:
                raise
        else:
            module.__file__ = spec.origin
            return module
        # ld.so refused the staged file: the original gives the right error, or the right module
        module = _ExtensionFileLoader.create_module(self, spec)
        _miss(_STAGE, self.path)
        return module

    def __eq__(self, other):
        return isinstance(other, _ExtensionFileLoader) and self.__dict__ == other.__dict__

    __hash__ = _ExtensionFileLoader.__hash__

    def __reduce__(self):
        return _ExtensionFileLoader, (self.name, self.path)


# Finders #########################################################################


class _Finder(_FileFinder):
    """What FileFinder(path) finds, from the table where it can be trusted."""

    def __init__(self, path, blob):
        _FileFinder.__init__(self, path, *_Settings.details)
        self._blob = blob
        self._names = None
        self._invalidated = False

    def invalidate_caches(self):
        self._invalidated = True
        _FileFinder.invalidate_caches(self)

    def _decode(self):
        self._folder, self._listed, self._mtime_ns, names = _loads(self._blob)
        self._staged = _Settings.root + self._folder + "/"
        self._prefix = self.path.rstrip("/") + "/"
        self._other = _ABSENT if self._listed else _UNKNOWN
        sure = self._listed or _Settings.interposed
        self._source_class = _Source if sure else _CheckedSource
        self._blob = None
        self._names = names
        return names

    def _trusted(self, kind, tail):
        if _Settings.interposed:
            if kind == _ABSENT and self._invalidated and not self._listed:
                return False
            package = kind == _NAMESPACE or kind > _NAMESPACE and not kind & 1
            return not _changed(self._folder, self._folder + "/" + tail if package else None)
        if self._invalidated:
            return False
        if self._listed:
            return True
        try:
            return _stat(self.path).st_mtime_ns == self._mtime_ns
        except OSError:
            return False

    def find_spec(self, fullname, target=None):
        names = self._names
        if names is None:
            names = self._decode()
        tail = fullname.rpartition(".")[2]
        known = names.get(tail, self._other)
        kind = known & _KIND_MASK
        if fullname in _modules:
            return _FileFinder.find_spec(self, fullname, target)
        if kind == _UNKNOWN or not self._trusted(kind, tail):
            _miss(_UNKNOWN_NAME if kind == _UNKNOWN else _CHANGED, self._prefix + tail)
            return _FileFinder.find_spec(self, fullname, target)
        _hit()
        if kind == _ABSENT:
            return None
        if kind == _NAMESPACE:
            spec = _ModuleSpec(fullname, None)
            spec.submodule_search_locations = [self._prefix + tail]
            return spec
        if kind & 1:
            loader, cached = self._loader(fullname, kind, known >> _KIND_BITS, "", tail)
            spec = _ModuleSpec(fullname, loader, origin=loader.path)
        else:
            loader, cached = self._loader(
                fullname, kind - 1, known >> _KIND_BITS, tail + "/", "__init__"
            )
            spec = _ModuleSpec(fullname, loader, origin=loader.path)
            spec.submodule_search_locations = [self._prefix + tail]
        spec._set_fileattr = True
        spec._cached = cached
        return spec

    def _loader(self, fullname, kind, number, folder, stem):
        """(loader, value of __cached__ or None) of the module in file folder + stem + suffix."""
        if kind == _SOURCE:
            path = self._prefix + folder + stem + ".py"
            if sys.pycache_prefix is not None:
                return _SourceFileLoader(fullname, path), None
            cached = folder + "__pycache__/" + stem + _Settings.pyc_suffix
            if not number:
                _miss(_NO_CONTENT, path)
                return _SourceFileLoader(fullname, path), self._prefix + cached
            loader = self._source_class(fullname, path)
            loader._staged = self._staged + (
                cached if number != _SOURCE_ONLY else folder + stem + ".py"
            )
            loader._bytes = number
            return loader, self._prefix + cached
        if kind == _EXTENSION:
            file = folder + stem + _SUFFIXES[number >> 1]
            if not number & 1:
                _miss(_NO_CONTENT, self._prefix + file)
            if not number & 1 or _Settings.interposed:
                return _ExtensionFileLoader(fullname, self._prefix + file), None
            loader = _Extension(fullname, self._prefix + file)
            loader._staged = self._staged + file
            return loader, None
        path = self._prefix + folder + stem + ".pyc"
        if not number:
            _miss(_NO_CONTENT, path)
            return _SourcelessFileLoader(fullname, path), path
        loader = _Sourceless(fullname, path)
        loader._staged = self._staged + folder + stem + ".pyc"
        loader._bytes = number
        return loader, path


for _ours in (_Source, _CheckedSource, _Sourceless, _Extension, _Finder):
    # programs that print or compare the names of types see the ones they expect
    _plain = (
        _FileFinder
        if _ours is _Finder
        else next(c for c in _ours.__mro__ if c.__module__ == _SourceFileLoader.__module__)
    )
    _ours.__module__, _ours.__qualname__ = _plain.__module__, _plain.__qualname__
    _ours.__name__ = _plain.__name__


# Start ###########################################################################


def _make_hooks(search_files, original):
    """Two hooks that make Finders; both leave other paths to Python's own hooks.

    The first stands before all others, which saves asking zipimport about every folder; it does
    nothing once a program has changed `sys.path_hooks`. The second takes the place of
    FileFinder's, so that hooks that a program puts before FileFinder's still come first.
    """
    tables = _Settings.tables

    def path_hook_for_folder_of_image(path):
        if path in tables and sys.path_hooks == hooks:
            return _Finder(path, tables[path])
        raise ImportError("not a path entry of the image", path=path)

    def path_hook_for_FileFinder(path):
        """Path hook for importlib.machinery.FileFinder."""
        if path in tables:
            return _Finder(path, tables[path])
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
            *_SUFFIXES,
        ]
    )


def _read_tables():
    fd = _open(_Settings.index, _READ)
    try:
        header = _pread(fd, _HEADER_BYTES, 0)
        size = _number(header, 128, 8)
        section = _pread(fd, size, _number(header, 120, 8))
    finally:
        _close(fd)
    if not size or len(section) != size:
        return {}
    return _loads(section).get(table_key(), {})


def start(environ, _folder):
    """Install the view. `environ`: the environment before it was cleaned, bytes to bytes."""

    def variable(name):
        return environ.get(name, b"").decode(sys.getfilesystemencoding(), "surrogateescape")

    stage = variable(b"BRIGADE_STAGE")
    _Settings.index = stage + "/index"
    _Settings.root = stage + "/root"
    _Settings.state = variable(b"BRIGADE_STATE")
    _Settings.slot = int(variable(b"BRIGADE_SLOT") or 0)
    _Settings.strict = variable(b"BRIGADE_STRICT") == "1"
    _Settings.interposed = "interpose" in variable(b"BRIGADE_VIEW").split(
        ","
    ) and "libbrigade-preload" in variable(b"LD_PRELOAD")
    _Settings.details = _external._get_supported_file_loaders()
    level = sys.flags.optimize
    opt = f".opt-{level}" if level else ""
    _Settings.pyc_suffix = f".{sys.implementation.cache_tag}{opt}.pyc"
    _Settings.tables = tables = _read_tables()
    files = [h for h in sys.path_hooks if getattr(h, "__name__", "") == "path_hook_for_FileFinder"]
    if not tables or len(files) != 1:
        return
    sys.path_hooks[:] = _make_hooks(files[0], sys.path_hooks)
    for path, finder in list(sys.path_importer_cache.items()):
        if path in tables and type(finder) is _FileFinder:
            sys.path_importer_cache[path] = _Finder(path, tables[path])
