"""The counters of file-system clients: what they sent to their servers, without asking a server.

Each module reads one sort of client: `readers(mounts)` gives the readers for the mounts that are
its own and that tell something here. A reader is called again and again; it may raise OSError or
ValueError, and then is not called any more. Reading must send nothing to a server.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, NamedTuple


@dataclass
class Reading:
    """Counters that only grow. `kinds`: requests that programs caused; `background`: those that
    the client sends by the clock, if it tells them apart; bytes None: not told."""

    kinds: dict[str, int] = field(default_factory=dict)
    background: int = 0
    bytes_read: int | None = None


class Mounted(NamedTuple):
    """A line of mountinfo. `device`: the kernel's number, one for all mounts of a file system."""

    point: str
    fstype: str
    source: str
    device: str


class Client(NamedTuple):
    """Somebody who counts: whose words they are, for which mount, and what must be known of it."""

    source: str  # as in ServerCount
    mount: str
    read: Callable[[], Reading]
    note: str
