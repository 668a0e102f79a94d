"""Which calls Python's import system made, for which module, and which path entry led it there.

Nothing tells a module's name to the kernel, so it is inferred from the pattern in which
`importlib` asks (the same since 3.3): for each entry of `sys.path`, or of a package's
`__path__`, a stat of the entry (has it changed?), a listing the first time, then

    ENTRY/name/__init__<suffix>   for each suffix, if the listing has a folder of that name
    ENTRY/name<suffix>            for each suffix that the listing has

and for what is found: stat of the source, open of `__pycache__/name.<tag>.pyc`, or of the library.
The first use of an entry is preceded by two more stats (is it a zip file? is it a folder?).
A listing that does not have the name fails nothing: an entry's cost is then its stat alone.

A search for a module that is nowhere ends where the next one visits an entry again; its name is
not known then, because no call mentions it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from brigade.profile.places import Places
from brigade.profile.scripts import is_script, script_of
from brigade.profile.story import Search, Story
from brigade.trace.events import Event

_TAG = r"(?:\.[a-z]+-?\d+[\w-]*|\.abi3)?"
_PACKAGE = re.compile(rf"(?P<at>.*)/(?P<name>[^/.]+)/__init__{_TAG}\.(?:so|py|pyc)")
_MODULE = re.compile(rf"(?P<at>.*)/(?P<name>[^/.]+){_TAG}\.(?P<kind>so|py|pyc)")
_CACHED = re.compile(r"(?P<at>.*)/__pycache__/(?P<name>[^/.]+)\.[^/]+\.pyc")
_EXTENSION = re.compile(r"\.(?:cpython-[^/]+|abi3)\.so$")
_ZIP = re.compile(r".*/python\d+\.zip")
#: How often an entry is asked about before it is listed for the first time.
_FIRST_STATS = 3


@dataclass
class _Found:
    search: int
    place: str


@dataclass
class Paths:
    """The entries of one process: folder -> who made it one."""

    owners: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)  # folder -> dotted name

    def cause(self, place: str) -> str:
        return "package path" if place in self.packages else "sys.path"


def probe(path: str) -> tuple[str, str] | None:
    """The entry and the name of a path that the import system may have asked for."""
    match = _CACHED.fullmatch(path)
    if match:
        at, name = match["at"], match["name"]
        if name == "__init__":
            at, _, name = at.rpartition("/")
        return at, name
    match = _PACKAGE.fullmatch(path) or _MODULE.fullmatch(path)
    if match and match["name"] != "__init__":
        return match["at"], match["name"]
    return None


def entries(story: Story) -> dict[str, None]:
    """Every folder that this process imported from, or looked into for that; none: no Python."""
    found: dict[str, None] = {}
    imports = False
    same, stats = "", 0
    for event in story.process.events:
        if event.by_fd:
            continue
        if event.kind == "open" and event.path == same and stats >= _FIRST_STATS:
            found[same] = None
        stats = stats + 1 if event.kind == "stat" and event.path == same else 1
        same = event.path
        if _ZIP.fullmatch(event.path) and event.kind == "stat":
            found[event.path] = None
        at = probe(event.path)
        imports = imports or "/encodings/" in event.path
        if not at or not imports:
            continue
        if _CACHED.fullmatch(event.path) or (event.kind == "stat" and _shows(event, at[0], found)):
            found[at[0]] = None
    return found if imports else {}


def _shows(event: Event, at: str, found: dict[str, None]) -> bool:
    """Whether a stat tells that a folder is an entry: libraries are asked for elsewhere too."""
    return at in found or event.path.endswith(".py") or bool(_EXTENSION.search(event.path))


class Follower:
    """Claims the calls of the import system in one process."""

    def __init__(self, story: Story, places: Places) -> None:
        self._story = story
        self._places = places
        self._paths = Paths()
        self._entries = entries(story)
        self._real_entries = {places.resolve(place): place for place in self._entries}
        self._files: dict[str, _Found] = {}  # canonical -> whose search it belongs to
        self._modules: dict[tuple[str, str], _Found] = {}
        self._pending: list[tuple[int, str]] = []  # event and place; whose search, is not known yet
        self._sought: tuple[str, str] | None = None  # entry and name that are being probed
        self._begins = 0  # before the first import, landmarks of the prefix are looked for
        self._script = script_of(story.process)

    def follow(self) -> Paths:
        if not self._entries:
            return self._paths
        events = self._story.process.events
        self._begins = next(i for i, e in enumerate(events) if "/encodings/" in e.path)
        self._name_packages()
        for place in self._entries:
            self._paths.owners[place] = self._owner(place)
        for index, event in enumerate(self._story.process.events):
            if not self._story.claimed(index) and event.path:
                self._take(index, event)
        self._give_up()
        return self._paths

    def _name_packages(self) -> None:
        """Folders with an `__init__` that was found, outermost first."""
        folders = {
            match["at"] + "/" + match["name"]
            for event in self._story.process.events
            if not event.error and not event.by_fd
            for match in [_PACKAGE.fullmatch(event.path)]
            if match and match["at"] in self._entries
        }
        for folder in sorted(folders):
            at, _, name = folder.rpartition("/")
            above = self._paths.packages.get(at)
            self._paths.packages[folder] = f"{above}.{name}" if above else name

    def _take(self, index: int, event: Event) -> None:
        if event.by_fd:
            self._take_descriptor(index, event)
        elif self._script and is_script(event.path, self._script):
            self._take_script(index)
        elif event.kind not in ("stat", "open"):
            return  # a link that is resolved, a program that is started
        elif event.path in self._entries:
            self._visit(index, event)
        else:
            at = probe(event.path)
            if at and at[0] in self._entries and index >= self._begins:
                self._probe(index, event, at)

    def _take_script(self, index: int) -> None:
        self._give_up()
        real = self._places.resolve(self._script)
        if real not in self._files:
            search = Search("module", os.path.basename(self._script), "script", found=self._script)
            search.asker = self._story.process.exe
            place = os.path.dirname(self._script)
            self._files[real] = _Found(self._story.open_search(search), place)
        self._story.claim(index, self._files[real].search)

    def _take_descriptor(self, index: int, event: Event) -> None:
        real = self._places.resolve(event.path)
        found = self._files.get(real)
        if found:
            self._story.claim(index, found.search)
        elif real in self._real_entries:
            self._pending.append((index, self._real_entries[real]))

    def _visit(self, index: int, event: Event) -> None:
        """An entry is asked about or listed: a search has come to it."""
        place = event.path
        seen = [at for _, at in self._pending]
        if self._sought or (place in seen and place != seen[-1]):
            self._give_up()
        self._pending.append((index, place))

    def _probe(self, index: int, event: Event, at: tuple[str, str]) -> None:
        known = self._modules.get(at)
        if known:
            self._claim(index, known.search, at[0])
            if not event.error:
                self._files[self._places.resolve(event.path)] = known
            return
        if self._sought and self._sought != at:
            self._give_up()
        self._sought = at
        self._pending.append((index, at[0]))
        if not event.error:
            self._found(event, at)

    def _found(self, event: Event, at: tuple[str, str]) -> None:
        kind = "extension" if event.path.endswith(".so") else "module"
        search = Search(kind, self._dotted(at), "import", found=event.path, certain=False)
        self._modules[at] = self._close(search, at[0])
        self._files[self._places.resolve(event.path)] = self._modules[at]

    def _dotted(self, at: tuple[str, str]) -> str:
        package = self._paths.packages.get(at[0])
        return f"{package}.{at[1]}" if package else at[1]

    def _give_up(self) -> None:
        """What was looked for is not there; without a probe nobody knows its name."""
        if self._pending:
            name = self._dotted(self._sought) if self._sought else ""
            self._close(Search("module", name, "import", certain=False), "")

    def _close(self, search: Search, place: str) -> _Found:
        number = self._story.open_search(search)
        for index, at in self._pending:
            self._claim(index, number, at)
        self._pending, self._sought = [], None
        return _Found(number, place)

    def _claim(self, index: int, search: int, place: str) -> None:
        event = self._story.process.events[index]
        if event.by_fd:
            self._story.claim(index, search)
            return
        cause = self._paths.cause(place)
        self._story.claim(index, search, cause, place, self._paths.owners.get(place, ""))

    def _owner(self, place: str) -> str:
        process = self._story.process
        package = self._paths.packages.get(place)
        if package:
            return package
        told = process.env.get("PYTHONPATH", "").split(":")
        if place in told or place in (os.path.join(process.cwd, word) for word in told if word):
            return "PYTHONPATH"
        if self._script and place == os.path.dirname(self._script):
            return "the script's folder"
        for pth in self._opened(".pth"):
            if place in _named_in(pth):
                return pth
        return self._standard(place)

    def _standard(self, place: str) -> str:
        """Who makes an entry of every run of this interpreter."""
        name = os.path.basename(place)
        if _ZIP.fullmatch(place) or name == "lib-dynload" or self._has_encodings(place):
            return "python"
        if name in ("site-packages", "dist-packages"):
            if "/.local/" in place:
                return "user site-packages"
            owned = [os.path.dirname(cfg) for cfg in self._opened("/pyvenv.cfg")]
            return "pyvenv.cfg" if any(place.startswith(own + "/") for own in owned) else "site"
        return "the working folder" if place == self._story.process.cwd else "the program"

    def _has_encodings(self, place: str) -> bool:
        """The standard library is where `encodings` is: nothing can be imported before it."""
        events = self._story.process.events
        return any(e.path.startswith(f"{place}/encodings/") and not e.error for e in events)

    def _opened(self, end: str) -> list[str]:
        opened = (e for e in self._story.process.events if e.kind == "open" and not e.error)
        return list(dict.fromkeys(e.path for e in opened if e.path.endswith(end)))


def _named_in(pth: str) -> Iterable[str]:
    """The folders that a .pth file adds, as far as it can still be read."""
    try:
        with open(pth, encoding="utf-8", errors="surrogateescape") as text:
            lines = [line.strip() for line in text]
    except OSError:
        return []
    here = os.path.dirname(pth)
    return [
        os.path.normpath(os.path.join(here, line))
        for line in lines
        if line and not line.startswith(("#", "import ", "import\t"))
    ]
