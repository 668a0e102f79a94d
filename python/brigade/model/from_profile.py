"""A profile as a demand: from system calls of ranks to requests at a metadata server.

A call by path asks for the last name of its path (folders on the way are known after the first
time); an open that works is a look-up and an open; listing a folder and reading a link are a
request of their own. Calls about a descriptor ask nobody; what a rank does after its start-up is
left out. Where names are remembered, a rank's
second question for a path is answered from memory. If the clients' own counters were read while the
profile was made, all requests are scaled to them.
"""

from __future__ import annotations

import os
import statistics

from brigade.errors import BrigadeError
from brigade.model.demand import PACKED, READ_BYTES, Demand, behind_caches
from brigade.model.system import System
from brigade.profile.profile import SHARED, Cell, Profile, ServerCount
from brigade.profile.sums import STARTUP

ASKS = ("open", "stat", "list", "link", "exec", "folder")


def from_profile(profile: Profile, system: System) -> Demand:
    """The demand of a program that was profiled. Raises BrigadeError if no rank was seen."""
    ranks = sorted({one.rank for one in profile.ranks if one.rank >= 0})
    if not ranks:
        raise BrigadeError(
            "the profile has no rank to take a start-up from",
            hint="profile the program itself: brigade profile --json FILE -- srun -n 2 …",
        )
    cells = [cell for cell in _startup(profile) if cell.by_path]
    nodes = max(1, len({one.host for one in profile.ranks}))
    first, further = _requests(profile, cells, len(ranks), system)
    demand = Demand(first=first, further=further)
    assumed, counters = ["image_bytes"], _counted(profile)
    measured = sum(one.requests for one in counters)
    after = profile.after
    source = f"profile of {len(ranks)} rank(s), system calls taken for requests"
    if measured and demand.requests(len(ranks), nodes):
        factor = measured / demand.requests(len(ranks), nodes)
        first = {kind: count * factor for kind, count in first.items()}
        further = {kind: count * factor for kind, count in further.items()}
        source = f"profile of {len(ranks)} rank(s), scaled to {measured:,} requests counted"
    else:
        assumed.append("requests")
    size = float(sum(profile.files.values()))
    counted = [one.bytes_read for one in counters if one.bytes_read]
    read = sum(counted) / nodes if counted else size
    return Demand(
        name=" ".join(os.path.basename(w) for w in profile.program or profile.command)[:60],
        source=source,
        first=first,
        further=further,
        node_reads=read / READ_BYTES,
        node_bytes=read,
        cpu_s=_busy_s(profile, ranks),
        misses=sum(c.calls for c in _startup(after) if c.by_path) / len(ranks) if after else 0.0,
        brigade_cpu_s=_busy_s(after, ranks) if after else None,
        image_bytes=PACKED * size,
        unpacked_bytes=size,
        assumed=tuple(assumed),
        spread={
            "cpu_s": 0.2 if profile.overhead.plain_s else 0.4,
            "requests": 0.3 if "requests" in assumed else 0.05,
        },
    )


def _startup(profile: Profile) -> list[Cell]:
    """The cells of ranks on shared mounts, until the start-up is over."""
    shared = {mount.point for mount in profile.mounts if mount.kind == SHARED}
    return [
        cell
        for cell in profile.cells
        if cell.rank >= 0 and cell.mount in shared and cell.phase in STARTUP
    ]


def _requests(
    profile: Profile, cells: list[Cell], ranks: int, system: System
) -> tuple[dict[str, float], dict[str, float]]:
    def calls(failed: bool, *kinds: str) -> float:
        return sum(c.calls for c in cells if c.failed is failed and c.kind in kinds) / ranks

    again = 1.0  # share of the look-ups that are a rank's first of a path
    same = profile.identical
    if system.caches_names and same and same.alike:
        again = min(1.0, same.paths * ranks / same.alike)
    others = {"readdir": calls(False, "list"), "readlink": calls(False, "link")}
    return behind_caches(
        again * calls(False, *ASKS),
        again * calls(True, *ASKS),
        calls(False, "open"),
        system,
        others,
    )


def _counted(profile: Profile) -> list[ServerCount]:
    """What reached the servers in one run: a cold one, or the one traced; never a warm one."""
    for state in ("cold", "as found"):
        same = [one for one in profile.server if one.state == state]
        if same:
            return same
    return []


def _busy_s(profile: Profile, ranks: list[int]) -> float:
    """Seconds of a rank outside calls on shared mounts: processors, and what is not modelled."""
    waits = dict.fromkeys(ranks, 0.0)
    for cell in _startup(profile):
        waits[cell.rank] = waits.get(cell.rank, 0.0) + cell.seconds
    found = []
    for one in profile.ranks:
        until = one.ready_s if one.ready_s is not None else one.end_s
        if one.rank in waits and until is not None:
            found.append(max(0.0, until - one.start_s - waits[one.rank]))
    whole = statistics.median(found) if found else 0.0
    cost = profile.overhead
    if cost.traced_s and cost.plain_s:
        return whole * min(1.0, cost.plain_s / cost.traced_s)
    return max(0.0, whole - cost.stopped_s / max(1, len(ranks)))
