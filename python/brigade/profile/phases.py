"""In which phase of a start-up each call was made.

The phases, and by what each begins:

    launch       the job: what a rank's wrappers (shells, env, numactl) do before the program
    ld.so        the exec of the program; ends at its entry point
    interpreter  the entry point of a program that interprets a script: its own files, `site`
    imports      the script is opened; also every later search and reading of a module
    mpi          the first file of MPI's runtime (its components, PMI, shared memory)
    user         the first file that is the user's own: no installed software, nothing of a system;
                 or the first word that the program says on a terminal

ld.so's work after the entry point (dlopen) counts to the phase that asked for it. A process that
the program starts is in the phase in which it was started.

The end of ld.so is measured (`TracedProcess.entry_ns`) or, in a trace without it, the first call
that ld.so does not make. The rest is inferred, by the rules below.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from brigade.profile.scripts import interprets, is_script, script_of
from brigade.profile.story import Story
from brigade.trace.events import Event
from brigade.trial.mounts import is_under

#: What an interpreter reads before its script whatever the script is. -c and -m have no script
#: file: their imports begin with the first module that is not one of these.
FIRST_MODULES = frozenset(
    """encodings codecs io abc site os stat posixpath ntpath genericpath _collections_abc
    _sitebuiltins sitecustomize usercustomize runpy importlib zipimport sysconfig""".split()
)
#: What MPI_Init reads and makes: component folders, parameters, PMI, hardware, shared memory.
_MPI = re.compile(
    r".*/(?:\.?openmpi|\.?pmix|prte|ucx|libfabric|mpich|hwloc|mca_[^/]*|[^/]*mca-params\.conf"
    r"|libpmix?\.so[^/]*|libpmi2?\.so[^/]*|openmpi-sessions[^/]*|ompi\.[^/]*|pmix-[^/]*"
    r"|vader_segment[^/]*|mpich_shar_[^/]*|infiniband[^/]*)(?:/.*)?"
)
#: Never the user's own, wherever a program looks.
_SYSTEM = re.compile(r"/(?:usr|lib\d*|bin|sbin|etc|proc|sys|dev|run|opt|var)(?:/.*)?|/")
_LOADER = re.compile(r"/etc/ld\.so\.[a-z.]+|.*\.so[.\d]*|.*/glibc-hwcaps(?:/.*)?")
#: A user's file among installed software is told from it by these folders.
_INSTALLED = re.compile(r".*/(?:site-packages|dist-packages|lib/python\d[\d.]*)(?:/.*)?")


def find_main(story: Story) -> None:
    """When ld.so was done."""
    process = story.process
    if process.entry_ns is not None:
        story.main_ns = process.entry_ns
        return
    own = False
    for event in process.events:
        if _LOADER.fullmatch(event.path) and event.kind == "open":
            own = True
        elif own and not _by_loader(event):
            story.main_ns, story.main_inferred = event.time_ns, True
            return


def _by_loader(event: Event) -> bool:
    """Whether ld.so may have made this call."""
    if event.by_fd:
        return event.kind in ("stat", "read", "map")
    return (
        event.kind in ("exec", "link")
        or bool(_LOADER.fullmatch(event.path))
        or (event.kind == "stat" and "." not in os.path.basename(event.path))
    )


def assign(story: Story, software: Iterable[str] = ()) -> None:
    """The phase of each event of the program itself. `software`: folders of installed software
    that do not look like it (environments): what lies there is not the user's own."""
    bounds = _Bounds(story, tuple(software))
    for index, event in enumerate(story.process.events):
        story.marks[index].phase = bounds.phase(index, event)


class _Bounds:
    """Where the phases of a program begin and end, as event indices."""

    def __init__(self, story: Story, software: tuple[str, ...]) -> None:
        self._story = story
        self._software = software
        events = story.process.events
        self._end = len(events)
        main = story.main_ns
        self._main = self._end if main is None else _first(e.time_ns >= main for e in events)
        if main is None and not any(_LOADER.fullmatch(e.path) for e in events if not e.by_fd):
            self._main = 0  # a static program: ld.so never was there
        self._begins = self._find_imports()
        self._from = self._main if self._begins is None else self._begins
        self._mpi = self._find_mpi()
        self._user = self._find_user()

    def phase(self, index: int, event: Event) -> str:
        if index < self._main:
            return "ld.so"
        if self._begins is not None and index < self._begins:
            return "interpreter"
        if self._mpi[0] <= index < self._mpi[1]:
            return "mpi"
        if self._of_module(index):
            return "ld.so" if self._begins is None else "imports"
        return "imports" if self._begins is not None and index < self._user else "user"

    def _of_module(self, index: int) -> bool:
        search = self._story.marks[index].search
        return search >= 0 and self._story.searches[search].kind in (
            *("module", "extension", "library"),
        )

    def _find_imports(self) -> int | None:
        """Where the interpreter has its script; None: the program interprets none."""
        process = self._story.process
        script = script_of(process) if interprets(process.exe) else ""
        events = self._story.process.events
        for index in range(self._main, self._end):
            if script and is_script(events[index].path, script) and not events[index].by_fd:
                return index
        for search in self._story.searches:
            if search.how == "import" and search.found and search.events[0] >= self._main:
                if search.name.partition(".")[0] not in FIRST_MODULES:
                    return search.events[0]
        return None

    def _find_mpi(self) -> tuple[int, int]:
        """From MPI's first file to its last before something else begins."""
        events = self._story.process.events
        begin = end = self._end
        for index in range(self._from, self._end):
            event = events[index]
            if _MPI.fullmatch(event.path) and not self._is_import(index, begin == self._end):
                begin = min(begin, index)
                end = index + 1
            elif begin < self._end and (self._is_import(index, False) or self._is_users(event)):
                break
        return (begin, end) if begin < self._end else (self._end, self._end)

    def _is_import(self, index: int, needed: bool) -> bool:
        """Whether a module asked for this, or, with `needed`, a library that needs it."""
        search = self._story.marks[index].search
        hows = ("import", "script", *(["DT_NEEDED"] if needed else []))
        return search >= 0 and self._story.searches[search].how in hows

    def _find_user(self) -> int:
        events = self._story.process.events
        for index in range(self._from, self._end):
            event = events[index]
            speaks = event.kind == "write" and event.path.startswith("/dev/pts/")
            if not self._of_module(index) and (speaks or self._is_users(event)):
                return index
        return self._end

    def _is_users(self, event: Event) -> bool:
        """Whether a call is about a file of the user's own: opened, or changed; that programs ask
        whether there is something at some place says little."""
        path = event.path
        if event.by_fd or event.kind not in ("open", "change") or not path.startswith("/"):
            return False
        if event.kind == "change" and event.error:  # mkdir -p of what is there
            return False
        if _SYSTEM.fullmatch(path) or _INSTALLED.fullmatch(path) or _MPI.fullmatch(path):
            return False
        if any(is_under(path, folder) for folder in self._software):
            return False
        return not _LOADER.fullmatch(path)


def _first(values: Iterable[bool]) -> int:
    count = 0
    for value in values:
        if value:
            return count
        count += 1
    return count
