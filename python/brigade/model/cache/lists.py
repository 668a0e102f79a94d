"""Which page goes when room is needed: the lists of the kernel, or a strict queue. Pure.

Pages are chunks here. Of the kernel's lists (mm/vmscan.c, mm/workingset.c): a page comes in at the
head of the inactive list; read twice, it becomes active; the inactive list's tail is reclaimed. One
that is dirty there cannot be, and is put onto the active list until it is written; then it is the
first to go. While the active list is the longer one (times a ratio that grows with the memory), its
tail is made inactive. One that is read again so soon that as many active bytes could have made
room for it becomes active at once.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Protocol

GIB = 1 << 30


class Chunk:
    """Some pages of a file that are cached; `dirty`, `writing`: so many bytes of them are."""

    __slots__ = (
        "active", "bytes", "dirty", "file", "index", "referenced", "rotate", "writing",
    )  # fmt: skip

    def __init__(self, file: str, index: int, bytes_: int) -> None:
        self.file, self.index, self.bytes = file, index, bytes_
        self.dirty = self.writing = 0
        self.active = self.referenced = self.rotate = False

    @property
    def key(self) -> tuple[str, int]:
        return self.file, self.index


class Lists(Protocol):
    def add(self, chunk: Chunk, by_read: bool) -> None: ...
    def touch(self, chunk: Chunk) -> None:
        """It was read."""

    def written(self, chunk: Chunk) -> None:
        """It is clean now."""

    def remove(self, chunk: Chunk) -> None: ...
    def victim(self) -> Chunk | None:
        """What is to go next, taken out; None if all that may go waits to be written."""


class Fifo:
    """First in, first out, whatever is done to it meanwhile."""

    def __init__(self) -> None:
        self._queue: OrderedDict[tuple[str, int], Chunk] = OrderedDict()

    def add(self, chunk: Chunk, by_read: bool) -> None:
        self._queue[chunk.key] = chunk

    def touch(self, chunk: Chunk) -> None:
        pass

    def written(self, chunk: Chunk) -> None:
        pass

    def remove(self, chunk: Chunk) -> None:
        del self._queue[chunk.key]

    def victim(self) -> Chunk | None:
        oldest = next(iter(self._queue.values()), None)
        if oldest is None or oldest.dirty or oldest.writing:
            return None
        return self._queue.popitem(last=False)[1]


class TwoLists:
    """The kernel's active and inactive list; the first of a dict is the tail."""

    def __init__(self) -> None:
        self.inactive: OrderedDict[tuple[str, int], Chunk] = OrderedDict()
        self.active: OrderedDict[tuple[str, int], Chunk] = OrderedDict()
        self.active_bytes = self.inactive_bytes = 0
        self._age = 0  # bytes that were evicted or made active
        self._shadows: dict[tuple[str, int], int] = {}  # age at which one was evicted

    def add(self, chunk: Chunk, by_read: bool) -> None:
        left = self._shadows.pop(chunk.key, None)
        again = by_read and left is not None and self._age - left <= self.active_bytes
        self._put(chunk, active=again)
        if again:
            self._age += chunk.bytes

    def touch(self, chunk: Chunk) -> None:
        if chunk.referenced and not chunk.active:
            self._take(chunk)
            self._put(chunk, active=True)
            self._age += chunk.bytes
            chunk.referenced = False
        else:
            chunk.referenced = True

    def written(self, chunk: Chunk) -> None:
        if chunk.rotate:
            chunk.rotate = False
            self._take(chunk)
            self._put(chunk, active=False)
            self.inactive.move_to_end(chunk.key, last=False)

    def remove(self, chunk: Chunk) -> None:
        self._take(chunk)

    def victim(self) -> Chunk | None:
        self._age_active()
        while self.inactive:
            chunk = next(iter(self.inactive.values()))
            self._take(chunk)
            if not (chunk.dirty or chunk.writing):
                self._age += chunk.bytes
                self._shadows[chunk.key] = self._age
                return chunk
            chunk.rotate = True
            self._put(chunk, active=True)
        return self._clean_active()

    def _clean_active(self) -> Chunk | None:
        """With nothing inactive, the oldest active one that is clean."""
        chunk = next((c for c in self.active.values() if not (c.dirty or c.writing)), None)
        if chunk is not None:
            self._take(chunk)
            self._age += chunk.bytes
            self._shadows[chunk.key] = self._age
        return chunk

    def _age_active(self) -> None:
        """While too much is active, its tail becomes inactive (inactive_is_low); what waits to be
        written stays."""
        for chunk in list(self.active.values()):
            if self.inactive_bytes * self._ratio() >= self.active_bytes:
                return
            if not chunk.rotate:
                self._take(chunk)
                chunk.referenced = False
                self._put(chunk, active=False)

    def _ratio(self) -> float:
        gib = (self.active_bytes + self.inactive_bytes) // GIB
        return math.isqrt(10 * gib) if gib else 1

    def _put(self, chunk: Chunk, active: bool) -> None:
        chunk.active = active
        (self.active if active else self.inactive)[chunk.key] = chunk
        if active:
            self.active_bytes += chunk.bytes
        else:
            self.inactive_bytes += chunk.bytes

    def _take(self, chunk: Chunk) -> None:
        if chunk.active:
            del self.active[chunk.key]
            self.active_bytes -= chunk.bytes
        else:
            del self.inactive[chunk.key]
            self.inactive_bytes -= chunk.bytes
