"""What the calls of one process were for: each event gets a mark, marks of one purpose a search.

A *search* is everything that was done to bring in one file: the probes that found nothing, the one
that found it, and its reading. Three followers fill a story, each claiming the events that it can
explain: `ldsearch` (the dynamic loader), `syspath` (Python's import system) and `elsewhere` (PATH,
locales, all the rest). `phases` then says in which phase each event was.

What must stay true: a mark belongs to the event with the same index; every event is claimed at most
once, so that sums over searches never exceed the calls that were made.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from brigade.trace.events import TracedProcess


class Mark:
    """What is known of one event."""

    __slots__ = ("phase", "cause", "place", "owner", "hwcaps", "search", "sought")

    def __init__(self) -> None:
        self.phase = ""
        self.cause = ""  # of brigade.profile.profile.CAUSES; "": no search made it
        self.place = ""  # the directory that the cause led to
        self.owner = ""  # who made it a place
        self.hwcaps = False
        self.sought = ""  # the name that was looked for
        self.search = -1  # index into Story.searches


@dataclass
class Search:
    kind: str  # "program", "library", "extension", "module" or "process"
    name: str  # soname, dotted module name, program
    how: str  # "DT_NEEDED", "dlopen", "LD_PRELOAD", "import", "script", "exec"
    asker: str = ""  # path of the file that asked, "" if not known
    found: str = ""  # path as it was asked for; "": it was not found
    certain: bool = True  # False: who asked is inferred
    import_us: int | None = None  # the module's own time, from -X importtime
    events: list[int] = field(default_factory=list)


@dataclass
class Story:
    """One process, its marks (one an event) and its searches, in the order of their start."""

    process: TracedProcess
    rank: int
    main_ns: int | None = None  # when ld.so was done; None: it never was, or nobody knows
    main_inferred: bool = False
    marks: list[Mark] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.marks = [Mark() for _ in self.process.events]

    def open_search(self, search: Search) -> int:
        self.searches.append(search)
        return len(self.searches) - 1

    def claim(
        self,
        index: int,
        search: int,
        cause: str = "",
        place: str = "",
        owner: str = "",
        hwcaps: bool = False,
    ) -> None:
        """Event `index` was made for a search; with a cause, that led it to `place`."""
        mark = self.marks[index]
        mark.search = search
        mark.sought = self.searches[search].name
        mark.cause, mark.place, mark.owner, mark.hwcaps = cause, place, owner, hwcaps
        self.searches[search].events.append(index)

    def claimed(self, index: int) -> bool:
        mark = self.marks[index]
        return mark.search >= 0 or bool(mark.cause)
