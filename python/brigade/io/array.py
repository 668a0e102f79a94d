"""Arrays of a file by name, and attributes."""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from brigade.errors import BrigadeIOError
from brigade.io import _buffer, _lib

if TYPE_CHECKING:
    from brigade.io.file import File


class Attributes(MutableMapping[str, Any]):
    """Names and values: text, numbers, and one-dimensional arrays of numbers.

    Setting is collective in that every rank does it; the values kept are rank 0's. No messages are
    sent. Reading is local. One element comes back as a number, more as a NumPy array (a list where
    NumPy is missing), text as str.
    """

    def __init__(self, file: File, array: str | None) -> None:
        self._file = file
        self._array = None if array is None else _lib.text(array)

    def _get(self, name: str) -> tuple[int, int, bytes]:
        """(brg_type, number of elements, their bytes)."""
        number, count, values = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_void_p()
        try:
            _lib.call(
                "file_get_attribute", self._file.handle, self._array, _lib.text(name),
                ctypes.byref(number), ctypes.byref(count), ctypes.byref(values),
            )  # fmt: skip
        except BrigadeIOError as error:
            if error.errno in (errno.ENODATA, errno.ENOENT):
                raise KeyError(name) from None
            raise
        size = 1 if number.value == _lib.TEXT else _lib.SIZES[number.value]
        return number.value, count.value, ctypes.string_at(values, count.value * size)

    def __getitem__(self, name: str) -> Any:
        number, count, data = self._get(name)
        if number == _lib.TEXT:
            return data.decode(errors="surrogateescape")
        return _values(number, data, count)

    def typed(self, name: str) -> Any:
        """Text as str, all else as a one-dimensional NumPy array of the type it was set with."""
        number, _, data = self._get(name)
        if number == _lib.TEXT:
            return data.decode(errors="surrogateescape")
        import numpy

        return numpy.frombuffer(data, dtype=_lib.NAMES[number])

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(value, str):
            data = value.encode()
            self._set(name, _lib.TEXT, len(data), data)
            return
        number, data, count = _packed(name, value)
        self._set(name, number, count, data)

    def _set(self, name: str, number: int, count: int, data: bytes) -> None:
        if len(data) > _lib.ATTRIBUTE_BYTES:
            raise ValueError(f"attribute {name} has {len(data)} bytes: make it an array")
        _lib.call(
            "file_set_attribute", self._file.handle, self._array, _lib.text(name),
            number, count, data,
        )  # fmt: skip

    def __delitem__(self, name: str) -> None:
        raise TypeError("attributes cannot be removed")

    def __len__(self) -> int:
        return int(_lib.function("file_attribute_count")(self._file.handle, self._array))

    def __iter__(self) -> Iterator[str]:
        name = _lib.function("file_attribute_name")
        for i in range(len(self)):
            yield name(self._file.handle, self._array, i).decode()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)})"


def _values(number: int, data: bytes, count: int) -> Any:
    try:
        import numpy
    except ImportError:
        if number in (11, 12):
            parts = struct.unpack(f"{2 * count}{_lib.FORMATS[number][1]}", data)
            found: list[Any] = [complex(*pair) for pair in zip(parts[::2], parts[1::2])]
        else:
            found = list(struct.unpack(f"{count}{_lib.FORMATS[number]}", data))
        return found[0] if count == 1 else found
    array = numpy.frombuffer(data, dtype=_lib.NAMES[number])
    return array[0].item() if count == 1 else array


_SCALARS = {bool: (13, "?"), int: (7, "q"), float: (10, "d")}


def _packed(name: str, value: Any) -> tuple[int, bytes, int]:
    """(brg_type, bytes, number of elements)."""
    if type(value) in _SCALARS:
        number, letter = _SCALARS[type(value)]
        if type(value) is int and value > 2**63 - 1:
            number, letter = 8, "Q"
        try:
            return number, struct.pack(letter, value), 1
        except struct.error:
            raise TypeError(f"attribute {name}: {value} has more than 64 bits") from None
    if type(value) is complex:
        return 12, struct.pack("dd", value.real, value.imag), 1
    with _buffer.elements(value) as memory:
        if memory.number is None or len(memory.shape) > 1:
            what = f"{len(memory.shape)} dimensions of {_buffer.kind_of(memory)}"
            raise TypeError(
                f"attribute {name}: text, numbers and one-dimensional arrays of numbers can be "
                f"attributes, {type(value).__name__} ({what}) cannot"
            )
        data = memoryview(memory.exporter).tobytes()
        return memory.number, data, len(data) // memory.itemsize


class Array:
    """One array of a file that is open. Local: asking it sends no message."""

    def __init__(self, file: File, raw: _lib.RawArray) -> None:
        self._file = file
        self.name: str = raw.name.decode(errors="replace")
        self.shape: tuple[int, ...] = tuple(raw.shape[: raw.ndims])
        self.offset: int = raw.offset  #: byte of element 0 in the file
        self.number: int = raw.type  #: brg_type of its elements

    @property
    def dtype(self) -> Any:
        """NumPy's dtype, or its name where NumPy is missing."""
        try:
            import numpy
        except ImportError:
            return self.type
        return numpy.dtype(self.type)

    @property
    def type(self) -> str:
        """NumPy's name of the type of its elements."""
        return _lib.NAMES[self.number]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        n = 1
        for count in self.shape:
            n *= count
        return n

    @property
    def nbytes(self) -> int:
        return self.size * _lib.SIZES[self.number]

    @property
    def attrs(self) -> Attributes:
        return Attributes(self._file, self.name)

    def __repr__(self) -> str:
        return f"<array {self.name}: {self.type} {list(self.shape)}>"
