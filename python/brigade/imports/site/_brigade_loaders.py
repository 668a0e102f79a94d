"""The loaders of the import view: importlib's own, except that code comes from node memory once.

    Source, CheckedSource    a .pyc, or a source to compile          Sourceless    a .pyc alone
    offer_library()          a library, by importlib's own loader, where nothing redirects ld.so

A finder sets `_staged`, the file in node memory, and `_bytes`, its size or SOURCE_ONLY. Whatever
goes wrong with the staged file, the loader does what importlib's does with the original.

What must stay true: the rules of _brigade_view.py; loaders compare, hash, print and pickle as
those that they stand for, and are nothing else any more (`_shed`) once they have loaded: programs
look at `type(module.__loader__)`.
"""

import sys

from _brigade_state import cause_of, miss, word

_external = sys.modules["_frozen_importlib_external"]
_bootstrap = sys.modules["_frozen_importlib"]
_imp = sys.modules["_imp"]
_posix = sys.modules["posix"]

_open, _pread, _close = _posix.open, _posix.pread, _posix.close
_stat, _fstat = _posix.stat, _posix.fstat
_loads = sys.modules["marshal"].loads
_READ = _posix.O_RDONLY | _posix.O_CLOEXEC
_fix_co_filename = _imp._fix_co_filename
_ModuleSpec = _bootstrap.ModuleSpec
_SourceFileLoader = _external.SourceFileLoader
_SourcelessFileLoader = _external.SourcelessFileLoader
_ExtensionFileLoader = _external.ExtensionFileLoader

SOURCE_ONLY = 1  # in place of the size of a .pyc, as in brigade.imports.table
_PYC_HEADER = 16


def _shed(loader, plain):
    """Make it a loader of importlib's own; what was staged for it: (path or None, size)."""
    state = loader.__dict__
    staged = state.pop("_staged", None), state.pop("_bytes", 0)
    loader.__class__ = plain
    return staged


def _same(loader, other, plain):
    """Equal as loaders of class `plain` are, whichever of the two is still one of ours."""
    return isinstance(other, plain) and (loader.name, loader.path) == (other.name, other.path)


def _staged_code(loader, staged, size):
    """The code object from node memory; None if it must be got for real."""
    if staged is None:
        return None  # another thread has shed it meanwhile
    try:
        if size == SOURCE_ONLY:
            return loader.source_to_code(_read_whole(staged), loader.path)
        fd = _open(staged, _READ)
        try:
            data = _pread(fd, size, _PYC_HEADER)
        finally:
            _close(fd)
        if len(data) != size - _PYC_HEADER:
            raise OSError("its size is wrong")
    except OSError:
        miss(cause_of(staged), loader.path)
        return None
    return _loads(data)


def _read_whole(path):
    fd = _open(path, _READ)
    try:
        return _pread(fd, _fstat(fd).st_size, 0)
    finally:
        _close(fd)


class Source(_SourceFileLoader):
    """A SourceFileLoader whose first get_code() takes the code from node memory.

    Where there was no valid .pyc, the staged source is compiled, and no .pyc is written: hundreds
    of ranks would write the same one. Later calls, and everything else, are SourceFileLoader's
    own and see the real files.
    """

    __slots__ = ()

    def get_code(self, fullname):
        if fullname != self.name:
            return _SourceFileLoader.get_code(self, fullname)  # raises
        code = _staged_code(self, *_shed(self, _SourceFileLoader))
        if code is None:
            return _SourceFileLoader.get_code(self, fullname)
        if code.co_filename != self.path:
            _fix_co_filename(code, self.path)
        return code

    def __eq__(self, other):
        return _same(self, other, _SourceFileLoader)

    __hash__ = _SourceFileLoader.__hash__

    def __reduce__(self):
        return _SourceFileLoader, (self.name, self.path)


class CheckedSource(Source):
    """The same where sources may change unseen: one stat of the source, as importlib makes."""

    __slots__ = ()

    def get_code(self, fullname):
        if fullname == self.name and not self._matches_source():
            _shed(self, _SourceFileLoader)
            return _SourceFileLoader.get_code(self, fullname)
        return Source.get_code(self, fullname)

    def _matches_source(self):
        try:
            source = _stat(self.path)
            if self._bytes == SOURCE_ONLY:
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
            word(int(source.st_mtime)) + word(source.st_size)
        )


class Sourceless(_SourcelessFileLoader):
    """A SourcelessFileLoader whose first get_code() takes the code from node memory."""

    __slots__ = ()

    def get_code(self, fullname):
        if fullname != self.name:
            return _SourcelessFileLoader.get_code(self, fullname)
        code = _staged_code(self, *_shed(self, _SourcelessFileLoader))
        return _SourcelessFileLoader.get_code(self, fullname) if code is None else code

    def __eq__(self, other):
        return _same(self, other, _SourcelessFileLoader)

    __hash__ = _SourcelessFileLoader.__hash__

    def __reduce__(self):
        return _SourcelessFileLoader, (self.name, self.path)


# Extension modules in node memory, by their own paths: those that a finder has found and nobody has
# loaded yet, and those that are loaded. A path that was loaded from its copy stays with it, as a
# path stays with its library in ld.so: by its own path it would be in memory a second time.
_found, _loaded = {}, {}


def offer_library(path, staged):
    """The next load of extension module `path` is the file `staged`."""
    _found[path] = staged


def withdraw_library(path):
    """What a finder found of extension module `path` is no longer certain."""
    _found.pop(path, None)


_create_original = _ExtensionFileLoader.create_module


def create_module(self, spec):
    """Create an uninitialized extension module"""
    path = _loaded.get(spec.origin) or _found.pop(spec.origin, None)
    if path is None:
        return _create_original(self, spec)
    staged = _ModuleSpec(spec.name, spec.loader, origin=path)
    try:
        module = _bootstrap._call_with_frames_removed(_imp.create_dynamic, staged)
    except ImportError as problem:
        if problem.path != path:
            raise
    else:
        _loaded[spec.origin] = path
        module.__file__ = spec.origin
        return module
    # ld.so refused the staged file: the original gives the right error, or the right module
    module = _create_original(self, spec)
    miss(cause_of(path), spec.origin)
    return module


def redirect_libraries():
    """From now on ExtensionFileLoader maps what was offered; programs see its own class only."""
    create_module.__module__ = _create_original.__module__
    create_module.__qualname__ = _create_original.__qualname__
    _ExtensionFileLoader.create_module = create_module
