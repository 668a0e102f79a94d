"""What a program gives to a file's calls, as C takes it; or a refusal, before ranks meet."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from brigade.io import _buffer, _lib


def handle_of(comm: Any) -> int:
    """An mpi4py communicator as C holds it, widened: a pointer (Open MPI) or an int (MPICH)."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(comm, mpi.Intracomm) or comm == mpi.COMM_NULL:
        raise TypeError(
            f"comm is an intracommunicator of mpi4py or None, not a {type(comm).__name__}"
        )
    size, address = mpi._sizeof(comm), mpi._addressof(comm)
    handle = ctypes.c_int if size == ctypes.sizeof(ctypes.c_int) else ctypes.c_size_t
    return int(handle.from_address(address).value) & (1 << 8 * ctypes.sizeof(ctypes.c_size_t)) - 1


def contiguous(data: Any, writable: bool = False) -> _buffer.Memory:
    """The bytes of `data`, one after another."""
    memory = _buffer.Memory(_buffer.exporter(data, writable, raw=True), writable)
    if memory.contiguous and not memory.has_objects:
        return memory
    refusal = (
        TypeError("the buffer holds Python objects: in memory lie only their addresses")
        if memory.has_objects
        else ValueError("the buffer has gaps: write_array and read_array take strides")
    )
    memory.release()
    raise refusal


def listed(pieces: Iterable[tuple[int, int]], room: int) -> tuple[Any, int]:
    """Pieces as C has them, and how many; the buffer must have exactly their bytes."""
    pairs = [(_lib.number(offset), _lib.number(count)) for offset, count in pieces]
    total = sum(count for _, count in pairs)
    if total != room:
        raise ValueError(f"the pieces have {total} bytes, the buffer {room}")
    listed = (_lib.Piece * max(1, len(pairs)))(*(_lib.Piece(*pair) for pair in pairs))
    return listed, len(pairs)


def start(name: str, shape: Sequence[int], given: Sequence[int] | int | None) -> tuple[int, ...]:
    """The index of a block's first element: zeros unless given."""
    first = (0,) * len(shape) if given is None else _lib.dimensions(given)
    if len(first) != len(shape):
        raise ValueError(f"array {name}: start has {len(first)} dimensions, shape {len(shape)}")
    if any(value < 0 for value in (*first, *shape)):
        raise ValueError(f"array {name}: shape and start are never negative")
    return first


def number(name: str, dtype: Any) -> int:
    """The brg_type that NumPy's dtype, or its name, stands for."""
    text = dtype if isinstance(dtype, str) and dtype in _lib.NUMBERS else _dtype_name(dtype)
    if text not in _lib.NUMBERS:
        known = ", ".join(_lib.NUMBERS)
        raise TypeError(f"array {name}: {dtype} cannot be written; these can: {known}")
    return _lib.NUMBERS[text]


def _dtype_name(dtype: Any) -> str:
    import numpy

    return str(numpy.dtype(dtype).name)
