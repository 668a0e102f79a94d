"""Inside a program: one broadcast brings the image to every node, later imports come from there.

    rank 0      finds the image and checks it                  inside_image.py
    leaders     one a node: get its bytes, segment by segment  inside_move.py
                unpack them into the staged folder             inside_node.py
    all ranks   start the python view on the staged folder     inside_node.py

`broadcast` is the only collective call: no import waits for another rank, whatever the ranks
import and in whatever order. Until the view has started every import is the plain one, so this
file and those that all ranks need use `os` and `sys` only.

What must stay true: after any failure the program goes on with plain imports (or, with `strict`,
every rank raises the same error), and nothing is left in the memory of any node.
"""

from __future__ import annotations

import os
import sys
import time

from brigade.errors import BrigadeError, ImageError, StageError, UsageError
from brigade.imports import inside_move, inside_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from brigade.imports.inside_node import Place, View

_SEGMENT_BYTES = 4 << 20
_Error = (ImageError, StageError, UsageError)


class Broadcast:
    """What one call of `broadcast` did; true if imports of this rank are answered from memory.

    `reason` is "" or says why imports are plain. `seconds` of the whole call; `image_bytes` were
    sent, once to each of `nodes`, and became `node_bytes` there; `ranks` have the view, of `size`.
    """

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        self.image = ""
        self.seconds = 0.0
        self.image_bytes = self.node_bytes = 0
        self.nodes = self.ranks = self.size = 0
        self._view: View | None = None

    def __bool__(self) -> bool:
        return self._view is not None

    @property
    def answered(self) -> int:
        """Look-ups of this rank's imports that were answered from memory."""
        return self._view.counted()[0] if self._view else 0

    @property
    def misses(self) -> dict[str, int]:
        """Look-ups of this rank's imports that went to the file system, by cause."""
        return self._view.counted()[1] if self._view else {}

    def as_json(self) -> dict[str, Any]:
        """All figures, for machines."""
        names = ("image", "seconds", "image_bytes", "node_bytes", "nodes", "ranks", "size")
        figures: dict[str, Any] = {name: getattr(self, name) for name in names}
        return {
            "active": bool(self), "reason": self.reason, **figures,
            "answered": self.answered, "misses": self.misses,
        }  # fmt: skip

    def __str__(self) -> str:
        if not self:
            return f"imports are plain: {self.reason}"
        missed = ", ".join(f"{count} {cause}" for cause, count in self.misses.items())
        return (
            f"{self.image}: {self.image_bytes / 1e6:,.1f} MB to {self.nodes} "
            f"node{'s' * (self.nodes != 1)} in {self.seconds:.2f} s; {self.ranks} of {self.size} "
            f"ranks import from memory; here {self.answered} look-ups answered, "
            f"misses: {missed or 'none'}"
        )


class _Failure(Exception):
    """Known to every rank: kind of error (index into _Error) and words for people."""


_last = Broadcast("broadcast() was not called")


def report() -> Broadcast:
    """What the last call of `broadcast` in this process did, with counters as they are now."""
    return _last


def broadcast(
    comm: Any = None,
    image: str | os.PathLike[str] | None = None,
    *,
    cover: Iterable[str] = (),
    strict: bool = False,
    segment_bytes: int = _SEGMENT_BYTES,
) -> Broadcast:
    """Answer later imports of all ranks of `comm` from one copy of an image in each node's memory.

    Collective over `comm`, an mpi4py intracommunicator (default: COMM_WORLD). `image`: a file, or
    the name of one in the cache; by default the one that `brigade run` keeps for this program
    (with these `--cover` folders). Only what rank 0 passes counts for `image` and `cover`.

    Where that is not possible rank 0 says so on standard error and imports stay plain; with
    `strict` every rank raises ImageError (no image, or it is stale or damaged), StageError (no
    room, no view) or UsageError (no communicator).
    """
    global _last
    start = time.monotonic()
    result = Broadcast()
    mpi, comm, reason = inside_move.communicator(comm)
    try:
        if reason:
            raise _Failure(2, reason)
        result.size = comm.size
        before = comm.allreduce(int(bool(_last) or inside_node.under_run()))
        if before:
            result.reason = _why_not_again(comm, before)
            return _last or result
        _bring(mpi, comm, result, (image, tuple(cover), max(segment_bytes, 1)))
    except _Failure as failure:
        kind, reason = failure.args
        if strict:
            raise _Error[kind](reason) from None
        if not result:
            result.reason = reason
        if comm.rank == 0 if comm is not None else _first_of_job():
            _warn(reason)
    finally:
        result.seconds = time.monotonic() - start
        if not _last:
            _last = result
    return result


def _why_not_again(comm: Any, before: int) -> str:
    """Called once more, or under `brigade run`: those who have a view keep it."""
    if inside_node.under_run():
        return "`brigade run` started this program and answers its imports"
    return f"{before} of {comm.size} ranks have an image already: call it once, in all"


def _bring(mpi: Any, comm: Any, result: Broadcast, wish: tuple[Any, Any, int]) -> None:
    """The course of a broadcast; fills `result` in. Raises _Failure, on every rank or on none."""
    image, cover, segment_bytes = wish
    offer = inside_move.tell(comm, _offer(image, cover) if comm.rank == 0 else None)
    if offer["reason"]:
        raise _Failure(0, offer["reason"])
    node, leaders = inside_move.groups(mpi, comm)
    try:
        place, said = None, ""
        if leaders:
            place, said = _to_node(mpi, leaders, offer, segment_bytes)
        inside_move.quiet_barrier(comm)
        job = node.bcast(place.job if place else "")
        failed = inside_move.first_failure(mpi, comm, bool(said))
        if failed is not None:
            if place:
                place.drop()
            raise _Failure(1, inside_move.words(comm, failed, said))
        result._view, problem = _start_view(offer, job, node.rank, comm.rank)
        result.ranks = comm.allreduce(int(result._view is not None))
        result.nodes = comm.allreduce(int(place is not None))
    finally:
        node.Free()
        if leaders:
            leaders.Free()
    result.image, result.image_bytes = offer["image"], offer["bytes"]
    result.node_bytes = offer["raw_bytes"]
    if place:
        place.release()  # the view of this rank keeps the folder alive now
    if result.ranks < comm.size:
        failed = inside_move.first_failure(mpi, comm, result._view is None)
        assert failed is not None
        problem = inside_move.words(comm, failed, problem)
        raise _Failure(1, f"{comm.size - result.ranks} of {comm.size} ranks: {problem}")


def _offer(image: Any, cover: Any) -> dict[str, Any]:
    """What rank 0 tells all others. Whatever goes wrong here is told, too: they are waiting."""
    from brigade.imports.inside_image import offer

    try:
        return offer(image, cover)
    except BrigadeError as error:
        return {"reason": f"{error.message}" + (f" ({error.hint})" if error.hint else "")}
    except Exception as error:
        return {"reason": f"the image cannot be used: {type(error).__name__}: {error}"}


def _to_node(
    mpi: Any, leaders: Any, offer: dict[str, Any], segment_bytes: int
) -> tuple[Place, str]:
    """On a leader: the image into this node's memory. (Place, what went wrong or "")."""
    place = inside_node.Place(offer)
    said = place.make_room()
    if inside_move.first_failure(mpi, leaders, bool(said)) is None:
        said = inside_move.move_image(mpi, leaders, offer, place.memory, segment_bytes)
        if inside_move.first_failure(mpi, leaders, bool(said)) is None:
            said = place.unpack()
    place.forget_image()
    return place, said


def _start_view(offer: dict[str, Any], job: str, slot: int, rank: int) -> tuple[View | None, str]:
    try:
        return inside_node.View(offer, job, slot, rank), ""
    except Exception as error:
        return None, f"the import view cannot start: {error}"


def _first_of_job() -> bool:
    """Whether the launcher calls this rank the first; where it does not say, every rank is."""
    names = ("PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
    return next((os.environ[name] for name in names if name in os.environ), "0") == "0"


def _warn(reason: str) -> None:
    sys.stderr.write(f"brigade: {reason}\nbrigade: imports are plain\n")
    sys.stderr.flush()
