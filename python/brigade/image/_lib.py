"""include/brigade/image.h for Python: libbrigade.so by ctypes.

Loaded on first use. Structures and signatures mirror the header; nothing else in the package
calls the library.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    c_char,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, Callable

from brigade import paths
from brigade.errors import ImageError
from brigade.native_error import NativeError as Error

Progress = Callable[[int, int], Any]
Lost = Callable[[str, str], Any]

PROGRESS = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)


class Options(ctypes.Structure):
    _fields_ = [("block_bytes", c_uint32), ("level", c_int32), ("threads", c_uint32)]


class RawEntry(ctypes.Structure):
    _fields_ = [
        ("path", c_char_p),
        ("target", c_char_p),
        ("source", c_char_p),
        ("data", c_char_p),
        ("data_bytes", c_uint64),
        *[
            (name, c_uint32)
            for name in (
                "kind",
                "flags",
                "err",
                "order",
                "mode",
                "uid",
                "gid",
                "nlink",
                "blksize",
                "reserved",
            )
        ],
        *[(name, c_uint64) for name in ("size", "blocks", "dev", "ino", "rdev")],
        *[(name, c_int64) for name in ("atime_ns", "mtime_ns", "ctime_ns")],
    ]


class Info(ctypes.Structure):
    _fields_ = [
        ("id", c_char * 33),
        *[(name, c_uint32) for name in ("version", "block_bytes", "n_blocks")],
        *[(name, c_uint64) for name in ("total_bytes", "index_bytes", "raw_bytes", "data_off")],
        *[(name, c_uint32) for name in ("n_entries", "n_contents", "n_answers", "n_roots")],
    ]


LOST = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, POINTER(Error))

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "writer_create": (c_int, [c_char_p, POINTER(Options), POINTER(c_void_p), POINTER(Error)]),
    "writer_destroy": (None, [c_void_p]),
    "writer_add_entry": (c_int, [c_void_p, POINTER(RawEntry), POINTER(Error)]),
    "writer_add_answer": (
        c_int,
        [c_void_p, c_uint64, c_char_p, c_char_p, c_char_p, POINTER(Error)],
    ),
    "writer_add_root": (c_int, [c_void_p, c_char_p, POINTER(Error)]),
    "writer_set_section": (c_int, [c_void_p, c_int, c_char_p, c_size_t, POINTER(Error)]),
    "writer_set_base": (c_int, [c_void_p, c_char_p, POINTER(Error)]),
    "writer_commit": (c_int, [c_void_p, PROGRESS, LOST, c_void_p, c_char_p, POINTER(Error)]),
    "open": (c_int, [c_char_p, POINTER(c_void_p), POINTER(Error)]),
    "close": (None, [c_void_p]),
    "get_info": (None, [c_void_p, POINTER(Info)]),
    "index": (c_void_p, [c_void_p]),
    "read_content": (c_int, [c_void_p, c_uint32, c_uint64, c_void_p, c_size_t, POINTER(Error)]),
    "verify": (c_int, [c_void_p, PROGRESS, c_void_p, POINTER(Error)]),
    "resolve": (
        c_int,
        [c_void_p, c_char_p, c_int, POINTER(c_uint32), POINTER(c_int), c_char_p, c_size_t],
    ),
    "search_context": (c_uint64, [c_char_p, c_char_p]),
}

_library: ctypes.CDLL | None = None


def function(name: str) -> Any:
    """`brg_image_NAME` of the library."""
    global _library
    if _library is None:
        path = paths.native("libbrigade.so")
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ImageError(
                f"cannot load {path}: {error}", hint="build with `make build`"
            ) from None
        for symbol, (result, arguments) in _SIGNATURES.items():
            entry = getattr(library, "brg_image_" + symbol)
            entry.restype, entry.argtypes = result, arguments
        _library = library
    return getattr(_library, "brg_image_" + name)


def call(name: str, *arguments: Any) -> None:
    """Calls a function whose last argument is the error; raises ImageError if it fails."""
    error = Error()
    if function(name)(*arguments, ctypes.byref(error)) != 0:
        raise ImageError(error.text.decode(errors="replace"))


class Guard:
    """Wraps Python callbacks for C: an exception stops the call, and is raised again after it."""

    def __init__(self) -> None:
        self.raised: BaseException | None = None

    def progress(self, report: Progress | None) -> Any:
        if report is None:
            return PROGRESS()
        told = report

        def forward(_user: int, done: int, total: int) -> int:
            return self._run(lambda: told(done, total))

        return PROGRESS(forward)

    def lost(self, report: Lost | None) -> Any:
        if report is None:
            return LOST()
        told = report

        def forward(_user: int, path: bytes, error: Any) -> int:
            words = error.contents.text.decode(errors="replace")
            return self._run(lambda: told(path.decode(errors="surrogateescape"), words))

        return LOST(forward)

    def _run(self, report: Callable[[], Any]) -> int:
        try:
            report()
        except BaseException as error:
            self.raised = error
            return 1
        return 0

    def call(self, name: str, *arguments: Any) -> None:
        try:
            call(name, *arguments)
        except ImageError:
            if self.raised is not None:
                raise self.raised from None
            raise


def search_context(exe: str, ld_library_path: str = "") -> int:
    """Identifies an ld.so search: the executable's path and LD_LIBRARY_PATH at its start."""
    import os

    result: int = function("search_context")(os.fsencode(exe), os.fsencode(ld_library_path))
    return result
