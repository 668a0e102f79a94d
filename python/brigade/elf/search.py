"""ld.so's search for a library, worked out: which directories, in what order, and because of what.

For a name without a slash, in this order (glibc's `_dl_map_object`):

1. RPATH of the requester, of who loaded that, and so on up, then the program's; not at all if the
   requester has a RUNPATH, and never an object's RPATH that has a RUNPATH beside it;
2. LD_LIBRARY_PATH;
3. RUNPATH of the requester alone;
4. /etc/ld.so.cache;
5. the default directories (4 and 5 not in those for a requester linked with `-z nodefaultlib`).

In each directory the subdirectories of `Loader.subdirs` come first. A file of another class or
machine is passed over; a file that is no ELF file ends the search, and the program.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from brigade.elf import file as elf_file
from brigade.elf.cache import Cache
from brigade.elf.file import NODEFLIB, ElfFile, NotElf
from brigade.elf.loader import Loader

_TOKEN = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?!\w))")
Read = Callable[[str], ElfFile]  # raises OSError or NotElf


class Place(NamedTuple):
    """One directory that is searched. For the cache, `folder` is "/etc/ld.so.cache"."""

    folder: str
    cause: str  # of brigade.profile.profile.CAUSES
    owner: str  # the object with the RPATH or RUNPATH, "LD_LIBRARY_PATH", or "ld.so"
    hwcaps: str = ""  # the subdirectory, "" for the directory itself

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.hwcaps}" if self.hwcaps else self.folder


class Tried(NamedTuple):
    """One file that was looked for. `why`: "" found, "absent", or what else is wrong with it."""

    path: str
    place: Place
    why: str


@dataclass
class Found:
    """The end of one search."""

    name: str
    path: str | None
    elf: ElfFile | None
    tried: list[Tried] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    fatal: str = ""  # why ld.so ended there: a file that it opened, and that is none for it


@dataclass
class Search:
    """A search under one environment. Pure, but for `read`, by which the files are seen.

    The `path` of a program has to be resolved: that is what its $ORIGIN is. A library's is as it
    was found, links and all.
    """

    env: Mapping[str, str]
    loader: Loader
    cache: Cache = field(default_factory=Cache)
    cwd: str = "/"
    read: Read = elf_file.read

    def places(self, chain: Sequence[ElfFile]) -> list[Place]:
        """Where a name is looked for. `chain`: requester, who loaded that, …, the program."""
        return list(self._places(chain))

    def _places(self, chain: Sequence[ElfFile]) -> Iterator[Place]:
        requester = chain[0]
        if requester.runpath is None:
            for owner in chain:
                if owner.rpath and owner.runpath is None:
                    yield from self._all(owner.rpath.split(":"), "RPATH", owner)
        value = self.env.get("LD_LIBRARY_PATH", "")
        if value:
            folders = value.replace(";", ":").split(":")
            yield from self._all(folders, "LD_LIBRARY_PATH", chain[-1])
        if requester.runpath:
            yield from self._all(requester.runpath.split(":"), "RUNPATH", requester)
        yield Place("/etc/ld.so.cache", "ld.so.cache", "ld.so")
        if not requester.flags_1 & NODEFLIB:
            for folder in self.loader.system:
                yield from self._one(folder, "default path", "ld.so")

    def _all(self, folders: list[str], cause: str, elf: ElfFile) -> Iterator[Place]:
        """The places of one list; a directory that it has twice counts once."""
        known = set()
        for folder in folders:
            place = self.expand(folder, elf)
            if place not in known:
                known.add(place)
                owner = elf.path if cause in ("RPATH", "RUNPATH") else cause
                yield from self._one(place, cause, owner)

    def _one(self, folder: str, cause: str, owner: str) -> Iterator[Place]:
        for hwcaps in self.loader.subdirs:
            yield Place(folder, cause, owner, hwcaps)
        yield Place(folder, cause, owner)

    def expand(self, folder: str, elf: ElfFile) -> str:
        """A directory of a list as ld.so means it; an empty one is the working directory."""
        origin = os.path.dirname(os.path.join(self.cwd, elf.path))
        values = {"ORIGIN": origin, "LIB": self.loader.lib, "PLATFORM": self.loader.platform}
        folder = _TOKEN.sub(lambda match: values[match[1] or match[2]], folder)
        folder = os.path.join(self.cwd, folder) if not folder.startswith("/") else folder
        return folder.rstrip("/") or "/"

    def find(self, name: str, chain: Sequence[ElfFile]) -> Found:
        """Look for `name` as asked for by `chain[0]`."""
        found = Found(name, None, None)
        if "/" in name:
            path = os.path.join(self.cwd, self.expand(name, chain[0]))
            self._try(path, Place(os.path.dirname(path), "other", chain[0].path), chain, found)
            return found
        found.places = self.places(chain)
        for place in found.places:
            if place.cause == "ld.so.cache":
                path = self._cached(name, chain[0]) or ""
            else:
                path = os.path.join(place.path, name)
            if path and self._try(path, place, chain, found):
                break
        return found

    def _cached(self, name: str, requester: ElfFile) -> str | None:
        path = self.cache.find(name, requester.machine, requester.cls, self.loader.hwcaps)
        if path and requester.flags_1 & NODEFLIB and os.path.dirname(path) in self.loader.system:
            return None
        return path

    def _try(self, path: str, place: Place, chain: Sequence[ElfFile], found: Found) -> bool:
        """Whether the search ends with this file."""
        program = chain[-1]
        try:
            elf = self.read(path)
        except NotElf as error:
            found.tried.append(Tried(path, place, str(error)))
            found.fatal = str(error)
            return True
        except OSError as error:
            absent = error.errno in (errno.ENOENT, errno.ENOTDIR)
            why = "absent" if absent else error.strerror or str(error)
            found.tried.append(Tried(path, place, why))
            return False
        if (elf.cls, elf.machine) != (program.cls, program.machine):
            why = f"for {elf.machine}, {elf.cls} bit"
            found.tried.append(Tried(path, place, why))
            return False
        found.tried.append(Tried(path, place, ""))
        found.path, found.elf = path, elf
        return True
