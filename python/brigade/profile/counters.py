"""What reaches the servers while a job runs, as the clients' own counters tell it.

    with Sampler() as sampler:
        run()
    profile.server += sampler.counts()
    profile.timelines += sampler.timelines(zero_ns=trace.start_ns)
    profile.seen += sampler.notes

A thread reads the counters every tenth of a second; when there are many readings, every second one
is forgotten and the pause doubled. It takes no lock, asks no server, and none of its errors
reaches the job: a client that cannot be read is left out, and `notes` says why. Counters of other
nodes' clients are not seen, except in the lab; `notes` says that as well.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Iterable
from types import TracebackType

from brigade.profile.clients import Client, Mounted, Reading, lab, lustre, moosefs, nfs
from brigade.profile.profile import ServerCount, Timeline
from brigade.trial.mounts import Mount

STEP_S = 0.1
MOST = 1200  # readings that are kept


class Sampler:
    """Reads the counters of all clients that tell, from `start` to `stop`, or inside `with`.

    `clients` None: those of all shared file systems that are mounted here.
    """

    def __init__(self, clients: Iterable[Client] | None = None, step_s: float = STEP_S) -> None:
        self.clients = find() if clients is None else list(clients)
        self.step_s = step_s
        self.notes: list[str] = []
        self.start_ns = 0  # CLOCK_REALTIME
        self.spent_s = 0.0  # in reading
        self._series: list[_Series] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Sampler:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Take the first reading, and go on in a thread."""
        self.start_ns = time.time_ns()
        self._zero = time.monotonic()
        self._series = [_Series(client) for client in self.clients]
        self._read()
        if any(one.alive for one in self._series):
            self._thread = threading.Thread(target=self._go_on, name="counters", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Take the last reading. Does nothing a second time."""
        if self._stop.is_set():
            return
        self._stop.set()
        if self._thread:
            self._thread.join()
        self._read()
        for one in self._series:
            note = one.client.note if one.readings else ""
            if one.error:
                note = f"{one.client.mount}: its client's counters cannot be read: {one.error}"
            if note:
                self.notes.append(note)

    def _go_on(self) -> None:
        following = time.monotonic() + self.step_s
        while not self._stop.wait(max(0.0, following - time.monotonic())):
            self._read()
            following = max(following + self.step_s, time.monotonic() + self.step_s / 2)

    def _read(self) -> None:
        begin = time.monotonic()
        for one in self._series:
            one.take(begin - self._zero)
        if any(len(one.readings) > MOST for one in self._series):
            self.step_s *= 2
            for one in self._series:
                del one.readings[1:-1:2]
        self.spent_s += time.monotonic() - begin

    def counts(self, state: str = "as found") -> list[ServerCount]:
        """What each client counted in all."""
        return [one.count(state) for one in self._series if len(one.readings) > 1]

    def timelines(self, zero_ns: int | None = None) -> list[Timeline]:
        """Each client's requests over time, from `zero_ns` (CLOCK_REALTIME) on; None: the start."""
        shift = 0.0 if zero_ns is None else (self.start_ns - zero_ns) / 1e9
        lines = [one.timeline(self.step_s, shift) for one in self._series if len(one.readings) > 1]
        return [line for line in lines if line.kinds]


class _Series:
    """The readings of one client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.readings: list[tuple[float, Reading]] = []
        self.error = ""
        self.alive = True

    def take(self, at_s: float) -> None:
        if not self.alive:
            return
        try:
            self.readings.append((at_s, self.client.read()))
        except Exception as error:  # whatever it is, it must not end a profile
            self.alive = False
            self.error = str(error) or type(error).__name__

    def grown(self, index: int) -> dict[str, int]:
        """By how much each kind had grown at a reading. What fell (a client that was mounted
        again) has not grown."""
        first, now = self.readings[0][1].kinds, self.readings[index][1].kinds
        return {kind: max(0, times - first.get(kind, 0)) for kind, times in now.items()}

    def count(self, state: str) -> ServerCount:
        kinds = {kind: times for kind, times in self.grown(-1).items() if times}
        first, last = self.readings[0][1], self.readings[-1][1]
        read = None
        if first.bytes_read is not None and last.bytes_read is not None:
            read = max(0, last.bytes_read - first.bytes_read)
        return ServerCount(
            *(self.client.source, self.client.mount, state, sum(kinds.values()), read, kinds)
        )

    def timeline(self, step_s: float, shift_s: float) -> Timeline:
        """Equal steps; between two readings requests are taken to come evenly, and none is lost
        or made. A start long before the first reading makes the steps longer, not more."""
        grown = [self.grown(index) for index in range(len(self.readings))]
        times = [at + shift_s for at, _ in self.readings]
        while times[-1] / step_s > 2 * MOST:
            step_s *= 2
        steps = max(1, int(times[-1] / step_s) + 1)
        kinds = {}
        for kind in grown[-1]:
            sums = [one.get(kind, 0) for one in grown]
            ends = [round(_between(times, sums, (i + 1) * step_s)) for i in range(steps)]
            before = [round(_between(times, sums, 0.0)), *ends]
            values = [max(0, end - start) for start, end in zip(before, ends)]
            if any(values):
                kinds[kind] = values
        return Timeline(self.client.source, step_s, kinds)


def _between(times: list[float], sums: list[int], at_s: float) -> float:
    """The sum at a moment, on the line between the readings around it."""
    right = bisect_right(times, at_s)
    if right == 0:
        return sums[0]
    if right == len(times):
        return sums[-1]
    width = times[right] - times[right - 1]
    share = (at_s - times[right - 1]) / width if width > 0 else 1.0
    return sums[right - 1] + share * (sums[right] - sums[right - 1])


def find(mountinfo: str = "/proc/self/mountinfo") -> list[Client]:
    """All clients that tell something here. The lab's pages come before its clients' own words."""
    mounts = mounted(mountinfo)
    found: dict[str, Client] = {}
    for module in (lab, moosefs, nfs, lustre):
        try:
            for client in module.readers(mounts):
                found.setdefault(client.mount, client)
        except Exception:  # a client that cannot even be looked for tells nothing
            continue
    return list(found.values())


def mounted(mountinfo: str = "/proc/self/mountinfo") -> list[Mounted]:
    """The shared file systems of this node; nothing but that file is looked at."""
    found = []
    try:
        with open(mountinfo, encoding="utf-8", errors="surrogateescape") as text:
            lines = text.read().splitlines()
    except OSError:
        return []
    for line in lines:
        before, _, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if len(left) < 5 or len(right) < 2:
            continue
        mount = Mount(_plain(left[4]), right[0], _plain(right[1]))
        if mount.shared:
            found.append(Mounted(mount.point, mount.fstype, mount.source, left[2]))
    return found


def _plain(word: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\043", "#")):
        word = word.replace(code, char)
    return word.replace("\\134", "\\")
