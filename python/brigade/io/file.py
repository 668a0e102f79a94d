"""Files that all ranks of a communicator write and read."""

from __future__ import annotations

import ctypes
import errno
import operator
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from brigade.errors import BrigadeIOError
from brigade.io import _arguments, _buffer, _lib, watching
from brigade.io.array import Array, Attributes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MODES = {
    "r": _lib.READ,
    "w": _lib.WRITE | _lib.CREATE,
    "x": _lib.WRITE | _lib.CREATE | _lib.EXCLUSIVE,
    "r+": _lib.WRITE,
}


def open_file(
    comm: Any, path: str | os.PathLike[str], mode: str, info: str, progress: bool | None = None
) -> File:
    """See `brigade.io.open`."""
    if mode not in _MODES:
        raise ValueError(f"mode {mode!r}: it is one of {', '.join(_MODES)}")
    name, handle = os.fspath(path), ctypes.c_void_p()
    arguments = _lib.text(os.fsencode(name)), _MODES[mode], _lib.text(info), ctypes.byref(handle)
    if comm is None:
        shows = watching.wanted(progress, 0)
        _lib.call("file_open_alone", *arguments)
    else:
        ours = _arguments.handle_of(comm)
        shows = watching.wanted(progress, comm.Get_rank())
        _lib.call("file_open_handle", ours, *arguments)
    file = File(handle, os.fsdecode(name), mode)
    if shows:
        file._show_progress()
    return file


class Request:
    """A commit that goes on while the program does. Both calls are collective."""

    def __init__(self, file: File, handle: ctypes.c_void_p) -> None:
        self._file = file
        self._handle: ctypes.c_void_p | None = handle
        self._failure: BrigadeIOError | None = None

    def test(self) -> bool:
        """Whether the commit is done, the same on every rank; raises its failure."""
        if self._handle is not None:
            done = ctypes.c_int()
            self._ask("request_test", ctypes.byref(done))
            if not done.value:
                return False
            self._handle = None
        if self._failure is not None:
            raise self._failure
        return True

    def wait(self) -> None:
        """Returns when the commit is done; raises its failure."""
        if self._handle is not None:
            self._ask("request_wait")
            self._handle = None
        if self._failure is not None:
            raise self._failure

    def _ask(self, name: str, *arguments: Any) -> None:
        if self._file._is_inherited:
            raise ValueError("a commit is waited for by the process that began it")
        try:
            _lib.call(name, self._handle, *arguments)
        except BrigadeIOError as error:  # the request is done, and freed
            self._failure, self._handle = error, None
            raise


class File:
    """A file open on all ranks of a communicator; made by `brigade.io.open`.

    Every method is collective unless it says local; but the number of writes (and of reads) may
    differ from rank to rank: a rank that has no more goes on to commit, or close, and serves the
    others there. A failure is the same BrigadeIOError on every rank. After what is refused (bad
    arguments of some rank, reading past the end) the file goes on; after any other failure it can
    only be closed.

    As a context manager it commits what was written, and closes. If the block is left by an
    exception nothing is committed; ranks that wait in their own calls raise BrigadeIOError with
    errno ECANCELED.

    It is of the process that opened it: in a child made by fork() every call is a ValueError, and
    closing it, or leaving the block, does nothing.
    """

    def __init__(self, handle: ctypes.c_void_p, path: str, mode: str) -> None:
        self._handle: ctypes.c_void_p | None = handle
        self._process = os.getpid()
        self._request: Request | None = None
        self._committed = False
        self._watch: watching.Watch | None = None
        self.name = path
        self.mode = mode

    @property
    def handle(self) -> ctypes.c_void_p:
        """What C calls brg_file *."""
        if self._handle is None:
            raise ValueError(f"{self.name} is closed")
        if self._is_inherited:
            raise ValueError(f"{self.name} is open in the process that this one was forked from")
        return self._handle

    @property
    def _is_inherited(self) -> bool:
        """This process is a child of the one that opened the file, by fork: what it does to the
        memory that ranks share would be taken for the parent's doing."""
        return os.getpid() != self._process

    def _show_progress(self) -> None:
        """Local. From now on calls that take long show how far they are, on standard error."""
        self._watch = watching.Watch(self.handle, os.path.basename(self.name))

    @property
    def closed(self) -> bool:
        return self._handle is None

    # ---- bytes ----

    def write(self, offset: int = 0, data: Any = None) -> None:
        """Writes the bytes of `data`, anything with a contiguous buffer, at `offset`; None takes
        part and writes nothing."""
        if data is None:
            _lib.call("file_write", self.handle, 0, None, 0)
            return
        with _arguments.contiguous(data) as memory:
            at = _lib.number(offset)
            _lib.call("file_write", self.handle, at, memory.address, memory.nbytes)

    def write_pieces(self, pieces: Iterable[tuple[int, int]], data: Any) -> None:
        """Writes pieces (offset, number of bytes), any order, whose bytes lie one after another in
        `data`. Of pieces that overlap the last one's bytes stay."""
        with _arguments.contiguous(data) as memory:
            listed, n = _arguments.listed(pieces, memory.nbytes)
            _lib.call("file_write_pieces", self.handle, listed, n, memory.address)

    def read(self, offset: int, count: int) -> bytes:
        """`count` bytes from `offset` on."""
        data = bytearray(operator.index(count))  # of an array, bytearray would make a copy
        self.read_into(offset, data)
        return bytes(data)

    def read_into(self, offset: int, out: Any) -> None:
        """Fills `out`, anything with a writable contiguous buffer, from `offset` on."""
        with _arguments.contiguous(out, writable=True) as memory:
            at = _lib.number(offset)
            _lib.call("file_read", self.handle, at, memory.address, memory.nbytes)

    def read_pieces(self, pieces: Iterable[tuple[int, int]], out: Any) -> None:
        """Reads pieces (offset, number of bytes) one after another into `out`."""
        with _arguments.contiguous(out, writable=True) as memory:
            listed, n = _arguments.listed(pieces, memory.nbytes)
            _lib.call("file_read_pieces", self.handle, listed, n, memory.address)

    @property
    def size(self) -> int:
        """Local. Bytes written and agreed on so far, or of the file that is read."""
        return int(_lib.function("file_size")(self.handle))

    # ---- arrays ----

    def write_array(
        self,
        name: str,
        data: Any,
        *,
        shape: Sequence[int] | int | None = None,
        start: Sequence[int] | int | None = None,
        dtype: Any = None,
    ) -> None:
        """Writes this rank's block of an array.

        `data` is a NumPy array or anything with a buffer, of the block's shape and in any strides:
        nothing is copied, but where the byte order is not this machine's. A masked array is a
        TypeError: `data.filled(value)` is written, or `data.data` and `numpy.ma.getmaskarray(data)`
        as two arrays. `shape` is that of the
        whole array (default: the block's), `start` the index of the block's first element in it
        (default: zeros). Name, shape and type are the same on every rank, and every rank makes the
        first call for each array in the same order; a rank that has nothing of it gives None as
        data, with shape and dtype, or a block with a dimension of 0.
        """
        if data is None:
            if shape is None or dtype is None:
                raise ValueError(f"array {name}: without data it needs shape and dtype")
            whole = _lib.dimensions(shape)
            first = _arguments.start(name, whole, None)
            self._write_block(name, _arguments.number(name, dtype), whole, first, None, None)
            return
        with _buffer.elements(data) as memory:
            if memory.number is None:
                raise TypeError(
                    f"array {name}: elements of {_buffer.kind_of(memory)} cannot be "
                    f"written; these can: {', '.join(_lib.NUMBERS)}"
                )
            if dtype is not None and _arguments.number(name, dtype) != memory.number:
                raise TypeError(f"array {name}: the data is {_lib.NAMES[memory.number]}")
            whole = memory.shape if shape is None else _lib.dimensions(shape)
            if len(whole) != len(memory.shape):
                raise ValueError(
                    f"array {name}: a block of {len(memory.shape)} dimensions in an array of "
                    f"{len(whole)}"
                )
            first = _arguments.start(name, whole, start)
            self._write_block(name, memory.number, whole, first, memory.shape, memory)

    def _write_block(
        self,
        name: str,
        number: int,
        shape: Sequence[int],
        start: Sequence[int],
        count: Sequence[int] | None,
        memory: _buffer.Memory | None,
    ) -> None:
        _lib.call(
            "file_write_array", self.handle, _lib.text(name), number, len(shape),
            _lib.numbers(shape), _lib.numbers(start),
            _lib.numbers(count if count is not None else [0] * len(shape)),
            _lib.signed(memory.strides) if memory else None,
            memory.address if memory else None,
        )  # fmt: skip

    def read_array(
        self,
        name: str,
        *,
        start: Sequence[int] | int | None = None,
        count: Sequence[int] | int | None = None,
        out: Any = None,
    ) -> NDArray[Any]:
        """Reads a block of an array: `count` elements of each dimension (default: the rest) from
        `start` on (default: zeros), by any number of ranks, each its own block.

        Returns a new NumPy array, or `out`: anything with a writable buffer of the block's shape,
        type and byte order, in any strides.
        """
        array = self[name]
        first = _arguments.start(name, array.shape, start)
        if count is None:
            block = tuple(max(0, whole - at) for whole, at in zip(array.shape, first))
        else:
            block = _lib.dimensions(count)
        if out is None:
            import numpy

            out = numpy.empty(block, dtype=array.dtype)
        with _buffer.Memory(_buffer.exporter(out, writable=True), writable=True) as memory:
            if memory.number != array.number or memory.shape != block or memory.swapped:
                raise ValueError(
                    f"array {name}: out must be {_lib.NAMES[array.number]} of shape {block}"
                )
            if len(block) != array.ndim:
                raise ValueError(f"array {name} has {array.ndim} dimensions, not {len(block)}")
            _lib.call(
                "file_read_array", self.handle, _lib.text(name), _lib.numbers(first),
                _lib.numbers(block), _lib.signed(memory.strides), memory.address,
            )  # fmt: skip
        return out  # type: ignore[no-any-return]

    def __getitem__(self, name: str) -> Array:
        """Local. The array of that name, or KeyError."""
        raw = _lib.RawArray()
        try:
            _lib.call("file_find_array", self.handle, _lib.text(name), ctypes.byref(raw))
        except BrigadeIOError as error:
            if error.errno == errno.ENOENT:
                raise KeyError(error.strerror) from None
            raise
        return Array(self, raw)

    def __contains__(self, name: str) -> bool:
        try:
            self[name]
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        """Local. Number of arrays; BrigadeIOError where the index is damaged."""
        if "" in self:  # never; but asking for a name finds a damaged index
            raise KeyError("")
        return int(_lib.function("file_array_count")(self.handle))

    @property
    def arrays(self) -> dict[str, Array]:
        """Local. All arrays by name, in the order in which they were first written."""
        raw, found = _lib.RawArray(), {}
        for i in range(len(self)):
            _lib.function("file_array_at")(self.handle, i, ctypes.byref(raw))
            array = Array(self, raw)
            found[array.name] = array
        return found

    @property
    def attrs(self) -> Attributes:
        """Attributes of the file itself."""
        return Attributes(self, None)

    # ---- the end ----

    def commit(self, wait: bool = True) -> Request | None:
        """The file is there under its name, synced and checksummed, whole; or (on failure) what
        was there before. After it the file can only be closed. wait=False returns a Request."""
        if wait:
            _lib.call("file_commit", self.handle)
            self._committed = True
            return None
        handle = ctypes.c_void_p()
        _lib.call("file_commit_start", self.handle, ctypes.byref(handle))
        self._committed = True
        self._request = Request(self, handle)
        return self._request

    def close(self) -> None:
        """Collective, and local after a failure. What was not committed leaves nothing behind."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        if self._is_inherited:
            return
        try:
            _lib.call("file_close", handle)
        finally:
            if self._watch is not None:
                self._watch.close()

    def explain(self) -> str:
        """Local. What was chosen, and why: one fact a line."""
        return str((_lib.function("file_explain")(self.handle) or b"").decode(errors="replace"))

    def __enter__(self) -> File:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._finish()
        except BaseException:
            self._close_quietly()
            raise
        if error is None:
            self.close()
        else:
            self._close_quietly()

    def _finish(self) -> None:
        if self._is_inherited:
            return
        if self._request is not None:
            self._request.wait()
        elif self.mode != "r" and not self._committed and not self.closed:
            self.commit()

    def _close_quietly(self) -> None:
        """Closes; what goes wrong then follows from what is being raised already."""
        try:
            self.close()
        except BrigadeIOError:
            pass

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and not self._is_inherited:
            warnings.warn(f"{self.name} was never closed", ResourceWarning, stacklevel=2)

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"open, mode {self.mode}"
        return f"<brigade.io.File {self.name}: {state}>"
