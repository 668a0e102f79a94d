"""Checkpoints and shared files: many ranks, few writers, constant memory.

    import brigade.io
    from mpi4py import MPI

    with brigade.io.open(MPI.COMM_WORLD, "ckpt.0042", "w", writers=8, memory="64M") as f:
        f.write_array("temperature", local, shape=(N, N), start=(r0, 0))
        f.attrs["time"] = 1.5

    with brigade.io.open(MPI.COMM_WORLD, "ckpt.0042") as f:
        local = f.read_array("temperature", start=(r0, 0), count=(n, N))

What each rank writes becomes a file when all leave the block: whole, synced, checksummed, or what
was there before stays. include/brigade/io.h has the contracts. Neither mpi4py nor NumPy is needed
where only bytes are written by one process.
"""

from __future__ import annotations

import os
from typing import Any

from brigade.errors import BrigadeIOError
from brigade.io.array import Array, Attributes
from brigade.io.file import File, Request, open_file

__all__ = ["Array", "Attributes", "BrigadeIOError", "File", "Request", "open"]


def open(  # as in io, gzip, tarfile
    comm: Any,
    path: str | os.PathLike[str],
    mode: str = "r",
    *,
    progress: bool | None = None,
    **hints: Any,
) -> File:
    """Opens a file for all ranks of `comm`. Collective.

    comm    an mpi4py communicator, or None: this process alone
    mode    "r" reads; "w" makes a new file, which takes the place of one of that name at commit;
            "x" the same, if the name is free; "r+" changes a file that is there
    progress  unless False, rank 0 shows a line on standard error, if that is a terminal, while a
            call takes longer than a second
    hints   as in docs/reference/io.md, with _ for -, and async_: writers=8, memory="64M".
            BRIGADE_IO in the environment wins over them.
    """
    info = ":".join(_hint(*item) for item in hints.items())
    return open_file(comm, path, mode, info, progress)


def _hint(key: str, value: Any) -> str:
    if isinstance(value, bool):
        value = "yes" if value else "no"
    return f"{key.rstrip('_').replace('_', '-')}={value}"
