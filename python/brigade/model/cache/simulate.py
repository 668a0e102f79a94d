"""Does the steps of a workload on a simulated machine; what comes of each has the form of what
`brigade bench cache` measures."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from brigade.errors import UsageError
from brigade.model.cache import readahead
from brigade.model.cache.events import Clock, Process
from brigade.model.cache.pagecache import PageCache
from brigade.model.cache.settings import Machine
from brigade.model.cache.workload import MOVES, Step

PAGE = 4096
PARTS = 512  # of a file, in what `look` finds
SAMPLES = 1024  # of a step, about


def run(steps: Sequence[Step], machine: Machine) -> list[dict[str, Any]]:
    """What came of each step, in their order. Raises UsageError for a workload that stops."""
    if machine.memory.bytes < 4 * machine.chunk:
        raise UsageError(
            f"{machine.memory.bytes} bytes of memory are too little to simulate",
            hint=f"give it {4 * machine.chunk >> 10}k or more",
        )
    clock = Clock()
    cache = PageCache(machine, clock)
    found: dict[int, dict[str, Any]] = {}
    clients: dict[str, list[tuple[int, Step]]] = {}
    for number, step in enumerate(steps):
        clients.setdefault(step.client, []).append((number, step))
    left = set(clients)
    for name, own in clients.items():
        clock.at(0.0, _Client(cache, found, left, name).does(own))
    clock.run(lambda: not left)
    if left:
        raise UsageError("the workload waits for what cannot happen", hint="is a limit too small?")
    return [found[number] for number in range(len(steps))]


class _Client:
    def __init__(
        self, cache: PageCache, found: dict[int, dict[str, Any]], left: set[str], name: str
    ) -> None:
        self._cache, self._found, self._left, self._name = cache, found, left, name
        self._machine, self._clock = cache.machine, cache.clock
        self._windows: dict[str, tuple[int, int]] = {}  # of files read: where next, window
        self._issued = 0.0  # when what is read next was asked for

    def does(self, own: Sequence[tuple[int, Step]]) -> Process:
        for number, step in own:
            begin = self._clock.now
            result: dict[str, Any] = {
                "name": step.name, "operation": step.operation, "file": step.file, "begin": begin,
            }  # fmt: skip
            yield from self._step(step, result)
            if step.operation not in ("look", "probe", "file"):
                result["seconds"] = self._clock.now - begin
            self._found[number] = result
        self._left.discard(self._name)

    def _step(self, step: Step, result: dict[str, Any]) -> Process:
        cache = self._cache
        makes = step.operation in ("write", "file", "sleep")
        if not makes and step.file not in cache.files:
            raise UsageError(f"{step.name}: no step before has made this file")
        if step.operation in MOVES:
            yield from _Moving(self, step, result).moves()
        elif step.operation == "file":
            cache.file(step.file).bytes = step.bytes
        elif step.operation == "sleep":
            yield step.sleep
        else:
            if step.operation in ("fsync", "drop"):
                yield from cache.flush(step.file)
            if step.operation == "drop":
                cache.drop(step.file)
            elif step.operation == "remove":
                yield from cache.remove(step.file)
            elif step.operation == "look":
                result.update(self._look(step))
            elif step.operation == "probe":
                yield from self._probe(step, result)

    def _look(self, step: Step) -> dict[str, Any]:
        file, chunk = self._cache.files[step.file], self._machine.chunk
        pages = -(-file.bytes // PAGE)
        parts = min(PARTS, pages)
        here = [0.0] * parts
        for index, one in file.chunks.items():
            low, high = index * chunk // PAGE, -(-(index * chunk + one.bytes) // PAGE)
            for part in range(low * parts // pages, min(parts, -(-high * parts // pages))):
                first, past = part * pages // parts, (part + 1) * pages // parts
                here[part] += max(0, min(past, high) - max(first, low))
        return {"bytes": file.bytes, "pages": pages, "parts": here}

    def _probe(self, step: Step, result: dict[str, Any]) -> Process:
        file, machine = self._cache.files[step.file], self._machine
        count, pages = min(step.count, file.bytes // PAGE), []
        for one in range(count):
            at, begin = (2 * one + 1) * file.bytes // (2 * count), self._clock.now
            chunk = file.chunks.get(at // machine.chunk)
            if chunk is None:
                took = machine.device.read_latency + PAGE / machine.device.read
                yield self._cache.servers.reads.urgent(took) - begin
            else:
                self._cache.lists.touch(chunk)
            yield machine.memory.read_call + PAGE / machine.memory.read
            pages.append(
                [at // PAGE * PAGE, 1e9 * (self._clock.now - begin), int(chunk is not None)]
            )
        result.update(bytes=file.bytes, pages=pages)

    def fetch(self, step: Step, index: int, bytes_: int) -> Process:
        """A chunk is read from the device, ahead of a reader in sequence."""
        device, most = self._machine.device, self._machine.kernel.read_ahead
        after, window = self._windows.get(step.file, (-1, 0))
        issued = self._issued
        if after != index:
            window, issued = readahead.first(step.size, most), self._clock.now
        most = max(most, min(step.size, 1 << 20))  # one call is one window
        took, window = readahead.seconds(bytes_, window, most, device.read, device.read_latency)
        self._windows[step.file] = (index + 1, window)
        done = self._cache.servers.reads.urgent(took, issued)
        yield max(0.0, done - self._clock.now)
        self._issued = self._clock.now


class _Moving:
    """A step that writes or reads: call by call, or where calls are smaller than a chunk, as many
    as one has. Each gives a sample: [begin, seconds, calls, longest]."""

    def __init__(self, client: _Client, step: Step, result: dict[str, Any]) -> None:
        self._client, self._step, self._result = client, step, result
        self._cache, self._clock = client._cache, client._clock
        self._machine = client._machine
        self._writing = step.operation == "write"
        self._file = self._cache.file(step.file)
        if self._writing and not step.direct:
            self._file.folio = min(2 << 20, max(PAGE, 1 << (step.size.bit_length() - 1)))
        self._fsyncs: list[list[float]] = []
        self._samples: list[list[float]] = []

    def moves(self) -> Process:
        step, begin = self._step, self._clock.now
        past = step.at + step.bytes
        if not self._writing:
            past = min(past, self._file.bytes)
        position, slept, synced = step.at, step.at, step.at
        while position < past:
            size = min(self._batch(position, slept, synced), past - position)
            calls = max(1, size // step.size)
            size = calls * step.size if position + calls * step.size <= past else past - position
            if self._writing and size < calls * step.size:
                break  # no shorter call
            before = self._clock.now
            yield from self._batch_of(position, size, calls)
            took = self._clock.now - before
            self._samples.append([before - begin, took, calls, took / calls])
            position += size
            if step.fsync and position - synced >= step.fsync:
                before, synced = self._clock.now, position
                yield from self._cache.flush(step.file)
                took = self._clock.now - before
                self._fsyncs.append([before - begin, took, 1, took])
            if step.every and position - slept >= step.every:
                slept = position
                yield step.sleep
            if step.limit and self._clock.now - begin > step.limit:
                break
        closing = self._clock.now
        if self._machine.kernel.close_waits and self._writing and not step.direct:
            yield from self._cache.flush(step.file)
        self._result.update(
            bytes=position - step.at, size=step.size, samples=self._samples,
            close_s=self._clock.now - closing,
        )  # fmt: skip
        if step.fsync:
            self._result["fsyncs"] = self._fsyncs

    def _batch(self, position: int, slept: int, synced: int) -> int:
        """Bytes of the calls that are simulated at once."""
        step, chunk = self._step, self._machine.chunk
        if step.size >= chunk:
            return step.size
        most = chunk - position % chunk
        if step.every:
            most = min(most, slept + step.every - position)
        if step.fsync:
            most = min(most, synced + step.fsync - position)
        return max(step.size, most // step.size * step.size)

    def _batch_of(self, position: int, size: int, calls: int) -> Process:
        if self._step.direct:
            yield from self._direct(size, calls)
            if self._writing:
                self._file.bytes = max(self._file.bytes, position + size)
            return
        memory = self._machine.memory
        call = memory.write_call if self._writing else memory.read_call
        yield calls * call
        chunk = self._machine.chunk
        while size:
            index, inside = divmod(position, chunk)
            part = min(size, chunk - inside)
            if self._writing:
                yield from self._write(index, inside, part)
            else:
                yield from self._read(index, part)
            position, size = position + part, size - part

    def _direct(self, size: int, calls: int) -> Process:
        device = self._machine.device
        latency, rate = (
            (device.write_latency, device.write)
            if self._writing
            else (device.read_latency, device.read)
        )
        servers = self._cache.servers
        server = servers.writes if self._writing else servers.reads
        done = server.urgent(size / rate)
        yield max(0.0, done - self._clock.now) + calls * latency

    def _write(self, index: int, inside: int, part: int) -> Process:
        cache, file, name = self._cache, self._file, self._step.file
        began = self._clock.now
        yield from self._resident(index, inside + part)
        yield part / self._machine.memory.write
        if self._machine.kernel.write_through:
            cache.pushed(name, part)
        elif (found := file.chunks.get(index)) is not None:
            cache.mark_dirty(found, part)
        yield from cache.slow_down(part, began)

    def _resident(self, index: int, needed: int) -> Generator[Any, None, None]:
        """The chunk is there, and has so many bytes."""
        cache, file, name = self._cache, self._file, self._step.file
        chunk = self._machine.chunk
        file.bytes = max(file.bytes, index * chunk + needed)
        if index not in file.chunks:
            # a chunk takes the room of the pages it will have when the writer has gone on
            whole = min(chunk, self._step.at + self._step.bytes - index * chunk)
            yield from cache.take_in(name, index, max(needed, whole), by_read=False)

    def _read(self, index: int, part: int) -> Process:
        cache, file, name = self._cache, self._file, self._step.file
        if index not in file.chunks:
            bytes_ = min(self._machine.chunk, file.bytes - index * self._machine.chunk)
            yield from self._client.fetch(self._step, index, bytes_)
            yield from cache.take_in(name, index, bytes_, by_read=True)
        if (found := file.chunks.get(index)) is not None:
            cache.lists.touch(found)
        yield part / self._machine.memory.read
