"""Memory of other people's objects: where it lies, what its elements are, how they lie.

Anything with the buffer protocol will do (NumPy arrays, bytes, array.array, memoryview), and what
NumPy can look at without copying (PyTorch's tensors on the CPU). NumPy itself is needed for the
latter only.
"""

from __future__ import annotations

import ctypes
import re
import sys
from ctypes import POINTER, c_char_p, c_int, c_ssize_t, c_void_p, py_object
from types import TracebackType
from typing import Any

from brigade.io import _lib

_LETTERS = {letter: number for number, _, _, letter in _lib.TYPES}
_SIGNED = {1: 1, 2: 3, 4: 5, 8: 7}  #: bytes of an integer -> brg_type; unsigned is one more


class _View(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", POINTER(c_ssize_t)),
        ("strides", POINTER(c_ssize_t)),
        ("suboffsets", POINTER(c_ssize_t)),
        ("internal", c_void_p),
    ]


_WRITABLE, _FORMAT, _STRIDES = 0x1, 0x4, 0x18
_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes, _get.restype = [py_object, POINTER(_View), c_int], c_int
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes, _release.restype = [POINTER(_View)], None


class Memory:
    """An object's memory, while this lives as a context manager.

    `exporter` the object, `address`, `shape`, `strides` (bytes, may be negative), `itemsize`,
    `nbytes`, and `letter`, the element's format without its byte order; `swapped` if that is not
    this machine's.
    """

    def __init__(self, exporter: Any, writable: bool = False) -> None:
        self._view = _View()
        _get(exporter, self._view, _STRIDES | _FORMAT | (_WRITABLE if writable else 0))
        self.exporter = exporter
        view, ndim = self._view, self._view.ndim
        self.address = view.buf or 0
        self.itemsize, self.nbytes = view.itemsize, view.len
        self.shape = tuple(view.shape[:ndim]) if ndim else ()
        # those of ctypes say none where there are no gaps
        self.strides = (
            tuple(view.strides[:ndim]) if view.strides else _without_gaps(self.shape, self.itemsize)
        )
        text = (view.format or b"B").decode()
        order, self.letter = (text[0], text[1:]) if text[0] in "@=<>!" else ("@", text)
        foreign = ">!" if sys.byteorder == "little" else "<"
        self.swapped = order in foreign and self.itemsize > 1

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def release(self) -> None:
        _release(self._view)

    @property
    def number(self) -> int | None:
        """The brg_type of the elements, or None."""
        if self.letter in ("l", "L", "n", "N"):
            return _SIGNED[self.itemsize] + (self.letter in "LN")
        return 2 if self.letter == "c" else _LETTERS.get(self.letter)

    @property
    def has_objects(self) -> bool:
        """Whether the elements are Python's objects, or have such among their fields: what lies in
        memory is their addresses."""
        return "O" in re.sub(":[^:]*:", "", self.letter)  # without the fields' names

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie one after another, in C order."""
        wanted = _without_gaps(self.shape, self.itemsize)
        return not self.nbytes or all(
            count == 1 or stride == near
            for count, stride, near in zip(self.shape, self.strides, wanted)
        )


def _without_gaps(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides of elements that lie one after another, in C order."""
    strides = [itemsize]
    for count in reversed(shape[1:]):
        strides.append(strides[-1] * count)
    return tuple(reversed(strides)) if shape else ()


def kind_of(memory: Memory) -> str:
    """What the elements are, as their owner calls it."""
    dtype = getattr(memory.exporter, "dtype", None)
    return f"format '{memory.letter}'" if dtype is None else f"type {dtype}"


# The classes of arrays whose memory says only half of what they are.
_MASKED = (("numpy.ma", "MaskedArray"), ("astropy.utils.masked", "Masked"))


def _refuse_masked(data: Any, writable: bool) -> None:
    """TypeError if `data` is a masked array, also where it masks nothing: ranks are to hear the
    same. Imports nothing: nobody has one whose module is not there."""
    for module, name in _MASKED:
        if isinstance(data, getattr(sys.modules.get(module), name, ())):
            raise TypeError(
                "a masked array would be filled beneath its mask: give its data"
                if writable
                else "a masked array would lose its mask: give its filled(...), or its data and "
                "its mask as two arrays"
            )


def exporter(data: Any, writable: bool = False, raw: bool = False) -> Any:
    """`data` itself if it has the buffer protocol, or NumPy's view of it. `writable`: never a copy,
    which nobody would see filled; nor with `raw`, where the bytes of one would be NumPy's idea."""
    _refuse_masked(data, writable)
    try:
        memoryview(data).release()
        return data
    except (TypeError, ValueError) as error:
        try:
            import numpy
        except ImportError:
            raise TypeError(f"{type(data).__name__} has no buffer, and NumPy is missing") from error
        found = numpy.asanyarray(data)
        _refuse_masked(found, writable)
        found = numpy.asarray(found)
        no_copy = (writable or raw) and found.size
        if no_copy and not numpy.may_share_memory(found, numpy.asarray(data)):
            raise TypeError(
                f"{type(data).__name__} has no memory that can be filled: a NumPy array has"
                if writable
                else f"{type(data).__name__} has no bytes in memory as they are to be written: "
                "bytes and NumPy arrays have, and text when it is encoded"
            ) from None
        return found


def elements(data: Any) -> Memory:
    """Of `exporter`, in this machine's byte order: the one case that copies."""
    found = exporter(data)
    dtype = getattr(found, "dtype", None)
    if getattr(dtype, "kind", "") in ("M", "m"):  # NumPy shows nobody the memory of times
        raise TypeError(f"elements of type {dtype} cannot be written; view('int64') of them can")
    memory = Memory(found)
    if not memory.swapped:
        return memory
    memory.release()
    import numpy

    array = numpy.asarray(found)
    return Memory(array.astype(array.dtype.newbyteorder("=")))
