"""Rules about places that are searched in vain: library paths, PATH, locales."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from brigade.profile.profile import Insight, SearchEntry
from brigade.profile.sums import Sums
from brigade.profile.words import count, listed, many, percent
from brigade.trial.mounts import is_under

# wasted calls of one rank from which an entry is worth a word, a warning, an alarm
WORTH, WARN, ALARM = 10, 50, 500
NEW_HWCAPS = 10  # calls for one library in one folder that has none: glibc 2.37 makes no more
DOMINATES = 0.25  # of all a rank's look-ups: one entry is the matter


def severity(wasted: float) -> str:
    return "critical" if wasted >= ALARM else "warning" if wasted >= WARN else "info"


def entries(sums: Sums, *causes: str, hwcaps: bool | None = False) -> list[SearchEntry]:
    """The entries on shared mounts with one of these causes; hwcaps None: of both sorts."""
    return [
        entry
        for entry in sums.profile.searches
        if entry.cause in causes
        and sums.shared(entry.mount)
        and (hwcaps is None or entry.hwcaps == hwcaps)
    ]


def in_use(sums: Sums, cause: str) -> list[SearchEntry]:
    """The entries with this cause that gave something, on whatever mount: a variable that names
    one of them is not to be taken away whole."""
    return [entry for entry in sums.profile.searches if entry.cause == cause and entry.found]


def cost(entry: SearchEntry) -> int:
    """Calls of one rank that would not be missed. Python asks a folder only whether it has changed
    and remembers what is in it: such a call works, and is no use where nothing was ever found."""
    return entry.wasted if entry.found else entry.calls


def without(variable: str, places: list[str]) -> str:
    """The command that takes places out of a path variable and keeps the others' order."""
    words = " ".join(f"-e {shlex.quote(place)}" for place in places)
    kept = f"printf %s \"${variable}\" | tr : '\\n' | grep -vxF {words} | paste -sd:"
    return f'export {variable}="$({kept})"'


def rpath(sums: Sums) -> Iterator[Insight]:
    """Search folders written into a program or library, in which nothing was found."""
    owners: dict[str, list[SearchEntry]] = {}
    for entry in entries(sums, "RPATH", "RUNPATH", hwcaps=None):
        owners.setdefault(entry.owner, []).append(entry)
    wasted: dict[str, int] = {}
    for owner, all_of in owners.items():
        useful = {entry.place for entry in all_of if entry.found}
        wasted[owner] = sum(entry.wasted for entry in all_of if entry.place not in useful)
    total = sum(wasted.values())
    if total < WORTH:
        return
    files = sorted((owner for owner in wasted if wasted[owner]), key=lambda owner: -wasted[owner])
    kinds = "/".join(sorted({entry.cause for file in files for entry in owners[file]}))
    yield Insight(
        severity(total),
        f"{kinds} folders that hold nothing make ld.so look {count(total)} times in vain",
        f"On each rank, by {many(len(files), 'object')}: {listed(name(file) for file in files)}.",
        "Take out the folders in which nothing is found; it lasts until the file is installed "
        "again.",
        "\n".join(f"patchelf --shrink-rpath {shlex.quote(file)}" for file in files[:3]),
    )


def library_path(sums: Sums) -> Iterator[Insight]:
    """LD_LIBRARY_PATH folders that are searched for every library and give nothing."""
    found = entries(sums, "LD_LIBRARY_PATH", hwcaps=None)
    useful = {entry.place for entry in in_use(sums, "LD_LIBRARY_PATH")}
    idle = [e for e in found if not e.hwcaps and e.place not in useful]
    below = [e for e in found if e.hwcaps and not any(is_under(e.place, u) for u in useful)]
    wasted = sum(cost(entry) for entry in [*idle, *below])
    if wasted < WORTH or not idle:
        return
    places = list(dict.fromkeys(entry.place for entry in idle))
    yield Insight(
        severity(wasted),
        f"{many(len(places), 'LD_LIBRARY_PATH folder')} gave nothing and cost each rank "
        f"{count(wasted)} calls",
        f"Searched before ld.so.cache, for each library: {listed(places)}.",
        "Leave out, for this job, what it does not use (a later dlopen may: try it)."
        if useful
        else "Nothing in it was of use to this job: start it without.",
        without("LD_LIBRARY_PATH", places) if useful else "unset LD_LIBRARY_PATH",
    )


def library_path_cost(sums: Sums) -> Iterator[Insight]:
    """LD_LIBRARY_PATH that does serve, but behind other folders of its own."""
    found = entries(sums, "LD_LIBRARY_PATH", hwcaps=None)
    useful = [e for e in found if e.found and not e.hwcaps]
    wasted = sum(entry.wasted for entry in useful)
    if len(useful) < 2 or wasted < WARN:
        return
    yield Insight(
        severity(wasted),
        f"{len(useful)} LD_LIBRARY_PATH folders are in use, and searched in turn: {count(wasted)} "
        "calls in vain on each rank",
        f"Each library is sought in each folder before its own: {listed(e.place for e in useful)}.",
        "One folder of links to these libraries needs one search; build it once, put it first.",
        "brigade study paths -- " + shlex.join(sums.profile.command),
    )


def hwcaps(sums: Sums) -> Iterator[Insight]:
    """Subdirectories for processor features, which ld.so tries first in every folder."""
    causes = ("RPATH", "RUNPATH", "LD_LIBRARY_PATH", "default path", "ld.so.cache")
    found = [entry for entry in entries(sums, *causes, hwcaps=True) if entry.wasted]
    wasted = sum(entry.wasted for entry in found)
    if wasted < WORTH:
        return
    old = max(entry.wasted for entry in found) > NEW_HWCAPS
    yield Insight(
        severity(wasted),
        f"Folders for processor features (hwcaps) are tried {count(wasted)} times in vain",
        f"ld.so tries them in every search folder that it visits, {len(found)} here; "
        f"most in {listed([e.place for e in sorted(found, key=lambda e: -e.wasted)], 1)}.",
        "Fewer search folders make fewer of these: shorten LD_LIBRARY_PATH and RPATH first. glibc "
        "before 2.37 also tries older kinds, a third of these calls, which a mask leaves out.",
        "export LD_HWCAP_MASK=0" if old and not any(entry.found for entry in found) else "",
    )


def dominating_entry(sums: Sums) -> Iterator[Insight]:
    """One place that alone makes a large part of all look-ups."""
    total = sums.lookups_per_rank()
    found = [e for e in sums.profile.searches if sums.shared(e.mount) and e.cause != "other"]
    if total < 100 or not found:
        return
    worst = max(found, key=cost)
    if cost(worst) < DOMINATES * total:
        return
    sought = listed(worst.names, 4) or "what is elsewhere"
    yield Insight(
        "critical" if cost(worst) >= ALARM else "warning",
        f"One search entry wastes {percent(cost(worst), total)} of all look-ups",
        f"{worst.place} ({worst.cause}, set by {name(worst.owner) or 'nobody known'}): "
        f"{count(cost(worst))} of {count(total)} on each rank, for {sought}.",
        "Take it out, or put it behind the entries in which things are found.",
    )


def relative_entry(sums: Sums) -> Iterator[Insight]:
    """An empty or relative entry of a path variable: the current folder is searched."""
    found = [
        entry
        for entry in sums.profile.searches
        if entry.cause in ("LD_LIBRARY_PATH", "PATH", "RPATH", "RUNPATH")
        and (entry.relative or not entry.place.startswith("/"))
    ]
    if not found:
        return
    names = sorted({entry.cause for entry in found})
    yield Insight(
        "warning",
        f"{listed(names)} has an empty or relative entry: the current folder is searched",
        f"{many(sum(e.wasted for e in found), 'call')} in vain on each rank, and whatever lies "
        "in the "
        "folder from which the job is started may be loaded.",
        "Take out leading, trailing and double colons; name other folders from / on.",
        f'export {names[0]}="$(printf %s "${names[0]}" | tr : \'\\n\' | grep ^/ | paste -sd:)"'
        if names[0] in ("LD_LIBRARY_PATH", "PATH") and not any(e.found for e in found)
        else "",
    )


def program_path(sums: Sums) -> Iterator[Insight]:
    """PATH is walked for a command."""
    found = entries(sums, "PATH")
    wasted = sum(entry.wasted for entry in found)
    if wasted < WORTH:
        return
    sought = listed(dict.fromkeys(name for entry in found for name in entry.names))
    yield Insight(
        severity(wasted),
        f"Commands are sought along PATH {count(wasted)} times in vain on each rank",
        f"{many(len(found), 'folder')} on a shared file system; sought: {sought}.",
        "Name programs by their full path, or put their folder first.",
    )


def locale(sums: Sums) -> Iterator[Insight]:
    """A locale that is not in the archive is sought file by file."""
    found = entries(sums, "locale")
    wasted = sum(entry.wasted for entry in found)
    if wasted < WORTH:
        return
    yield Insight(
        severity(wasted),
        f"The locale is sought file by file: {count(wasted)} calls in vain on each rank",
        f"In {listed(dict.fromkeys(e.place for e in found))}; it is in no locale archive.",
        "Batch jobs seldom need one: take the locale that is built into glibc.",
        "export LC_ALL=C.UTF-8",
    )


def name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


RULES = (
    rpath,
    library_path,
    library_path_cost,
    hwcaps,
    dominating_entry,
    relative_entry,
    program_path,
    locale,
)
