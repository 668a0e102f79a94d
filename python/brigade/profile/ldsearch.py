"""Which calls the dynamic loader made, for which library, and what led it to each directory.

ld.so's order is known (`brigade.elf.search`), so the calls are read against it: the program is
loaded first, then breadth first what each object needs. A failed open of a name that is due is a
step of that search, and the folder of the open says which place of the search it was. An open of
a library that nothing needs is a dlopen; who called it is not told, and taken to be the program or
the newest object whose search leads to that folder.

What an object needs is read from the file itself, afterwards. Where the files are gone, or are
other ones, the opens alone are told.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator

from brigade.elf import cache as elf_cache
from brigade.elf import file as elf_file
from brigade.elf import loader as elf_loader
from brigade.elf.file import ElfFile, NotElf
from brigade.elf.search import Place
from brigade.elf.search import Search as LoaderSearch
from brigade.profile.places import Places
from brigade.profile.story import Search, Story
from brigade.trace.events import Event

_LIBRARY = re.compile(r"[^/]+\.so(?:\.[^/]*)?")
_CACHE = "/etc/ld.so.cache"


class Files:
    """ELF files, ld.so and its cache, each read once for all processes."""

    def __init__(self) -> None:
        self._files: dict[str, ElfFile | None] = {}
        self._loaders: dict[str, elf_loader.Loader | None] = {}
        self._cache: elf_cache.Cache | None = None

    def read(self, path: str) -> ElfFile | None:
        if path not in self._files:
            try:
                self._files[path] = elf_file.read(path)
            except (OSError, NotElf):
                self._files[path] = None
        return self._files[path]

    def search(self, program: ElfFile | None, env: dict[str, str], cwd: str) -> LoaderSearch | None:
        """ld.so's search for one process; None if the program has no ld.so."""
        interpreter = program.interpreter if program else None
        if not interpreter:
            return None
        if interpreter not in self._loaders:
            self._loaders[interpreter] = elf_loader.ask(interpreter)
        loader = self._loaders[interpreter]
        if self._cache is None:
            self._cache = elf_cache.read()
        if loader is None:
            loader = elf_loader.Loader(interpreter)
        return LoaderSearch(env, loader, self._cache, cwd or "/")


class _Object:
    """A loaded file."""

    def __init__(self, path: str, elf: ElfFile | None, by: _Object | None) -> None:
        self.path = path
        self.elf = elf
        self.by = by

    @property
    def chain(self) -> list[ElfFile]:
        found: list[ElfFile] = []
        one: _Object | None = self
        while one is not None:
            if one.elf is not None:
                found.append(one.elf)
            one = one.by
        return found


class _Current:
    """A search that is going on."""

    def __init__(self, name: str, by: _Object | None, number: int, places: list[Place]) -> None:
        self.name = name
        self.by = by
        self.number = number
        self.places = places
        self.at = 0
        self.folder = ""  # that the last open tried

    def place(self, folder: str) -> Place | None:
        """The next place of the search, in its order, that is this folder."""
        order = [*range(self.at, len(self.places)), *range(self.at)]
        for number in order:
            place: Place = self.places[number]
            if os.path.normpath(place.path) == os.path.normpath(folder):
                self.at = number
                return place
        return None


class Follower:
    """Claims the calls of ld.so in one process. `syspath` has been there before: the libraries
    that Python imports are claimed already, and only what they need is looked for here."""

    def __init__(self, story: Story, places: Places, files: Files) -> None:
        self._story = story
        self._places = places
        self._files = files
        process = story.process
        self._program = _Object(process.exe, files.read(process.exe), None)
        self._search = files.search(self._program.elf, process.env, process.cwd)
        self._objects = [self._program]
        self._names: set[str] = set()
        self._due: deque[tuple[str, _Object, str]] = deque()
        self._current: _Current | None = None
        self._found: dict[str, int] = {}  # canonical path -> search

    def follow(self) -> None:
        preload = self._story.process.env.get("LD_PRELOAD", "").replace(":", " ").split()
        self._due.extend((name, self._program, "LD_PRELOAD") for name in preload)
        self._need(self._program)
        for index, event in enumerate(self._story.process.events):
            if not event.path:
                continue
            if event.by_fd:
                self._read(index, event)
            elif event.kind == "open":
                self._open(index, event)
            elif event.kind == "stat":
                self._stat(index, event)
            elif event.kind == "exec" and not event.error:
                self._exec(index, event)

    def _need(self, one: _Object) -> None:
        if one.elf:
            self._due.extend((name, one, "DT_NEEDED") for name in one.elf.needed)

    def _exec(self, index: int, event: Event) -> None:
        """The exec that made this process what it is, if the trace counts it here."""
        exe = self._story.process.exe
        if index == 0 and not self._story.claimed(index) and exe:
            name = os.path.basename(exe)
            number = self._story.open_search(Search("program", name, "exec", found=exe))
            self._found[self._places.resolve(exe)] = number
            self._story.claim(index, number)

    def _read(self, index: int, event: Event) -> None:
        if not self._story.claimed(index):
            number = self._found.get(self._places.resolve(event.path))
            if number is not None:
                self._story.claim(index, number)

    def _stat(self, index: int, event: Event) -> None:
        """After a failed open ld.so looks once whether there is such a folder (from glibc 2.39 on
        with a slash at its end)."""
        now = self._current
        if now and event.path.rstrip("/") == now.folder and not self._story.claimed(index):
            self._claim(index, now, now.folder)

    def _open(self, index: int, event: Event) -> None:
        if self._story.claimed(index):
            mark = self._story.marks[index]
            search = self._story.searches[mark.search] if mark.search >= 0 else None
            if search and search.kind == "extension" and not event.error:
                self._due.clear()
                self._load(event.path, self._program, mark.search)
            return
        folder, _, name = event.path.rpartition("/")
        if event.path == _CACHE:
            self._open_cache(index)
            return
        now = self._current
        if now is None or os.path.basename(now.name) != name:
            now = self._begin(name, folder)
            if now is None:
                return
        now.folder = folder
        self._claim(index, now, folder)
        if not event.error and self._fits(event.path):
            self._current = None
            self._story.searches[now.number].found = event.path
            self._load(event.path, now.by, now.number)

    def _begin(self, name: str, folder: str) -> _Current | None:
        """A search for a name that is due, or else a dlopen; None if it is no library at all."""
        for number, (due, by, how) in enumerate(self._due):
            if os.path.basename(due) == name and due not in self._names:
                for _ in range(number + 1):
                    self._due.popleft()
                return self._start(due, by, how)
        if not _LIBRARY.fullmatch(name):
            return None
        if self._search is not None:
            self._due.clear()
        return self._start(name, self._caller(folder), "dlopen")

    def _start(self, name: str, by: _Object | None, how: str) -> _Current:
        search = Search("library", os.path.basename(name), how, certain=how != "dlopen")
        search.asker = by.path if by else ""
        number = self._story.open_search(search)
        self._current = _Current(name, by, number, self._places_of(by) if "/" not in name else [])
        return self._current

    def _caller(self, folder: str) -> _Object | None:
        """Who may have called dlopen: somebody whose search leads to this folder."""
        for one in [self._program, *reversed(self._objects[1:])]:
            own = (p for p in self._places_of(one) if p.cause in ("RPATH", "RUNPATH"))
            if any(os.path.normpath(p.path) == os.path.normpath(folder) for p in own):
                return one
        return self._program

    def _places_of(self, one: _Object | None) -> list[Place]:
        if self._search is None or one is None or not one.chain:
            return []
        return self._search.places(one.chain)

    def _open_cache(self, index: int) -> None:
        """The cache is opened by the first search that comes to it: the one that goes on, or the
        next that is due."""
        now = self._current
        if now is None:
            fresh = [due for due in self._due if due[0] not in self._names]
            if not fresh:
                return
            name, by, how = fresh[0]
            while self._due and self._due.popleft() != fresh[0]:
                pass
            now = self._start(name, by, how)
        self._story.claim(index, now.number, "ld.so.cache", _CACHE, "ld.so")
        self._found[_CACHE] = now.number

    def _claim(self, index: int, now: _Current, folder: str) -> None:
        event = self._story.process.events[index]
        place = None
        if event.kind == "open" and event.path == self._cached(now):
            place = Place(_CACHE, "ld.so.cache", "ld.so")
        place = place or now.place(folder)
        if place is None and now.places and not event.error and event.kind == "open":
            place = Place(_CACHE, "ld.so.cache", "ld.so")  # the cache has changed since
        if place is None:
            place = self._unknown(now, folder)
        self._story.claim(
            index, now.number, place.cause, place.folder, place.owner, bool(place.hwcaps)
        )

    def _cached(self, now: _Current) -> str | None:
        """Where the cache leads for a name. A folder of the program's own that the cache has too
        would come before it in the order of the search."""
        program = self._program.elf
        if self._search is None or program is None or "/" in now.name:
            return None
        hwcaps = self._search.loader.hwcaps
        path = self._search.cache.find(now.name, program.machine, program.cls, hwcaps)
        lists = (p for p in now.places if p.cause not in ("default path", "ld.so.cache"))
        if path and any(p.path == os.path.dirname(path) for p in lists):
            return None
        return path

    def _unknown(self, now: _Current, folder: str) -> Place:
        """A place that no list has: of a variable that this trace does not tell, or a path that
        the program gave itself."""
        env = self._story.process.env
        if now.places and not env:
            subdirs = self._search.loader.subdirs if self._search else ()
            hwcaps = next((one for one in subdirs if folder.endswith("/" + one)), "")
            plain = folder[: -len(hwcaps) - 1] if hwcaps else folder
            return Place(plain, "LD_LIBRARY_PATH", "LD_LIBRARY_PATH (inferred)", hwcaps)
        owner = os.path.basename(now.by.path) if now.by else "the program"
        return Place(folder, "other", f"a path given by {owner or 'the program'}")

    def _fits(self, path: str) -> bool:
        """Whether ld.so takes this file: one of another machine is passed over."""
        elf, program = self._files.read(path), self._program.elf
        if elf is None or program is None:
            return True
        return (elf.cls, elf.machine) == (program.cls, program.machine)

    def _load(self, path: str, by: _Object | None, number: int) -> None:
        elf = self._files.read(path)
        one = _Object(path, elf, by)
        self._objects.append(one)
        self._names |= {os.path.basename(path), *self._known_as(number, elf)}
        self._found[self._places.resolve(path)] = number
        self._need(one)

    def _known_as(self, number: int, elf: ElfFile | None) -> Iterator[str]:
        yield self._story.searches[number].name
        if elf and elf.soname:
            yield elf.soname
