"""Is a start-up within its budget? Limits on what it asks of shared file systems, and a verdict
that a continuous integration can fail on.

What is counted (shared mounts only, all phases):

    ops      every call: by path and by descriptor
    opens    open calls, whether or not they found a file
    failed   calls by path that found nothing
    bytes    bytes that read calls returned

`per` says of what the limit is: the rank that asked most, the node that asked most (all its ranks),
or the whole job, with all else that the trace saw.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from brigade.profile.profile import SHARED, Cell, Profile, SearchEntry

PER = ("rank", "node", "job")
_CAUSES = 3


@dataclass
class Limit:
    what: str  # "ops", "opens", "failed" or "bytes"
    most: int
    measured: int = 0

    @property
    def over(self) -> bool:
        return self.measured > self.most


@dataclass
class Verdict:
    per: str
    limits: list[Limit]
    causes: list[tuple[str, int]]  # what asked most, and how often; only if something is over

    @property
    def over(self) -> bool:
        return any(limit.over for limit in self.limits)


def judge(profile: Profile, limits: dict[str, int], per: str) -> Verdict:
    """Measure a profile against limits: name -> the most that is allowed."""
    shared = {mount.point for mount in profile.mounts if mount.kind == SHARED}
    cells = [cell for cell in profile.cells if cell.mount in shared]
    groups = _groups(profile, cells, per)
    verdict = Verdict(per, [], [])
    for what, most in limits.items():
        measured = max((_measure(what, group) for group in groups), default=0)
        verdict.limits.append(Limit(what, most, measured))
    if verdict.over:
        verdict.causes = _causes(profile, shared, cells)
    return verdict


def _groups(profile: Profile, cells: list[Cell], per: str) -> list[list[Cell]]:
    if per == "job":
        return [cells]
    hosts = {rank.rank: rank.host for rank in profile.ranks}
    groups: dict[object, list[Cell]] = {}
    for cell in cells:
        if cell.rank >= 0:
            key = hosts.get(cell.rank, "") if per == "node" else cell.rank
            groups.setdefault(key, []).append(cell)
    return list(groups.values()) or [cells]


def _measure(what: str, cells: list[Cell]) -> int:
    if what == "bytes":
        return sum(cell.bytes for cell in cells if cell.kind == "read")
    if what == "opens":
        return sum(cell.calls for cell in cells if cell.kind == "open")
    if what == "failed":
        return sum(cell.calls for cell in cells if cell.failed and cell.by_path)
    return sum(cell.calls for cell in cells)


def _causes(profile: Profile, shared: set[str], cells: list[Cell]) -> list[tuple[str, int]]:
    """The largest: entries that were searched (calls of one rank), and phases for the rest."""
    found: Counter[str] = Counter()
    for entry in profile.searches:
        if entry.mount in shared:
            found[_entry(entry)] += entry.calls
    width = max(1, len(profile.ranks))
    told: Counter[str] = Counter()
    for cell in cells:
        if not cell.by_path and cell.rank >= 0:
            told[f"reading and mapping files ({cell.phase})"] += cell.calls
    found.update({name: calls // width for name, calls in told.items()})
    return found.most_common(_CAUSES)


def _entry(entry: SearchEntry) -> str:
    hwcaps = ", builds for kinds of processors" if entry.hwcaps else ""
    return f"{entry.cause} {entry.place}{hwcaps} ({entry.owner})"
