"""The cache itself: what is resident, what is dirty, who writes it back, who waits.

Processes (events.py) come in through `take_in` (room for a chunk), `dirtied` (and slowed down), and
`flush`. One flusher writes back: above a background limit, what has been dirty too long (looked for
at each `writeback` interval, by whole files, as the kernel does), what reclaim asks for, and what
fsync asks for.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from brigade.model.cache import throttle
from brigade.model.cache.device import Servers
from brigade.model.cache.events import Clock, Process, Signal
from brigade.model.cache.lists import Chunk, Fifo, Lists, TwoLists
from brigade.model.cache.settings import Limits, Machine

LEAST_PASS = 4 << 20  # bytes of a file that the flusher writes at least before the next


@dataclass
class File:
    """What is known of a file."""

    bytes: int = 0
    chunks: dict[int, Chunk] = field(default_factory=dict)
    dirty: OrderedDict[int, Chunk] = field(default_factory=OrderedDict)  # oldest first
    writing: int = 0  # chunks under way
    since: float = 0.0  # when it became dirty
    wanted: bool = False  # all of it is to be written now
    behind: int = 0  # bytes that a client of a file system has, not its servers
    folio: int = 4096  # bytes of a folio: as large as the writes, up to 2 MiB


@dataclass
class Lump:
    """Chunks under way that become clean together, when the last of them is on the device."""

    file: File
    chunks: list[tuple[Chunk, int]] = field(default_factory=list)
    bytes: int = 0
    landed: int = 0
    closed: bool = False


class PageCache:
    def __init__(self, machine: Machine, clock: Clock) -> None:
        self.machine, self.clock = machine, clock
        self.servers = Servers(machine.device, clock)
        self.files: dict[str, File] = {}
        self.used = self.dirty = self.writing = self.behind = 0  # bytes
        self.dirtied_bytes = self.written_bytes = self.evicted_bytes = 0  # in all
        self.lists: Lists = Fifo() if machine.kernel.policy == "fifo" else TwoLists()
        self.base = throttle.BaseRate(machine.device.write, machine.device.write)
        self._wake, self._written = Signal(clock), Signal(clock)
        self._all = 0  # chunks that reclaim wants to be written
        self._lump: Lump | None = None  # which is being filled
        self._turn: tuple[File | None, float] = (None, 0.0)  # the flusher's file, bytes left of it
        clock.at(0.0, self._flusher())
        self._ticking = False  # the periodic look for what is dirty for long, while something is

    # What a process does

    def file(self, name: str) -> File:
        return self.files.setdefault(name, File())

    def take_in(self, name: str, index: int, bytes_: int, by_read: bool) -> Process:
        """A chunk becomes resident; whoever wants it waits for room."""
        while self.used + bytes_ > self.machine.memory.bytes:
            victim = self.lists.victim()
            if victim is not None:
                self._forget(victim)
                self.evicted_bytes += victim.bytes
            else:
                self._all = max(self._all, sum(len(f.dirty) for f in self.files.values()))
                self._wake.fire()
                yield self._written
        if index in (chunks := self.file(name).chunks):  # another process was faster
            return
        chunk = Chunk(name, index, bytes_)
        chunks[index] = chunk
        self.used += bytes_
        self.lists.add(chunk, by_read)

    def mark_dirty(self, chunk: Chunk, bytes_: int) -> None:
        """So many bytes of a chunk were written to."""
        more = min(bytes_, chunk.bytes - chunk.dirty)
        file = self.files[chunk.file]
        if not file.dirty:
            file.since = self.clock.now
        file.dirty[chunk.index] = chunk
        chunk.dirty += more
        self.dirty += more
        if not self._ticking:
            self._ticking = True
            self.clock.at(self.clock.now + self.machine.kernel.writeback, self._tick)

    def pushed(self, name: str, bytes_: int) -> None:
        """Bytes that a client of a file system has taken, and sends at once."""
        file = self.file(name)
        file.behind += bytes_
        self.behind += bytes_

        def done() -> None:
            file.behind -= bytes_
            self.behind -= bytes_
            self.written_bytes += bytes_
            self._written.fire()

        self.servers.writes.queue(bytes_ / self.machine.device.write, done)

    def slow_down(self, bytes_: int, since: float) -> Process:
        """The writer of so many bytes, who began at `since`, waits as long as it has to."""
        self.dirtied_bytes += bytes_
        while True:
            limits = self._limits()
            dirty = self._unwritten()
            if any(self.dirty > one.background for one in limits):
                self._wake.fire()
            above = throttle.tightest(dirty, limits)
            if self.writing:
                self._measure(above)
            if above is None:
                return
            if above.blocking or self.machine.kernel.policy == "fifo":
                if dirty <= above.hard:
                    return
                yield self._written
                continue
            rate = self.base.base * throttle.position(dirty, above)
            pause = throttle.pause(bytes_, rate) - (self.clock.now - since)
            if pause > 0:
                yield pause
            if rate > 0:
                return
            since = self.clock.now

    def flush(self, name: str) -> Process:
        """Returns when the file is on the device."""
        file = self.file(name)
        file.wanted = True
        self._wake.fire()
        while file.dirty or file.writing or file.behind:
            yield self._written
        file.wanted = False

    def drop(self, name: str) -> None:
        """Takes the clean part of a file out of the cache."""
        for chunk in list(self.file(name).chunks.values()):
            if not (chunk.dirty or chunk.writing):
                self.lists.remove(chunk)
                self._forget(chunk)

    def remove(self, name: str) -> Process:
        """Takes a file away; what is dirty is not written any more, what is under way is."""
        file = self.file(name)
        for chunk in list(file.dirty.values()):
            self._clean(file, chunk)
        while file.writing or file.behind:
            yield self._written
        self.drop(name)
        del self.files[name]

    # Inside

    def _unwritten(self) -> int:
        return self.dirty + self.writing + self.behind

    def _measure(self, above: Limits | None) -> None:
        self.base.update(
            self.clock.now, self.written_bytes, self.dirtied_bytes, self._unwritten(), above
        )

    def _limits(self) -> tuple[Limits, ...]:
        return self.machine.kernel.of(self.used, self.machine.memory.bytes - self.used)

    def _forget(self, chunk: Chunk) -> None:
        del self.files[chunk.file].chunks[chunk.index]
        self.used -= chunk.bytes

    def _clean(self, file: File, chunk: Chunk) -> int:
        """Its dirty bytes, which are dirty no more."""
        bytes_, chunk.dirty = chunk.dirty, 0
        del file.dirty[chunk.index]
        self.dirty -= bytes_
        return bytes_

    def _tick(self) -> None:
        now, expire = self.clock.now, self.machine.kernel.expire
        for file in self.files.values():
            if file.dirty and now - file.since >= expire:
                file.wanted = True
        self._wake.fire()
        self._ticking = bool(self.dirty)
        if self._ticking:
            self.clock.at(now + self.machine.kernel.writeback, self._tick)

    def _flusher(self) -> Process:
        while True:
            file = self._next()
            if file is None:
                self._close()
                yield self._wake
            else:
                self._write(file, next(iter(file.dirty.values())))

    def _next(self) -> File | None:
        """The file that is written next: one that somebody wants, or in turn the one dirty for
        longest, so many bytes as the device writes in half a second (writeback_chunk_size)."""
        dirty = [file for file in self.files.values() if file.dirty]
        if not dirty:
            self._all = 0
            return None
        wanted = [file for file in dirty if file.wanted]
        limits = self._limits()
        file, left = self._turn
        if file in dirty and left > 0 and (file.wanted or not wanted):
            return file  # what was begun is done, though little may be dirty by now
        if not (wanted or self._all or any(self.dirty > one.background for one in limits)):
            return None
        self._close()
        file = min(wanted or dirty, key=lambda one: one.since)
        if file.wanted:
            self._turn = file, float("inf")
        else:
            file.since = self.clock.now
            most = min([self.base.written / 2, *(one.hard / 8 for one in limits)])
            self._turn = file, (int(most // LEAST_PASS) + 1) * LEAST_PASS
        return file

    def _write(self, file: File, chunk: Chunk) -> None:
        bytes_ = self._clean(file, chunk)
        if not self.writing:
            self.base.begin(self.clock.now, self.written_bytes, self.dirtied_bytes)
        chunk.writing += bytes_
        file.writing += 1
        self.writing += bytes_
        self._all = max(0, self._all - 1)
        self._turn = file, self._turn[1] - bytes_
        if self._lump is None:
            self._lump = Lump(file)
        lump = self._lump
        lump.chunks.append((chunk, bytes_))
        lump.bytes += bytes_

        def landed() -> None:
            lump.landed += 1
            self._end(lump)

        self.servers.writes.queue(bytes_ / self.machine.device.write, landed)
        if lump.bytes >= self.machine.kernel.lump(file.folio):
            self._close()

    def _close(self) -> None:
        lump, self._lump = self._lump, None
        if lump is not None:
            lump.closed = True
            self._end(lump)

    def _end(self, lump: Lump) -> None:
        """If all of a lump is on the device, its chunks are clean."""
        if not lump.closed or lump.landed < len(lump.chunks):
            return
        file = lump.file
        for chunk, bytes_ in lump.chunks:
            chunk.writing -= bytes_
            file.writing -= 1
            if not (chunk.dirty or chunk.writing):
                self.lists.written(chunk)
        self.written_bytes += lump.bytes
        self._measure(throttle.tightest(self._unwritten(), self._limits()))
        self.writing -= lump.bytes
        if file.wanted and not file.dirty:
            file.wanted = False
        if not self.writing:
            self.clock.at(self.clock.now + throttle.INTERVAL_S, lambda: self._measure(None))
        self._written.fire()
