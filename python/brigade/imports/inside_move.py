"""The collective calls of a broadcast: groups, the image's bytes in bounded segments, agreement.

    comm --Split_type--> node: the ranks that share memory --rank 0 of each--> leaders

What must stay true: all ranks of a group make the same calls in the same order, whatever fails
on one of them; a segment carries whether its sender still can send. Nobody spins while it waits
for what takes long: on a crowded node the one that works needs the processor.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HEAD = 8  # bytes in front of a segment: its length, 0 if the sender failed
_NAP_S, _LONGEST_NAP_S = 0.0005, 0.01


def communicator(comm: Any) -> tuple[Any, Any, str]:
    """(mpi4py.MPI, communicator, "" or why there is none)."""
    if comm is None:
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            return None, None, f"mpi4py cannot be imported: {error}"
        comm = MPI.COMM_WORLD
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(comm, mpi.Intracomm) or comm == mpi.COMM_NULL:
        name = type(comm).__name__
        return None, None, f"broadcast() needs an intracommunicator of mpi4py, not a {name}"
    return mpi, comm, ""


def _place() -> int:
    """A number of 62 bits for this node's memory, as src/world/nodes.c makes one."""
    words = [os.uname().nodename]
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            words.append(file.read())
    except OSError:
        pass
    for path in ("/proc/self/ns/pid", "/dev/shm"):
        try:
            found = os.stat(path)
        except OSError:
            continue
        words.append(f"{path} {found.st_dev} {found.st_ino}")
    number = 14695981039346656037  # FNV-1a
    for byte in "\n".join(words).encode():
        number = (number ^ byte) * 1099511628211 % (1 << 64)
    return number >> 2


def same_node(comm: Any) -> Any:
    """The communicator of the ranks that share this node's memory. MPI's own COMM_TYPE_SHARED is
    each rank alone where MPI was built without shared memory (Debian 14's MPICH 5)."""
    place = _place()
    half = comm.Split(place >> 31, key=comm.rank)
    node = half.Split(place & ((1 << 31) - 1), key=comm.rank)
    half.Free()
    return node


def groups(mpi: Any, comm: Any) -> tuple[Any, Any]:
    """(node, leaders): leaders is None where this rank is not the first of its node."""
    node = same_node(comm)
    leaders = comm.Split(0 if node.rank == 0 else mpi.UNDEFINED, key=comm.rank)
    return node, None if leaders == mpi.COMM_NULL else leaders


def quiet_barrier(comm: Any) -> None:
    """A barrier that sleeps."""
    request, nap = comm.Ibarrier(), _NAP_S
    while not request.Test():
        time.sleep(nap)
        nap = min(2 * nap, _LONGEST_NAP_S)


def tell(comm: Any, what: Any) -> Any:
    """What rank 0 has worked out, to all."""
    quiet_barrier(comm)
    return comm.bcast(what)


def first_failure(mpi: Any, comm: Any, failed: bool) -> int | None:
    """The lowest rank that failed, or None; the same on all."""
    lowest = int(comm.allreduce(comm.rank if failed else comm.size, op=mpi.MIN))
    return lowest if lowest < comm.size else None


def words(comm: Any, failed: int, said: str) -> str:
    """What rank `failed` said, told to all."""
    return str(comm.bcast(said, root=failed))


def move_image(
    mpi: Any, leaders: Any, offer: dict[str, Any], memory: int, segment_bytes: int
) -> str:
    """The image's bytes from its file, read by rank 0 of `leaders`, into everybody's `memory` (a
    descriptor). Returns "" or what went wrong here."""
    buffer, done, problem = bytearray(_HEAD + segment_bytes), 0, ""
    view, fd = memoryview(buffer), -1
    try:
        if leaders.rank == 0:
            try:
                fd = os.open(offer["image"], os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                problem = _cannot("read", offer["image"], error)
        while done < offer["bytes"]:
            size = min(segment_bytes, offer["bytes"] - done)
            if leaders.rank == 0 and not problem:
                problem = _read(fd, view[_HEAD : _HEAD + size], done, offer["image"])
            buffer[:_HEAD] = (0 if problem else size).to_bytes(_HEAD, "little")
            leaders.Bcast([view[: _HEAD + size], mpi.BYTE])
            if int.from_bytes(buffer[:_HEAD], "little") != size:
                break
            if not problem:
                problem = _write(memory, view[_HEAD : _HEAD + size], done)
            done += size
    finally:
        if fd >= 0:
            os.close(fd)
    return problem


def _read(fd: int, into: memoryview, at: int, path: str) -> str:
    done = 0
    try:
        while done < len(into):
            n = os.preadv(fd, [into[done:]], at + done)
            if n == 0:
                return f"{path} is shorter than it was a moment ago"
            done += n
    except OSError as error:
        return _cannot("read", path, error)
    return ""


def _write(fd: int, data: memoryview, at: int) -> str:
    done = 0
    try:
        while done < len(data):
            done += os.pwrite(fd, data[done:], at + done)
    except OSError as error:
        return _cannot("keep", f"the image in the memory of {os.uname().nodename}", error)
    return ""


def _cannot(do: str, what: str, error: OSError) -> str:
    return f"cannot {do} {what}: {error.strerror}"
