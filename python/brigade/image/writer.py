"""Writing an image: add what is known about paths, then commit.

    with ImageWriter("app.img") as writer:
        writer.add_root("/sw")
        writer.add("/sw", os.lstat("/sw"), listed=True)
        writer.add("/sw/app.py", os.lstat("/sw/app.py"), source="/sw/app.py")
        writer.add("/sw/app.pyc", kind=ABSENT)
        image_id = writer.commit()

The library sorts, links parents and children, reads the sources, stores equal contents once, and
publishes the file by one rename. Without a commit nothing appears.
"""

from __future__ import annotations

import ctypes
import errno
import os
from contextlib import suppress
from typing import Any

from brigade.errors import ImageError
from brigade.image import _lib
from brigade.image._lib import search_context
from brigade.image.layout import (
    ABSENT,
    LISTED,
    MOUNT_DEV,
    NONE,
    OWN_RIGHTS,
    SNAPSHOT,
    kind_of,
)

__all__ = ["ImageWriter", "search_context"]

_META, _PYTHON = 1, 2
_STAT_FIELDS = [
    (name, "st_" + name)
    for name in (
        "mode",
        "uid",
        "gid",
        "nlink",
        "blksize",
        "size",
        "blocks",
        "dev",
        "ino",
        "rdev",
        "atime_ns",
        "mtime_ns",
        "ctime_ns",
    )
]


class ImageWriter:
    """Collects entries for an image at `path`; `level` 0 stores contents uncompressed. `base`: an
    older image, of the caller's own, whose contents serve where their sources have not changed;
    one that cannot be read is done without."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        block_bytes: int = 1 << 20,
        level: int = 3,
        threads: int = 0,
        base: str | os.PathLike[str] | None = None,
    ) -> None:
        self.path = os.fspath(path)
        handle = ctypes.c_void_p()
        options = _lib.Options(block_bytes, level, threads)
        _lib.call("writer_create", os.fsencode(path), ctypes.byref(options), ctypes.byref(handle))
        self._handle: int | None = handle.value
        if base is not None:
            with suppress(ImageError):
                _lib.call("writer_set_base", handle, os.fsencode(base))
        #: marshalled import tables
        self.python_table: bytes = b""
        #: about the image; must be JSON
        self.meta: dict[str, Any] = {}

    def __enter__(self) -> ImageWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def close(self) -> None:
        """Drops what was not committed."""
        if self._handle:
            _lib.function("writer_destroy")(self._handle)
            self._handle = None

    def _open(self) -> int:
        if not self._handle:
            raise ImageError(f"the image {self.path} was committed or closed before")
        return self._handle

    def add(
        self,
        path: str,
        stat: Any = None,
        kind: int | None = None,
        *,
        target: str | None = None,
        listed: bool = False,
        snapshot: bool = False,
        mount_dev: bool = False,
        own_rights: bool = False,
        order: int | None = None,
        source: str | bytes | None = None,
        err: int = errno.ENOENT,
    ) -> None:
        """Adds what is known about one path.

        `path` is canonical: absolute, every component but the last resolved. `stat` is the
        os.stat_result of the path itself (lstat), or any object with some of its fields; `kind`
        follows from it, and is ABSENT without one. `source` is the file to read the content from,
        or the content itself as bytes. `order` is the rank of first use: contents are stored in
        that order. `listed` says that all names of a directory are added too;
        `snapshot` says the same of a directory whose names may change later. `mount_dev` says that
        its device number is that of the mount it lies on, which a node may number differently;
        `own_rights` that the file has capabilities, so that it is not executed from its copy.
        """
        if kind is None:
            kind = ABSENT if stat is None else kind_of(stat.st_mode)
        flags = LISTED * listed | SNAPSHOT * snapshot
        raw = _lib.RawEntry(
            path=_name(path),
            kind=kind,
            flags=flags | MOUNT_DEV * mount_dev | OWN_RIGHTS * own_rights,
            order=NONE if order is None else order,
        )
        if kind == ABSENT:
            raw.err = err
        elif stat is not None:
            for field, attribute in _STAT_FIELDS:
                setattr(raw, field, getattr(stat, attribute, 0))
        if target is not None:
            raw.target = _name(target)
        if isinstance(source, bytes):
            raw.data, raw.data_bytes = source, len(source)
        elif source is not None:
            raw.source = _name(source)
        _lib.call("writer_add_entry", self._open(), ctypes.byref(raw))

    def add_answer(self, context: int, requester: str, name: str, path: str = "") -> None:
        """What ld.so found for `name` asked for by `requester`; "" if it found nothing."""
        _lib.call(
            "writer_add_answer", self._open(), context, _name(requester), _name(name), _name(path)
        )

    def add_root(self, path: str) -> None:
        """A directory tree that the image answers for."""
        _lib.call("writer_add_root", self._open(), _name(path))

    def commit(self, progress: _lib.Progress | None = None, lost: _lib.Lost | None = None) -> str:
        """Reads the sources and publishes the image; returns its id, 32 hex digits.

        `progress(done_bytes, total_bytes)` is called as sources are read. A source that cannot be
        read, or that changed since its stat, raises ImageError; with `lost(path, words)` given, it
        is told instead and its entry is kept without content.
        """
        import json

        handle = self._open()
        meta = json.dumps(self.meta, sort_keys=True, separators=(",", ":")).encode()
        _lib.call("writer_set_section", handle, _META, meta, len(meta))
        table = bytes(self.python_table)
        _lib.call("writer_set_section", handle, _PYTHON, table, len(table))
        image_id = ctypes.create_string_buffer(33)
        guard = _lib.Guard()
        try:
            guard.call(
                "writer_commit", handle, guard.progress(progress), guard.lost(lost), None, image_id
            )
        finally:
            self.close()
        return image_id.value.decode()


def _name(text: str) -> bytes:
    """A path as C takes it."""
    name = os.fsencode(text)
    if b"\0" in name:
        raise ImageError(f"{text!r} cannot be in an image: it holds a NUL")
    return name
