"""Reading an image: what it knows about paths, and the bytes it holds.

    with Image("app.img") as image:
        image.lookup("/sw/lib/python3.11/os.py")
        image.read("/sw/lib/python3.11/os.py")

The library reads and checks the index; this module decodes its records where they lie. A damaged
or truncated file raises ImageError.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Any

from brigade.errors import ImageError
from brigade.image import _lib
from brigade.image.layout import (
    ANSWER,
    CONTENT,
    ENTRY,
    EXISTS,
    HEADER,
    MISSING,
    NONE,
    OWN_PARTS,
    STRING,
    Answer,
    Content,
    Entry,
    Found,
)

_PATH_ROOM = 8192


def _or_none(number: int) -> int | None:
    return None if number == NONE else number


class Image:
    """An open image. Close it, or use it as a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        handle = ctypes.c_void_p()
        _lib.call("open", os.fsencode(path), ctypes.byref(handle))
        self._handle: int | None = handle.value
        info = _lib.Info()
        _lib.function("get_info")(handle, ctypes.byref(info))
        self.id: str = info.id.decode()
        self.version: int = info.version
        self.total_bytes: int = info.total_bytes
        self.index_bytes: int = info.index_bytes
        self.raw_bytes: int = info.raw_bytes
        self.block_bytes: int = info.block_bytes
        self.n_blocks: int = info.n_blocks
        self.n_entries: int = info.n_entries
        self.n_contents: int = info.n_contents
        self.n_answers: int = info.n_answers
        address = _lib.function("index")(handle)
        self._index = memoryview((ctypes.c_char * info.index_bytes).from_address(address)).cast("B")
        fields = HEADER.unpack_from(self._index)
        (
            self._entries_off,
            _,
            self._contents_off,
            self._answers_off,
            _,
            self._roots_off,
            self._strings_off,
            _,
            self._python_off,
            self._python_bytes,
            self._meta_off,
            self._meta_bytes,
        ) = fields[11:]
        self._n_roots: int = info.n_roots
        self._meta: dict[str, Any] | None = None

    def __enter__(self) -> Image:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def close(self) -> None:
        """Frees the image; further calls raise ImageError."""
        if self._handle:
            self._index.release()
            _lib.function("close")(self._handle)
            self._handle = None

    def _open(self) -> int:
        if not self._handle:
            raise ImageError(f"{self.path} was closed")
        return self._handle

    # ---- the index ----

    def _string(self, off: int, length: int) -> str:
        start = self._strings_off + off
        return os.fsdecode(bytes(self._index[start : start + length]))

    def entry(self, number: int) -> Entry:
        """The entry with this number."""
        self._open()
        if not 0 <= number < self.n_entries:
            raise IndexError(number)
        (
            path_off,
            path_len,
            target_off,
            target_len,
            kind,
            flags,
            err,
            mode,
            uid,
            gid,
            nlink,
            parent,
            first_child,
            n_children,
            content,
            blksize,
            size,
            blocks,
            dev,
            ino,
            rdev,
            atime,
            mtime,
            ctime,
            _,
            order,
        ) = ENTRY.unpack_from(self._index, self._entries_off + number * ENTRY.size)
        return Entry(
            number,
            self._string(path_off, path_len),
            kind,
            flags,
            err,
            self._string(target_off, target_len) if target_len else "",
            mode,
            uid,
            gid,
            nlink,
            size,
            blocks,
            blksize,
            dev,
            ino,
            rdev,
            atime,
            mtime,
            ctime,
            _or_none(order),
            _or_none(content),
            _or_none(parent),
            first_child,
            n_children,
        )

    def entries(self) -> Iterator[Entry]:
        """All entries: parents before children, siblings together, known absences last."""
        return map(self.entry, range(self.n_entries))

    def children(self, entry: Entry) -> Iterator[Entry]:
        """The entries that lie in a directory and exist, by name."""
        return map(self.entry, range(entry.first_child, entry.first_child + entry.n_children))

    def lookup(self, path: str, follow: bool = True) -> Found:
        """Resolves an absolute path as the kernel would; links followed, the last if `follow`."""
        number, err = ctypes.c_uint32(NONE), ctypes.c_int(0)
        out = ctypes.create_string_buffer(_PATH_ROOM)
        status = _lib.function("resolve")(
            self._open(),
            os.fsencode(path),
            int(follow),
            ctypes.byref(number),
            ctypes.byref(err),
            out,
            _PATH_ROOM,
        )
        if status in (EXISTS, MISSING):
            return Found(status, self.entry(number.value), err.value, "")
        return Found(status, None, 0, os.fsdecode(out.value))

    def answers(self) -> Iterator[Answer]:
        """What ld.so found, sorted by context, requester and name."""
        for i in range(self.n_answers):
            self._open()
            (context, name_off, name_len, by_off, by_len, path_off, path_len, entry) = (
                ANSWER.unpack_from(self._index, self._answers_off + i * ANSWER.size)
            )
            yield Answer(
                context,
                self._string(by_off, by_len),
                self._string(name_off, name_len),
                self._string(path_off, path_len),
                _or_none(entry),
            )

    def content(self, number: int) -> Content:
        """Hash, place and size of a content."""
        self._open()
        if not 0 <= number < self.n_contents:
            raise IndexError(number)
        low, high, raw_off, size = CONTENT.unpack_from(
            self._index, self._contents_off + number * CONTENT.size
        )
        return Content(f"{high:016x}{low:016x}", raw_off, size)

    @property
    def roots(self) -> list[str]:
        """The covered roots."""
        self._open()
        return [
            self._string(*STRING.unpack_from(self._index, self._roots_off + i * STRING.size))
            for i in range(self._n_roots)
        ]

    def _section(self, off: int, length: int) -> bytes:
        self._open()
        return bytes(self._index[off : off + length])

    @property
    def python_table(self) -> bytes:
        """The marshalled import tables."""
        return self._section(self._python_off, self._python_bytes)

    @property
    def meta(self) -> dict[str, Any]:
        """What the builder wrote about the image."""
        if self._meta is None:
            from brigade.load_json import load_json

            try:
                meta = load_json(self._section(self._meta_off, self._meta_bytes) or b"{}")
            except ValueError:
                meta = None
            if not isinstance(meta, dict):
                raise ImageError(
                    f"the description inside {self.path} is not a JSON object",
                    hint="make the image again",
                )
            self._meta = meta
        return self._meta

    # ---- contents ----

    def read(self, path: str) -> bytes:
        """The bytes of a file of the image; also of Brigade's own parts, by their exact path."""
        if path.startswith(OWN_PARTS + "/"):
            entry = self._own_part(path)
        else:
            found = self.lookup(path)
            entry = found.entry if found.status == EXISTS else None
        if entry is None:
            raise ImageError(
                f"{self.path} has no file {path}", hint="see `brigade image ls` for what it has"
            )
        if entry.content is None:
            raise ImageError(f"{self.path} knows {path}, but does not hold its contents")
        return self.read_content(entry.content)

    def _own_part(self, path: str) -> Entry | None:
        """lookup() answers as for a program, for which these paths lie outside the image."""
        return next((entry for entry in self.entries() if entry.path == path), None)

    def read_content(self, number: int, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes of a content, from `offset`; all of them by default."""
        size = self.content(number).size
        if length is None:
            length = max(0, size - offset)
        try:
            buffer = bytearray(length)
        except (MemoryError, OverflowError):
            raise ImageError(
                f"content {number} of {self.path} has {size} bytes, more than memory holds",
                hint="read it in parts",
            ) from None
        if length:
            raw = (ctypes.c_char * length).from_buffer(buffer)
            _lib.call("read_content", self._open(), number, offset, raw, length)
        return bytes(buffer)

    def verify(self, progress: _lib.Progress | None = None) -> None:
        """Reads everything and checks every checksum; `progress(done_bytes, total_bytes)`."""
        guard = _lib.Guard()
        guard.call("verify", self._open(), guard.progress(progress), None)
