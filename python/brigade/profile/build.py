"""From a trace to a profile: every call gets a mark, and the profile's parts are sums over marks.

Each process becomes a story (`story`), in which the followers claim what they can explain; ranks
and phases follow; then cells, search entries, tree, what ranks ask alike, times. `Built` keeps the
stories, for `brigade explain`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from brigade import __version__
from brigade.profile import askers, elsewhere, ldsearch, phases, syspath
from brigade.profile.alike import identical
from brigade.profile.askers import ImportTime
from brigade.profile.places import Places
from brigade.profile.profile import SHARED, Cell, MountUse, Overhead, Profile, Timeline
from brigade.profile.ranks import Rank, numbers
from brigade.profile.scripts import interprets, script_of
from brigade.profile.searched import searches
from brigade.profile.story import Story
from brigade.profile.tree import tree, unattributed
from brigade.trace.events import KINDS, Event, Trace
from brigade.trial.mounts import NOT_A_PREFIX, is_under

_NS = 1e-9
_STEPS = 200  # of a timeline, at most
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc")
_VIEWED = (
    "The program's software was mounted from node memory (the namespace view): all calls below it "
    "count as memory's, those of names that the image does not know too, which go on to the disk."
)


@dataclass
class Built:
    """A profile and what it was made from."""

    profile: Profile
    ranks: list[Rank]  # those with a number; what belongs to none stands last, as -1
    places: Places

    @property
    def stories(self) -> list[Story]:
        return [story for rank in self.ranks for story in rank.stories]


def build(
    trace: Trace,
    *,
    command: list[str],
    program: list[str],
    launcher: str | None,
    importtimes: Sequence[ImportTime] | None = None,
    cover: Iterable[str] = (),
    viewed: bool = False,
) -> Built:
    """The profile of a traced job, and what it was made from. `cover`: folders that count as
    shared; `viewed`: the job ran in Brigade's namespace view."""
    places = Places(trace, cover, prefixes(trace), viewed)
    ranks = _told(trace, places, environments(trace), importtimes)
    counted = [rank for rank in ranks if rank.number >= 0] or ranks
    shown = counted[0] if counted else None
    nodes = tree(shown, places) if shown else []
    assert shown is None or unattributed(shown, nodes) >= 0, "a call belongs to two nodes"
    profile = Profile(
        brigade=__version__,
        made=datetime.fromtimestamp(trace.start_ns * _NS, timezone.utc).isoformat("T", "seconds"),
        command=list(command),
        program=list(program),
        launcher=launcher,
        mechanism=trace.mechanism.name,
        seen=[*trace.mechanism.seen, *_assumed(places, counted)],
        lost=[*trace.mechanism.lost, *([_VIEWED] if viewed else [])],
        overhead=Overhead(trace.mechanism.stops, trace.mechanism.stopped_ns * _NS),
        ranks=[rank.times() for rank in counted],
        mounts=_mounts(ranks, places),
        cells=cells(ranks, places),
        searches=searches(counted, places) if counted else [],
        tree=nodes,
        identical=identical(
            {rank.number: rank.stories for rank in ranks if rank.number >= 0},
            lambda story, event: places.at(story.process.host, event).kind == SHARED,
        ),
        timelines=[_timeline(ranks, places)],
        files=_files(ranks, places),
        complete=trace.mechanism.complete,
    )
    return Built(profile, ranks, places)


def _told(
    trace: Trace,
    places: Places,
    software: list[str],
    importtimes: Sequence[ImportTime] | None,
) -> list[Rank]:
    files = ldsearch.Files()
    sources: askers.Sources = {}
    by_rank: dict[int, list[Story]] = {}
    for process, number in zip(trace.processes, numbers(trace)):
        story = Story(process, number)
        syspath.Follower(story, places).follow()
        ldsearch.Follower(story, places, files).follow()
        elsewhere.explain(story)
        phases.find_main(story)
        by_rank.setdefault(number, []).append(story)
    ranks = [Rank(number, by_rank[number]) for number in sorted(by_rank, key=_last_if_none)]
    for rank in ranks:
        rank.assign_phases(software)
        elsewhere.join_images(rank.stories)
        for story in rank.stories:
            askers.infer(story, sources, importtimes if story is rank.program else None)
    return ranks


def _last_if_none(number: int) -> tuple[bool, int]:
    return (number < 0, number)


def environments(trace: Trace) -> list[str]:
    """Folders of installed Pythons and of their virtual environments."""
    wanted: dict[str, None] = {}
    for _, event in trace.events():
        if event.kind == "open" and not event.error and event.path.endswith("/pyvenv.cfg"):
            wanted[os.path.dirname(event.path)] = None
    for process in trace.processes:
        folder, _, name = process.exe.rpartition("/")
        if name.startswith("python") and os.path.basename(folder) == "bin":
            wanted[os.path.dirname(folder)] = None
    return _own(wanted)


def prefixes(trace: Trace) -> list[str]:
    """The programs' own folders: environments, scripts' folders, folders of executables."""
    wanted = dict.fromkeys(environments(trace))
    for process in trace.processes:
        folder = os.path.dirname(process.exe)
        wanted[os.path.dirname(folder) if os.path.basename(folder) == "bin" else folder] = None
        if interprets(process.exe):
            wanted[os.path.dirname(script_of(process))] = None
    return _own(wanted)


def _own(folders: Iterable[str]) -> list[str]:
    """Canonical, without the system's."""
    real = (os.path.realpath(folder) for folder in folders if folder.startswith("/"))
    return [
        folder
        for folder in dict.fromkeys(real)
        if folder not in NOT_A_PREFIX and not any(is_under(folder, one) for one in _SYSTEM)
    ]


def _assumed(places: Places, ranks: list[Rank]) -> list[str]:
    """What the profile takes for granted, in sentences."""
    said = []
    if places.assumed:
        said.append("The trace does not tell what was mounted: this machine's mounts were taken.")
    folder = places.stand_in()
    if folder is not None:
        said.append(
            f"No shared file system was looked at: {folder} (the program's own folder) counts as "
            "one. --cover DIR chooses another."
        )
    asked = [root for root, why in places.coverage.why.items() if why == "asked"]
    if asked:
        said.append(f"Counted as shared, as asked: {', '.join(asked)}.")
    if any(rank.program.main_inferred for rank in ranks):
        said.append("Where ld.so was done was inferred from the order of the calls.")
    return said


def _events(ranks: list[Rank]) -> Iterable[tuple[Rank, Story, int, Event]]:
    for rank in ranks:
        for story in rank.stories:
            for index, event in enumerate(story.process.events):
                yield rank, story, index, event


def cells(ranks: list[Rank], places: Places) -> list[Cell]:
    """Calls that are alike, counted: every call of the trace is in exactly one cell."""
    table: dict[tuple[int, str, str, str, bool, bool, bool], list[int]] = {}
    for rank, story, index, event in _events(ranks):
        main = rank.program.main_ns
        key = (
            rank.number,
            story.marks[index].phase or "user",
            places.at(story.process.host, event).point,
            event.kind,
            bool(event.error),
            not event.by_fd,
            main is not None and event.time_ns < main,
        )
        sums = table.setdefault(key, [0, 0, 0])
        sums[0] += 1
        sums[1] += event.took_ns
        sums[2] += event.bytes
    return [
        Cell(*key, calls, took * _NS, size)
        for key, (calls, took, size) in sorted(table.items(), key=lambda item: item[0])
    ]


def _mounts(ranks: list[Rank], places: Places) -> list[MountUse]:
    found = {}
    for _, story, _, event in _events(ranks):
        use = places.at(story.process.host, event)
        found[use.point] = use
    return [found[point] for point in sorted(found)]


def _files(ranks: list[Rank], places: Places) -> dict[str, int]:
    """Files on shared mounts that were read or mapped to be loaded, with their size: as it is now,
    or what was read at most. The user's own input is none of them."""
    read: dict[str, int] = {}
    for _, story, index, event in _events(ranks):
        mark = story.marks[index]
        if event.kind not in ("read", "map") or event.error or not event.path.startswith("/"):
            continue
        if mark.phase == "user" and mark.search < 0:
            continue
        if places.at(story.process.host, event).kind == SHARED:
            path = places.resolve(event.path)
            read[path] = max(read.get(path, 0), event.bytes)
    return {path: _size(path, least) for path, least in sorted(read.items())}


def _size(path: str, least: int) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return least


def _timeline(ranks: list[Rank], places: Places) -> Timeline:
    """Calls on shared mounts over time."""
    when = [
        (event.time_ns, event.kind)
        for _, story, _, event in _events(ranks)
        if places.at(story.process.host, event).kind == SHARED
    ]
    last = max((time for time, _ in when), default=0)
    step_s = next(
        size * 10.0**power
        for power in range(-3, 9)
        for size in (1, 2, 5)
        if last * _NS / (size * 10.0**power) < _STEPS
    )
    steps = int(last * _NS / step_s) + 1
    kinds = {kind: [0] * steps for kind in KINDS if any(kind == one for _, one in when)}
    for time, kind in when:
        kinds[kind][int(time * _NS / step_s)] += 1
    return Timeline("calls", step_s, kinds)
