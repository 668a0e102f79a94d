"""What a simulation is of: a machine's memory and kernel, and a device below its cache."""

from __future__ import annotations

import math
from dataclasses import dataclass

MIB = 1 << 20
POLICIES = {
    "linux": "active and inactive lists with second chance; writers are slowed down smoothly",
    "fifo": "strictly first in, first out; writers stop at the hard limit",
}


@dataclass(frozen=True)
class Device:
    """Bytes a second; seconds of a request besides its bytes."""

    write: float = 100e6
    read: float = 100e6
    write_latency: float = 1e-4
    read_latency: float = 1e-4
    write_burst: float = 0.0  # bytes that it takes at once after it was idle
    read_burst: float = 0.0
    shared: bool = False  # whether writes and reads have the rates only in turn


@dataclass(frozen=True)
class Memory:
    """Room for pages of files, and what moving bytes between them and a program takes."""

    bytes: int = 128 * MIB
    write: float = 2e9  # bytes a second
    read: float = 5e9
    write_call: float = 1e-6  # seconds of a call besides its bytes
    read_call: float = 1e-6


@dataclass(frozen=True)
class Limits:
    """Dirty bytes (being written counts) above which the flusher begins, and that none exceeds.

    `strict`: of one device (bdi strict_limit; FUSE), held about the middle of the two instead of
    above it. `blocking`: of a client of a file system (Lustre's max_dirty_mb, mfsmount's write
    cache): no writer is slowed down below `hard`, at which it waits.
    """

    background: float
    hard: float
    strict: bool = False
    blocking: bool = False

    @property
    def free_run(self) -> float:
        """Below this nobody waits."""
        return self.hard if self.blocking else (self.background + self.hard) / 2

    @property
    def setpoint(self) -> float:
        """Where writers go on at the device's rate."""
        return self.free_run if self.strict else (self.free_run + self.hard) / 2


@dataclass(frozen=True)
class Kernel:
    """Settings of the cache; times in seconds."""

    limits: tuple[Limits, ...] = ()
    cgroup: tuple[float, ...] = ()  # (background, hard) as shares of the memory; none: ()
    expire: float = 30.0
    writeback: float = 5.0
    read_ahead: int = 128 << 10
    together: int = 0  # most bytes of write-back that become clean at one moment; 0: each chunk
    together_folios: int = 0  # most folios of it; 0: any number
    write_through: bool = False  # of FUSE without its write-back cache: pages are clean at once
    close_waits: bool = False  # close returns when the client's cache is empty
    policy: str = "linux"

    def lump(self, folio: int) -> int:
        """Most bytes of a file with folios of so many bytes that become clean at one moment."""
        most = [one for one in (self.together, self.together_folios * folio) if one]
        return min(most, default=0)

    def of(self, cached: float, free: float) -> tuple[Limits, ...]:
        """All limits; those of a cgroup (version 2) are shares of what it could have dirty."""
        if not self.cgroup:
            return self.limits
        background, hard = (share * (cached + free) for share in self.cgroup)
        return (*self.limits, Limits(background, hard))


@dataclass(frozen=True)
class Machine:
    device: Device = Device()
    memory: Memory = Memory()
    kernel: Kernel = Kernel()

    @property
    def chunk(self) -> int:
        """Bytes that are simulated as one page: a 512th of the memory, at most what a reader may
        have read ahead in one step of a slow device."""
        return 1 << min(22, max(16, int(math.log2(max(1, self.memory.bytes // 512)))))
