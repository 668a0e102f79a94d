"""The finder of the import view: what FileFinder finds in one folder, from the image's table.

    Finder(path entry).find_spec(name) -> ModuleSpec with a loader of _brigade_loaders.py, None if
                                          absent, or what FileFinder finds where it cannot tell

What must stay true: the rules of _brigade_view.py, which says when a table is trusted; specs are
what FileFinder would have made.
"""

import sys

from _brigade_loaders import (
    SOURCE_ONLY,
    CheckedSource,
    Source,
    Sourceless,
    offer_library,
    withdraw_library,
)
from _brigade_state import (
    CAUSE_CHANGED,
    CAUSE_NO_CONTENT,
    CAUSE_UNKNOWN_NAME,
    Settings,
    changed,
    hit,
    miss,
)

_external = sys.modules["_frozen_importlib_external"]
_loads = sys.modules["marshal"].loads
_stat = sys.modules["posix"].stat
_FileFinder = _external.FileFinder
_SourceFileLoader = _external.SourceFileLoader
_SourcelessFileLoader = _external.SourcelessFileLoader
_ExtensionFileLoader = _external.ExtensionFileLoader
_ModuleSpec = sys.modules["_frozen_importlib"].ModuleSpec
_SUFFIXES = _external.EXTENSION_SUFFIXES
_modules = sys.modules

# kinds, as in brigade.imports.table
_KIND_BITS, _KIND_MASK = 4, 15
_ABSENT, _UNKNOWN, _NAMESPACE = 0, 1, 2
_SOURCE, _EXTENSION, _SOURCELESS = 3, 5, 7  # of a module; one more: of a package


class Finder(_FileFinder):
    """What FileFinder(path) finds, from the table where it can be trusted."""

    def __init__(self, path, blob):
        _FileFinder.__init__(self, path, *Settings.details)
        self._blob = blob
        self._names = None
        self._invalidated = False

    def invalidate_caches(self):
        self._invalidated = True
        _FileFinder.invalidate_caches(self)

    def _decode(self):
        self._folder, self._listed, self._mtime_ns, names = _loads(self._blob)
        self._staged = Settings.root + self._folder + "/"
        self._prefix = self.path.rstrip("/") + "/"
        self._other = _ABSENT if self._listed else _UNKNOWN
        self._source_class = Source if self._listed else CheckedSource
        self._blob = None
        self._names = names
        return names

    def _trusted(self, kind, tail):
        if Settings.interposed:
            if kind == _ABSENT and self._invalidated and not self._listed:
                return False
            package = kind == _NAMESPACE or kind > _NAMESPACE and not kind & 1
            folder = self._folder
            if changed(self._prefix[:-1], folder, folder + "/" + tail if package else None):
                return False
        elif self._invalidated:
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
            miss(CAUSE_UNKNOWN_NAME if kind == _UNKNOWN else CAUSE_CHANGED, self._prefix + tail)
            spec = _FileFinder.find_spec(self, fullname, target)
            if spec is not None:
                withdraw_library(spec.origin)
            return spec
        hit()
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
            cached = folder + "__pycache__/" + stem + Settings.pyc_suffix
            if not number:
                miss(CAUSE_NO_CONTENT, path)
                return _SourceFileLoader(fullname, path), self._prefix + cached
            loader = self._source_class(fullname, path)
            loader._staged = self._staged + (
                cached if number != SOURCE_ONLY else folder + stem + ".py"
            )
            loader._bytes = number
            return loader, self._prefix + cached
        if kind == _EXTENSION:
            file = folder + stem + _SUFFIXES[number >> 1]
            if not number & 1:
                miss(CAUSE_NO_CONTENT, self._prefix + file)
            if not number & 1 or Settings.interposed:
                return _ExtensionFileLoader(fullname, self._prefix + file), None
            offer_library(self._prefix + file, self._staged + file)
            return _ExtensionFileLoader(fullname, self._prefix + file), None
        path = self._prefix + folder + stem + ".pyc"
        if not number:
            miss(CAUSE_NO_CONTENT, path)
            return _SourcelessFileLoader(fullname, path), path
        loader = Sourceless(fullname, path)
        loader._staged = self._staged + folder + stem + ".pyc"
        loader._bytes = number
        return loader, path


def folder_of(finder):
    """The canonical path of the folder in which a Finder looks; whether that is LISTED."""
    if finder._names is None:
        finder._decode()
    return finder._folder, finder._listed


for _ours in (Source, CheckedSource, Sourceless, Finder):
    # programs that print or compare the names of types see the ones they expect
    _plain = (
        _FileFinder
        if _ours is Finder
        else next(c for c in _ours.__mro__ if c.__module__ == _SourceFileLoader.__module__)
    )
    _ours.__module__, _ours.__qualname__ = _plain.__module__, _plain.__qualname__
    _ours.__name__ = _plain.__name__
