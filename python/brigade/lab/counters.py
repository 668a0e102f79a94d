"""What the nodes' file-system clients asked of the shared file system, from their counter pages.

The pages (drawn in `src/lab/counters.h`) only ever grow; a reset is a remembered reading. Looking
at them costs the file system nothing.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from brigade.errors import LabError
from brigade.lab import state
from brigade.lab.plan import LabPlan

_MAGIC = b"BRGLABC1"
_HEADER = struct.Struct("<8sQQQ")
_KIND = struct.Struct("<20sIQ")


@dataclass
class Count:
    """What one node, or all together, asked of the shared file system.

    `requests`: metadata requests that programs caused; `background`: those that the client sends
    by the clock; `kinds`: how many of each, background included. Bytes are those
    exchanged with data servers.
    """

    requests: int = 0
    background: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    kinds: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: Count) -> Count:
        return self._combine(other, 1)

    def __sub__(self, other: Count) -> Count:
        return self._combine(other, -1)

    def _combine(self, other: Count, sign: int) -> Count:
        names = {**self.kinds, **other.kinds}
        kinds = {n: self.kinds.get(n, 0) + sign * other.kinds.get(n, 0) for n in names}
        return Count(
            self.requests + sign * other.requests,
            self.background + sign * other.background,
            self.bytes_read + sign * other.bytes_read,
            self.bytes_written + sign * other.bytes_written,
            {name: count for name, count in kinds.items() if count},
        )


@dataclass(frozen=True)
class Stats:
    """The counts of every node since the lab came up, or since the last reset."""

    nodes: dict[str, Count]

    @property
    def total(self) -> Count:
        return sum(self.nodes.values(), Count())

    def as_dict(self) -> dict[str, Any]:
        return {
            "nodes": {node: asdict(count) for node, count in self.nodes.items()},
            "total": asdict(self.total),
        }


def parse_page(page: bytes) -> Count:
    """Read one counter page; ValueError if it is not one."""
    if len(page) < _HEADER.size:
        raise ValueError("too short")
    magic, n_kinds, bytes_read, bytes_written = _HEADER.unpack_from(page)
    if magic != _MAGIC or len(page) < _HEADER.size + n_kinds * _KIND.size:
        raise ValueError("damaged")
    count = Count(bytes_read=bytes_read, bytes_written=bytes_written)
    for name, background, times in kinds_of(page):
        if times:
            count.kinds[name] = times
        if background:
            count.background += times
        else:
            count.requests += times
    return count


def kinds_of(page: bytes) -> Iterator[tuple[str, bool, int]]:
    """Each kind of a page that `parse_page` accepts: name, whether it is background, how many."""
    for i in range(_HEADER.unpack_from(page)[1]):
        name, background, times = _KIND.unpack_from(page, _HEADER.size + i * _KIND.size)
        yield name.rstrip(b"\0").decode(), bool(background), times


def reset(plan: LabPlan) -> None:
    """Let later readings count from now."""
    readings = {node: asdict(count) for node, count in current(plan).items()}
    state.write_whole(plan.state / "baseline.json", json.dumps(readings))


def stats(plan: LabPlan) -> Stats:
    """The counts since the last reset."""
    try:
        saved = json.loads((plan.state / "baseline.json").read_text())
    except FileNotFoundError:
        saved = {}
    now = current(plan)
    return Stats({node: now[node] - Count(**saved.get(node, {})) for node in plan.nodes})


def current(plan: LabPlan) -> dict[str, Count]:
    """What each node's page says now, resets or not."""
    found = {}
    for node in plan.nodes:
        page = plan.counters(node)
        try:
            found[node] = parse_page(page.read_bytes())
        except (OSError, ValueError) as error:
            raise LabError(
                f"the counters of node {node} cannot be read: {page}: {error}",
                hint=f"brigade lab down --name {plan.name}, then up again",
            ) from None
    return found
