"""Why one library, module or program was looked for where it was, step by step.

Works on the stories behind a profile (`brigade.profile.build.Built`): the searches whose name or
file is meant, who asked for them up to the program, what each step cost, and what would make it
cheaper. For a name that nothing was found for, what is closest to it where it was looked for; for a
name that nobody asked for, which names come near.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field

from brigade.profile.build import Built
from brigade.profile.places import Places
from brigade.profile.profile import SHARED
from brigade.profile.ranks import Rank
from brigade.profile.story import Mark, Search, Story
from brigade.trace.events import Event

_US = 1e-3  # from nanoseconds
_CLOSE = 3  # names that are offered
_ALIKE = 0.8  # of a file name: a letter or two are other ones
_DEEP = 64
WORKED = ("found", "there", "listing", "not in it")  # answers of calls that did not fail


@dataclass
class Step:
    """The calls of a search at one place that got the same kind of answer."""

    place: str
    cause: str
    owner: str
    hwcaps: bool  # subdirectories for kinds of processors, all together
    answer: str  # "found", "there", "listing", "not in it", "absent", or what the kernel said
    calls: int
    us: float
    shared: bool


@dataclass
class Explanation:
    name: str
    kind: str
    found: str  # "": nowhere
    how: str
    certain: bool  # of who asked
    chain: list[str]  # who asked, who asked for that, …, the program
    steps: list[Step]
    read_calls: int
    read_us: float
    read_bytes: int
    ranks: int  # that searched it
    of_ranks: int
    closest: list[str] = field(default_factory=list)
    cheaper: list[str] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return sum(step.calls for step in self.steps) + self.read_calls

    @property
    def wasted(self) -> int:
        return sum(step.calls for step in self.steps if step.answer not in WORKED)


def explain(built: Built, name: str) -> list[Explanation]:
    """The searches that `name` means, of the first rank that made them; none: nobody did."""
    for rank in built.ranks:
        found = _matching(rank, name, built.places)
        if found:
            return _joined([_told(built, rank, story, search) for story, search in found])
    return []


def _joined(told: list[Explanation]) -> list[Explanation]:
    """The exec that worked, and what it read, belong to the tries in PATH before it."""
    joined: list[Explanation] = []
    for one in told:
        last = joined[-1] if joined else None
        if last and (last.kind, one.kind) == ("process", "program") and last.found == one.found:
            last.steps += one.steps
            last.read_calls += one.read_calls
            last.read_us += one.read_us
            last.read_bytes += one.read_bytes
        else:
            joined.append(one)
    return joined


def closest(built: Built, name: str) -> list[str]:
    """Names that were asked for and come near."""
    known = {search.name for story in built.stories for search in story.searches if search.name}
    near = difflib.get_close_matches(name, sorted(known), _CLOSE)
    parts = [one for one in sorted(known) if name in one and one not in near]
    return [*near, *parts][: 2 * _CLOSE]


def _matching(rank: Rank, name: str, places: Places) -> list[tuple[Story, Search]]:
    """By exact name or path; else by the stem of a library, `libfoo.so` for `libfoo.so.1`."""
    all_ = [(story, search) for story in rank.stories for search in story.searches if search.name]
    if "/" in name:
        real = places.resolve(os.path.abspath(name))
        return [(s, x) for s, x in all_ if x.found and places.resolve(x.found) == real]
    exact = [(s, x) for s, x in all_ if name in (x.name, os.path.basename(x.found))]
    if exact:
        return exact
    return [(s, x) for s, x in all_ if x.name.startswith(name + ".") and ".so" in name]


def _told(built: Built, rank: Rank, story: Story, search: Search) -> Explanation:
    numbered = [one for one in built.ranks if one.number >= 0]
    steps, read = _steps(story, search, built.places)
    told = Explanation(
        name=search.name,
        kind=search.kind,
        found=search.found,
        how=search.how,
        certain=search.certain,
        chain=_chain(rank, story, search, built.places),
        steps=steps,
        read_calls=len(read),
        read_us=sum(event.took_ns for event in read) * _US,
        read_bytes=sum(event.bytes for event in read if event.kind == "read"),
        ranks=sum(1 for one in numbered if _has(one, search.name)),
        of_ranks=len(numbered),
    )
    if not search.found:
        told.closest = near_files(search.name, [step.place for step in steps])
    told.cheaper = _cheaper(told, built)
    return told


def _has(rank: Rank, name: str) -> bool:
    return any(search.name == name for story in rank.stories for search in story.searches)


def _steps(story: Story, search: Search, places: Places) -> tuple[list[Step], list[Event]]:
    """Places in the order in which they were first asked, and what was read."""
    steps: dict[tuple[str, str, str, bool, str], Step] = {}
    read: list[Event] = []
    for index in search.events:
        event, mark = story.process.events[index], story.marks[index]
        if not mark.cause:
            read.append(event)
            continue
        answer = _answer(event, mark, search)
        led = mark.cause == "ld.so.cache" and event.path != mark.place
        place = os.path.dirname(event.path) if led else mark.place
        key = (place, mark.cause, mark.owner, mark.hwcaps, answer)
        if key not in steps:
            shared = places.at(story.process.host, event).kind == SHARED
            steps[key] = Step(*key, 0, 0.0, shared)
        steps[key].calls += 1
        steps[key].us += event.took_ns * _US
    return list(steps.values()), read


def _answer(event: Event, mark: Mark, search: Search) -> str:
    if event.error and event.path.endswith(".pyc"):
        return "no byte code"
    if event.error:
        return "absent" if event.error in (2, 20) else os.strerror(event.error)
    # glibc since 2.41 asks for a folder with a slash at its end
    if event.path.rstrip("/") != mark.place.rstrip("/") and search.found:
        return "found"
    if mark.cause not in ("sys.path", "package path"):
        return "there"
    # Python asks whether the listing that it has of an entry is still true, and looks there
    return "listing" if search.found.startswith(mark.place + "/") else "not in it"


def _chain(rank: Rank, story: Story, search: Search, places: Places) -> list[str]:
    """Who asked, innermost first, with how: "app (import)"."""
    by_file = {
        places.resolve(one.found): one
        for one in story.searches
        if one.found and one.kind != "process"
    }
    chain: list[str] = []
    one: Search | None = search
    for _ in range(_DEEP):
        if one is None or not one.asker:
            break
        above = by_file.get(places.resolve(one.asker))
        chain.append(above.name if above else os.path.basename(one.asker))
        one = above if above is not one else None
    program = os.path.basename(story.process.exe)
    if program and (not chain or chain[-1] != program) and search.kind != "program":
        chain.append(program)
    return chain


def near_files(name: str, folders: list[str]) -> list[str]:
    """Files beside the way that come near a name: another version first, then another spelling."""
    stem = name.split(".so")[0] + ".so" if ".so" in name else name.rpartition(".")[2]
    versions: list[str] = []
    spellings: list[str] = []
    for folder in dict.fromkeys(folders):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        versions += [f"{folder}/{one}" for one in sorted(names) if one.startswith(stem + ".")]
        bare = {one.partition(".")[0]: one for one in names if not one.endswith(".a")}
        near = difflib.get_close_matches(stem.partition(".")[0], list(bare), _CLOSE, _ALIKE)
        spellings += [f"{folder}/{bare[one]}" for one in near]
    return list(dict.fromkeys(versions + spellings))[:_CLOSE]


def _is_there(told: Explanation, place: str) -> bool:
    return any(step.answer == "found" and step.place == place for step in told.steps)


def _cheaper(told: Explanation, built: Built) -> list[str]:
    """What would save the steps that found nothing, most general last."""
    found = []
    in_vain = [step for step in told.steps if step.answer not in WORKED]
    hwcaps = sum(step.calls for step in in_vain if step.hwcaps)
    if hwcaps:
        found.append(
            f"{hwcaps} of the calls looked for builds for kinds of processors, as ld.so does in "
            "each folder that it comes to first: fewer folders in the path, fewer of them"
        )
    for cause, advice in _ADVICE.items():
        wasted: dict[str, int] = {}
        for step in in_vain:
            if step.cause == cause and not step.hwcaps:
                wasted[step.place] = wasted.get(step.place, 0) + step.calls
        for place in [place for place in wasted if _is_there(told, place)]:
            found.append(_SUFFIXES.format(place=place, calls=wasted.pop(place)))
        if len(wasted) > 1:
            place = f"{len(wasted)} folders, the first {next(iter(wasted))}"
            found.append(advice.format(place=place, calls=sum(wasted.values()), name=told.name))
        else:
            found += [advice.format(place=p, calls=n, name=told.name) for p, n in wasted.items()]
    if told.kind == "module" and any(step.answer == "no byte code" for step in in_vain):
        found.append(f"compile it once: python -m compileall {told.found}")
    if told.calls and any(step.shared for step in told.steps):
        command = " ".join(built.profile.command) or "…"
        found.append(f"brigade run -- {command}: every step is answered from the node's memory")
    return found


#: What takes away the failed calls at one place, by what led there.
_ADVICE = {
    "RPATH": "{calls} in vain at {place}, which an RPATH names: patchelf --set-rpath without it",
    "RUNPATH": "{calls} in vain at {place}, which a RUNPATH names: patchelf --set-rpath without it",
    "LD_LIBRARY_PATH": "{calls} in vain at {place}: take it out of LD_LIBRARY_PATH, or put it last",
    "PATH": "{calls} in vain at {place}: call {name} by its full path, or put its folder first",
    "sys.path": "{calls} in vain at {place}: if nothing is imported from it, take it off the path",
    "package path": "{calls} in vain at {place}: it is in none of the package's folders",
}
_SUFFIXES = "{calls} in vain at {place}, where it is: other kinds of files are tried before it"
