"""What a trial saw, rank by rank, and whether the ranks agreed (R3).

A trial stands for a wide run only if every rank looks for the same things. Here processes
are merged into ranks (a child belongs to the rank that started it), each rank's look-ups
under the covered roots are counted, and the ranks are compared: the paths they asked for,
what they were told, what they loaded and imported and in which order, and how ld.so's
searches ended. Byte code that Python caches as it goes is left out of the comparison:
whichever rank comes first writes it.

What must stay true: a difference is named with its path and its ranks, and the full list
is in the JSON form even where the text shows only the first few.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any, Callable

from brigade.trial.answers import Conflict
from brigade.trial.record import LOOKUPS, PROBE, Process, Trial

_CODE = (".py", ".pyc", ".pth", ".so")
SHOWN = 5  # differences of a kind that the text names


@dataclass
class RankCount:
    """Look-ups of one rank under the covered roots: each call that named a path, and each file
    that ld.so tried. `distinct` counts the same look-up of a process once."""

    rank: int
    processes: int = 0
    lookups: int = 0
    distinct: int = 0
    found: int = 0
    failed: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)
    libraries_at_start: int = 0
    libraries_opened_later: int = 0
    imports: int = 0
    imports_failed: int = 0
    data_files_read: int = 0
    last_lookup_s: float = 0.0


@dataclass
class Difference:
    """Something on which the ranks did not agree. `what`: paths, order, result, search."""

    what: str
    path: str
    ranks: dict[str, list[int]]  # what was seen -> ranks that saw it


@dataclass
class Summary:
    ranks: list[RankCount]
    differences: list[Difference]
    programs: list[str]
    libraries: list[str]
    modules: int
    damaged: int
    unfinished: int

    @property
    def agreed(self) -> bool:
        return not self.differences

    @property
    def lookups_per_rank(self) -> float:
        """Look-ups, repeats among them, of the rank that made most: the width multiplies this
        number."""
        return float(max((rank.lookups for rank in self.ranks), default=0))

    @property
    def distinct_lookups_per_rank(self) -> float:
        """Different look-ups of the rank that made most."""
        return float(max((rank.distinct for rank in self.ranks), default=0))

    def as_json(self) -> dict[str, Any]:
        return {
            "agreed": self.agreed,
            "lookups_per_rank": self.lookups_per_rank,
            "distinct_lookups_per_rank": self.distinct_lookups_per_rank,
            "ranks": [asdict(rank) for rank in self.ranks],
            "differences": [asdict(difference) for difference in self.differences],
            "programs": self.programs,
            "libraries": len(self.libraries),
            "modules": self.modules,
            "damaged_records": self.damaged,
            "unfinished_processes": self.unfinished,
        }

    def text(self) -> str:
        """A few lines for people."""
        lines = [self._headline(), *(f"  {line}" for line in told(self.differences))]
        if self.damaged:
            lines.append(f"  {_many(self.damaged, 'record')} could not be read and was skipped")
        return "\n".join(lines)

    def _headline(self) -> str:
        first = self.ranks[0] if self.ranks else RankCount(0)
        counts = (
            f"{self.lookups_per_rank:,.0f} look-ups a rank ({first.failed:,} found nothing, "
            f"{self.distinct_lookups_per_rank:,.0f} different), "
            f"{_many(len(self.libraries), 'library', 'libraries')}, "
            f"{_many(self.modules, 'module')}"
        )
        if len(self.ranks) < 2:
            return f"One rank was recorded: {counts}."
        if self.agreed:
            return f"The {len(self.ranks)} ranks agreed: {counts}."
        return (
            f"The {len(self.ranks)} ranks differ in {_many(len(self.differences), 'point')}; what "
            f"only some ranks need is in the image for all: {counts}."
        )


def _many(number: int, one: str, more: str = "") -> str:
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def _ranks(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:8])) + (", …" if len(numbers) > 8 else "")
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {shown}"


def told(differences: list[Difference]) -> list[str]:
    """A line for each of the first few of a kind."""
    lines = []
    for what in ("paths", "result", "search", "order"):
        some = [d for d in differences if d.what == what]
        lines += [_describe(difference) for difference in some[:SHOWN]]
        if len(some) > SHOWN:
            lines.append(f"and {len(some) - SHOWN} more like it")
    return lines


def _describe(difference: Difference) -> str:
    seen = "; ".join(f"{what or 'nothing'}: {_ranks(r)}" for what, r in difference.ranks.items())
    words = {
        "paths": "looked up by some ranks only",
        "result": "not the same for all ranks",
        "search": "found in different places",
        "order": "loaded in another order",
    }
    return f"{difference.path}: {words[difference.what]} ({seen})"


def by_rank(trial: Trial) -> dict[int, list[Process]]:
    """The processes of each rank. One without a rank belongs to that of the process that
    started it; if there is none, to rank 0."""
    started = {(p.host, p.pid): p for p in trial.processes}
    ranks: dict[int, list[Process]] = {}
    for process in trial.processes:
        rank, above, steps = process.rank, process, 0
        while rank is None and steps < 64:
            parent = started.get((above.host, above.parent))
            if parent is None or parent is above:
                break
            rank, above, steps = parent.rank, parent, steps + 1
        ranks.setdefault(0 if rank is None else rank, []).append(process)
    return dict(sorted(ranks.items()))


@dataclass
class _Seen:
    """What one rank saw, for the comparison."""

    paths: dict[str, bool] = field(default_factory=dict)  # path -> found at last
    loads: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)


def _count(
    rank: int,
    processes: list[Process],
    covered: Callable[[str], bool],
    passing: Callable[[str], bool],
) -> tuple[RankCount, _Seen]:
    count, seen = RankCount(rank, processes=len(processes)), _Seen()
    read: set[str] = set()
    for process in processes:
        running = False  # the program itself has begun: later loads are dlopen's
        for record in process.records:
            kind, ok = record.kind, record.status == 0
            if kind in LOOKUPS or kind == PROBE:
                running = running or kind != PROBE
                if not covered(record.path):
                    continue
                times = record.times
                count.lookups += times
                count.distinct += 1
                count.found += times * ok
                count.failed += times * (not ok)
                count.by_kind[kind] = count.by_kind.get(kind, 0) + times
                count.last_lookup_s = max(count.last_lookup_s, record.time_ns / 1e9)
                if kind != PROBE and not passing(record.path):
                    seen.paths[record.path] = ok
                    if kind == "open" and ok and not record.path.endswith(_CODE):
                        read.add(record.path)
            elif kind == "load":
                seen.loads.append(record.path)
                if running:
                    count.libraries_opened_later += 1
                else:
                    count.libraries_at_start += 1
            elif kind == "import":
                running = True
                count.imports += record.times * ok
                count.imports_failed += record.times * (not ok)
                if ok:
                    seen.modules.append(record.path)
    count.data_files_read = len(read.difference(seen.loads))
    return count, seen


def _compare(seen: dict[int, _Seen]) -> list[Difference]:
    """Where ranks differ; nothing to compare with fewer than two."""
    if len(seen) < 2:
        return []
    differences: list[Difference] = []
    everything = sorted({path for one in seen.values() for path in one.paths})
    for path in everything:
        results: dict[str, list[int]] = {}
        for rank, one in seen.items():
            result = one.paths.get(path)
            word = "not asked" if result is None else "found" if result else "missing"
            results.setdefault(word, []).append(rank)
        if len(results) > 1:
            what = "paths" if "not asked" in results else "result"
            differences.append(Difference(what, path, results))
    for name in ("loads", "modules"):
        first_rank, first = next(iter(seen.items()))
        for rank, one in seen.items():
            mine, theirs = getattr(one, name), getattr(first, name)
            at = next((i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b), None)
            if at is not None:
                differences.append(
                    Difference("order", mine[at], {theirs[at]: [first_rank], mine[at]: [rank]})
                )
                break
    return differences


def summarise(
    trial: Trial,
    covered: Callable[[str], bool],
    conflicts: list[Conflict] | None = None,
    passing: Callable[[str], bool] = lambda path: "/__pycache__" in path,
) -> Summary:
    """Count and compare. `covered`: whether a path as recorded leads under a covered root;
    `passing`: paths that differ from run to run by nature."""
    ranks = by_rank(trial)
    counts, seen = [], {}
    for rank, processes in ranks.items():
        count, seen[rank] = _count(rank, processes, covered, passing)
        counts.append(count)
    differences = _compare(seen)
    for conflict in conflicts or []:
        where = {path: _who_got(ranks, conflict, path) for path in conflict.paths}
        differences.append(Difference("search", conflict.name, where))
    loads = {path for one in seen.values() for path in one.loads}
    return Summary(
        ranks=counts,
        differences=differences,
        programs=sorted({p.exe for p in trial.processes if p.exe}, key=os.path.basename),
        libraries=sorted(loads),
        modules=len({module for one in seen.values() for module in one.modules}),
        damaged=trial.damaged,
        unfinished=sum(1 for p in trial.processes if p.exit_status is None),
    )


def _who_got(ranks: dict[int, list[Process]], conflict: Conflict, path: str) -> list[int]:
    return [
        rank
        for rank, processes in ranks.items()
        if any(
            r.kind == "search"
            and (r.by, r.path) == (conflict.requester, conflict.name)
            and (r.extra if r.status == 0 else "") == path
            for p in processes
            for r in p.records
        )
    ]
