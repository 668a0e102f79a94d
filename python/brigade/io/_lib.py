"""include/brigade/io.h for Python: libbrigade_io.so by ctypes.

Loaded on first use. Structures and signatures mirror the header; nothing else in the package calls
the library. It joins the MPI that is in this process already.
"""

from __future__ import annotations

import ctypes
import operator
import os
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from brigade import paths
from brigade.errors import BrigadeIOError
from brigade.native_error import NativeError

READ, WRITE, CREATE, EXCLUSIVE = 1, 2, 4, 8
MAX_DIMS = 16
ATTRIBUTE_BYTES = 1 << 20  #: of one attribute, at most

#: (brg_type, NumPy's name, bytes, what struct and memoryview call it); TEXT is of attributes only
TYPES = [
    (1, "int8", 1, "b"),
    (2, "uint8", 1, "B"),
    (3, "int16", 2, "h"),
    (4, "uint16", 2, "H"),
    (5, "int32", 4, "i"),
    (6, "uint32", 4, "I"),
    (7, "int64", 8, "q"),
    (8, "uint64", 8, "Q"),
    (9, "float32", 4, "f"),
    (10, "float64", 8, "d"),
    (11, "complex64", 8, "Zf"),
    (12, "complex128", 16, "Zd"),
    (13, "bool", 1, "?"),
]
TEXT = 14
NUMBERS = {name: number for number, name, _, _ in TYPES}
NAMES = {number: name for number, name, _, _ in TYPES}
SIZES = {number: size for number, _, size, _ in TYPES}
FORMATS = {number: letter for number, _, _, letter in TYPES}


class Piece(ctypes.Structure):
    _fields_ = [("offset", c_uint64), ("bytes", c_uint64)]


class RawArray(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("type", c_int),
        ("ndims", c_int),
        ("shape", c_uint64 * MAX_DIMS),
        ("offset", c_uint64),
    ]


_FILE, _ERROR = c_void_p, POINTER(NativeError)
_NUMBERS, _STRIDES = POINTER(c_uint64), POINTER(c_int64)

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "file_open_handle": (
        c_int,
        [c_size_t, c_char_p, c_uint, c_char_p, POINTER(_FILE), _ERROR],
    ),
    "file_open_alone": (c_int, [c_char_p, c_uint, c_char_p, POINTER(_FILE), _ERROR]),
    "file_write": (c_int, [_FILE, c_uint64, c_void_p, c_size_t, _ERROR]),
    "file_write_pieces": (c_int, [_FILE, POINTER(Piece), c_size_t, c_void_p, _ERROR]),
    "file_read": (c_int, [_FILE, c_uint64, c_void_p, c_size_t, _ERROR]),
    "file_read_pieces": (c_int, [_FILE, POINTER(Piece), c_size_t, c_void_p, _ERROR]),
    "file_size": (c_uint64, [_FILE]),
    "file_commit": (c_int, [_FILE, _ERROR]),
    "file_commit_start": (c_int, [_FILE, POINTER(c_void_p), _ERROR]),
    "request_test": (c_int, [c_void_p, POINTER(c_int), _ERROR]),
    "request_wait": (c_int, [c_void_p, _ERROR]),
    "file_close": (c_int, [_FILE, _ERROR]),
    "file_explain": (c_char_p, [_FILE]),
    "file_on_progress": (None, [_FILE, c_void_p, c_void_p]),
    "file_write_array": (
        c_int,
        [_FILE, c_char_p, c_int, c_int, _NUMBERS, _NUMBERS, _NUMBERS, _STRIDES, c_void_p, _ERROR],
    ),
    "file_read_array": (
        c_int,
        [_FILE, c_char_p, _NUMBERS, _NUMBERS, _STRIDES, c_void_p, _ERROR],
    ),
    "file_find_array": (c_int, [_FILE, c_char_p, POINTER(RawArray), _ERROR]),
    "file_array_count": (c_size_t, [_FILE]),
    "file_array_at": (c_int, [_FILE, c_size_t, POINTER(RawArray)]),
    "file_set_attribute": (
        c_int,
        [_FILE, c_char_p, c_char_p, c_int, c_size_t, c_void_p, _ERROR],
    ),
    "file_get_attribute": (
        c_int,
        [_FILE, c_char_p, c_char_p, POINTER(c_int), POINTER(c_size_t), POINTER(c_void_p), _ERROR],
    ),
    "file_attribute_count": (c_size_t, [_FILE, c_char_p]),
    "file_attribute_name": (c_char_p, [_FILE, c_char_p, c_size_t]),
}

_library: ctypes.CDLL | None = None


def function(name: str) -> Any:
    """`brg_NAME` of the library."""
    global _library
    if _library is None:
        path = paths.native("libbrigade_io.so")
        library = ctypes.CDLL(str(path))
        for symbol, (result, arguments) in _SIGNATURES.items():
            entry = getattr(library, "brg_" + symbol)
            entry.restype, entry.argtypes = result, arguments
        _library = library
    return getattr(_library, "brg_" + name)


def text(words: str | bytes) -> bytes:
    """What C is given for a name: it would take one with a NUL for another."""
    if not isinstance(words, (str, bytes)):
        raise TypeError(f"a name is text, not {type(words).__name__}")
    found = words.encode() if isinstance(words, str) else words
    if b"\0" in found:
        raise ValueError(f"embedded null character in {words!r}")
    return found


def call(name: str, *arguments: Any) -> None:
    """Calls a function whose last argument is the error; raises BrigadeIOError if it fails."""
    error = NativeError()
    status = function(name)(*arguments, ctypes.byref(error))
    if status:
        raise BrigadeIOError(
            -status,
            error.text.decode(errors="replace"),
            os.fsdecode(error.path) or None,
            rank=error.rank if error.rank >= 0 else None,
            offset=error.offset if error.offset >= 0 else None,
        )


def number(value: Any) -> int:
    """An offset, count, start or extent. Of one that C cannot hold ctypes would give it the low 64
    bits; the largest there is C refuses, on every rank alike."""
    found = operator.index(value)
    return found if 0 <= found < 1 << 64 else (1 << 64) - 1


def dimensions(values: Any) -> tuple[int, ...]:
    """A shape, start or count: a number for each dimension, or the only one's number."""
    try:
        listed = tuple(values)
    except TypeError:
        listed = (values,)
    return tuple(operator.index(value) for value in listed)


def numbers(values: Any) -> Any:
    """Counts, starts or a shape as C has them."""
    return (c_uint64 * max(1, len(values)))(*map(number, values))


def signed(values: Any) -> Any:
    """Strides as C has them."""
    return (c_int64 * max(1, len(values)))(*values)
