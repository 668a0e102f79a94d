"""What the reports show of a profile, worked out once for the page and for the terminal.

Everything here is numbers and plain words: no markup, no colour. Counts are of all ranks unless a
name says otherwise; `Sums.width` makes them those of one rank.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import NamedTuple

from brigade.printable import size
from brigade.profile.profile import KERNEL, LOCAL, MEMORY, PHASES, SHARED, Profile, SearchEntry
from brigade.profile.sums import WIDE, Sums
from brigade.profile.words import big, count, listed, many, percent, seconds
from brigade.trace.events import KINDS

# the places that are told apart, and the mount kinds in each
PLACES: dict[str, tuple[str, ...]] = {
    "shared": (SHARED,),
    "local": (LOCAL,),
    "memory": (MEMORY, KERNEL),
}
PHASE_WORDS = {
    "launch": "what stands before the program",
    "ld.so": "the loader: the program's libraries",
    "interpreter": "Python until its first import",
    "imports": "imports and what they load",
    "mpi": "MPI_Init",
    "user": "the program's own files",
}


class Fact(NamedTuple):
    label: str
    value: str
    note: str


def headline(sums: Sums) -> str:
    """The one sentence: what the start-up costs."""
    each = sums.lookups_per_rank()
    if not any(mount.kind == SHARED for mount in sums.profile.mounts):
        return "This start-up asked no shared file system"
    who = "Each rank asks" if sums.width > 1 else "The program asks"
    vain = percent(sums.lookups(failed=True), sums.lookups())
    tail = f", {vain} of it in vain" if sums.lookups(failed=True) else ""
    return f"{who} the shared file system {times(each)} to start{tail}"


def lead(sums: Sums) -> str:
    """The sentences below it: all ranks, and wider jobs by proportion."""
    each, all_ranks = sums.lookups_per_rank(), sums.lookups()
    own = f"{many(sums.width, 'rank')} together: {times(all_ranks)}. " if sums.width > 1 else ""
    if not each:
        return f"{own}All its {count(sums.calls())} calls were answered on the node."
    wide = " and ".join(f"{big(each * width)} at {width:,} ranks" for width in WIDE)
    return f"{own}By proportion that is {wide}; brigade predict says what that takes in time."


def times(number: float) -> str:
    return "once" if count(number) == "1" else f"{count(number)} times"


def facts(sums: Sums) -> list[Fact]:
    """The figures at the head of the page."""
    profile = sums.profile
    each, vain = sums.lookups_per_rank(), sums.lookups_per_rank(failed=True)
    found = [
        Fact("look-ups a rank", count(each), f"{count(vain)} find nothing"),
        Fact(f"at {WIDE[0]:,} ranks", big(each * WIDE[0]), "by proportion"),
        Fact(f"at {WIDE[1]:,} ranks", big(each * WIDE[1]), "by proportion"),
    ]
    same = profile.identical
    if same and same.calls and sums.width > 1:
        found.append(Fact("the same", percent(same.alike, same.calls), "on all ranks"))
    ready = [rank.ready_s - rank.start_s for rank in profile.ranks if rank.ready_s is not None]
    if ready:
        note = "until ready" + (", traced" if profile.overhead.stops else "")
        found.append(Fact("to start", seconds(statistics.median(ready)), note))
    if profile.files:
        number = f"in {many(len(profile.files), 'file')}"
        found.append(Fact("to load", size(sum(profile.files.values())), number))
    if profile.after:
        after = Sums(profile.after).lookups_per_rank()
        found.append(Fact("under Brigade", count(after), "look-ups a rank"))
    return found


class CountRow(NamedTuple):
    name: str
    calls: list[int]  # found and failed in each of PLACES
    total: int


def counts(sums: Sums) -> list[CountRow]:
    """Every call once, by kind; the last row is their sum."""
    rows = []
    for kind in KINDS:
        row = _count_row(sums, kind, kind=kind)
        if row.total:
            rows.append(row)
    return [*rows, _count_row(sums, "all")]


def around_main(sums: Sums) -> list[CountRow]:
    """The same sum, parted at the program's entry point."""
    return [
        _count_row(sums, "before main", before_main=True),
        _count_row(sums, "after main", before_main=False),
    ]


def _count_row(sums: Sums, name: str, **wanted: object) -> CountRow:
    calls = [
        sums.calls(place=kinds, failed=failed, **wanted)
        for kinds in PLACES.values()
        for failed in (False, True)
    ]
    return CountRow(name, calls, sums.calls(**wanted))


class PhaseRow(NamedTuple):
    name: str
    words: str
    shared: int  # look-ups on shared mounts that found something
    failed: int  # and that did not
    rest: int  # all other calls
    seconds: float
    bytes: int


def phases(sums: Sums) -> list[PhaseRow]:
    """What each phase of a start-up did, all ranks together; without those that did nothing."""
    rows = []
    for phase in PHASES:
        total = sums.calls(phase=phase)
        found = sums.lookups(phase=phase, failed=False)
        failed = sums.lookups(phase=phase, failed=True)
        moved = sums.bytes(phase=phase, place=SHARED, kind="read")
        if total:
            rows.append(
                PhaseRow(
                    *(phase, PHASE_WORDS[phase], found, failed, total - found - failed),
                    *(sums.seconds(phase=phase), moved),
                )
            )
    return rows


def wasted(profile: Profile) -> list[SearchEntry]:
    """The search entries with calls in vain, the worst first."""
    found = [entry for entry in profile.searches if entry.wasted]
    return sorted(found, key=lambda entry: (-entry.wasted, entry.place))


def entries(profile: Profile) -> list[SearchEntry]:
    """All search entries, those with most calls in vain first."""
    return sorted(profile.searches, key=lambda one: (-one.wasted, -one.calls, one.place))


class HeatRow(NamedTuple):
    entry: SearchEntry
    calls: list[int]  # for each name of the map
    rest: int  # for all other names
    others: str  # the most frequent of these


@dataclass
class Heat:
    """Wasted calls of one rank by search entry and name; what is not shown is summed."""

    names: list[str]
    rows: list[HeatRow]
    folded: int  # entries that are not shown
    folded_wasted: int
    largest: int


def heat(profile: Profile, most_rows: int = 14, most_names: int = 10) -> Heat:
    """Rows: entries, the worst first. Columns: names that are sought in more than one of them, the
    most frequent first; what is sought in one place alone is named in its row."""
    every = wasted(profile)
    shown, folded = every[:most_rows], every[most_rows:]
    sought: dict[str, list[int]] = {}
    for entry in shown:
        for name, calls in entry.names.items():
            sought.setdefault(name, []).append(calls)
    common = [name for name, calls in sought.items() if len(calls) > 1]
    names = sorted(common, key=lambda name: (-sum(sought[name]), name))[:most_names]
    rows = [_heat_row(entry, names) for entry in shown]
    return Heat(
        names=names,
        rows=rows,
        folded=len(folded),
        folded_wasted=sum(entry.wasted for entry in folded),
        largest=max([n for row in rows for n in [*row.calls, row.rest]], default=0),
    )


def _heat_row(entry: SearchEntry, names: list[str], most: int = 4) -> HeatRow:
    calls = [entry.names.get(name, 0) for name in names]
    others = {name: n for name, n in entry.names.items() if name not in names and n}
    order = sorted(others, key=lambda name: (-others[name], name))
    words = listed((f"{name} {count(others[name])}" for name in order), most)
    return HeatRow(entry, calls, max(0, entry.wasted - sum(calls)), words)


class Comparison(NamedTuple):
    label: str
    before: float
    after: float
    before_text: str
    after_text: str


def comparison(profile: Profile) -> list[Comparison]:
    """The run as it is, and the same under Brigade; only what was measured in both."""
    if not profile.after:
        return []
    before, after = Sums(profile), Sums(profile.after)
    rows = [
        _compared("look-ups a rank", before.lookups_per_rank(), after.lookups_per_rank()),
        _compared(
            "of these in vain",
            before.lookups_per_rank(failed=True),
            after.lookups_per_rank(failed=True),
        ),
    ]
    for one in profile.server:
        same = [o for o in profile.after.server if (o.mount, o.state) == (one.mount, one.state)]
        if same:
            rows.append(
                _compared(
                    f"requests that reached {one.mount}, {one.state}",
                    *(one.requests, same[0].requests),
                )
            )
            if one.bytes_read is not None and same[0].bytes_read is not None:
                bytes_read = (float(one.bytes_read), float(same[0].bytes_read))
                words = (size(bytes_read[0]), size(bytes_read[1]))
                rows.append(Comparison(f"bytes read from it, {one.state}", *bytes_read, *words))
    ready = [_ready(p) for p in (profile, profile.after)]
    if ready[0] is not None and ready[1] is not None:
        texts = (seconds(ready[0]), seconds(ready[1]))
        rows.append(Comparison("to start, traced, one run each", ready[0], ready[1], *texts))
    return rows


def _compared(label: str, before: float, after: float) -> Comparison:
    return Comparison(label, before, after, count(before), count(after))


def _ready(profile: Profile) -> float | None:
    found = [rank.ready_s - rank.start_s for rank in profile.ranks if rank.ready_s is not None]
    return statistics.median(found) if found else None


def overhead(profile: Profile) -> str:
    """What tracing cost, in a sentence."""
    cost = profile.overhead
    stops, stopped = count(cost.stops), seconds(cost.stopped_s)
    text = f"The traced tasks were stopped {stops} times, {stopped} in all."
    text = text if cost.stops else "How often the program was stopped is not known."
    if cost.traced_s and cost.plain_s:
        text += (
            f" Run again, the job took {seconds(cost.traced_s)} traced, {seconds(cost.plain_s)} "
            "plain: "
            f"{cost.traced_s / cost.plain_s:.2f} times as long."
        )
    else:
        text += " The same job was not run plain for comparison."
    return text
