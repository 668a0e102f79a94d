"""Libraries that modules bring, and that may read the environment where no trial sees it.

`environ` is a variable of C: whoever names it may read all variables, past every hook. Such a
library is an event, `library`, of each module that brings it; one that cannot be looked at is
`unread`. A module brings what is loaded while it is executed, and what that needs, whoever loaded
it first: in a template that may be this module.

What constructors of a library do is the trial's event of the module that loaded it first. If that
one is left, another that brings the library would have them run in the template: before the
program has set what they read, and for all ranks. So who brings a library of installed packages
*follows* the module that loaded it first. Those of the system are not looked at: their constructors
do little, and nearly everything needs them.

What must stay true: whoever is not sure has an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from brigade.elf.file import NotElf, read
from brigade.trial.modules import Event, RankModules

_NAMES = frozenset(["environ", "__environ", "_environ"])
# What defines it; and dlopen, which had a library of its own before glibc 2.34.
_LIBC = ("libc.so.", "ld-linux", "ld64.so", "libc-", "libdl.so.", "libdl-")
_PACKAGES = ("/site-packages/", "/dist-packages/")


@lru_cache(maxsize=4096)
def look(path: str) -> tuple[str, tuple[str, ...]]:
    """(`library` if it names `environ`, `unread` if nobody knows, or "", what it needs)."""
    try:
        file = read(path)
        # a quick look first: the strings may be a hundred megabytes, and hardly ever have it
        named = file.may_name("environ") and any(one.name in _NAMES for one in file.symbols())
    except (OSError, NotElf):
        return "unread", ()
    return "library" if named and not is_libc(path) else "", tuple(file.needed)


def is_libc(path: str) -> bool:
    return path.rpartition("/")[2].startswith(_LIBC)


def note(
    ranks: Iterable[RankModules], looked: Callable[[str], tuple[str, tuple[str, ...]]] = look
) -> None:
    """Add these events to those of each rank, and who follows whom."""
    for rank in ranks:
        first: dict[str, str] = {}
        for module, path in rank.loaded:
            first.setdefault(path, module)
        places = {path.rpartition("/")[2]: path for _, path in rank.loaded}
        objects = {path for _, path in rank.loaded}
        brought = [(module, path) for module, path in rank.loaded if module]
        brought += [(one.module, one.origin) for one in rank.executions if one.origin in objects]
        closures: dict[str, list[str]] = {}
        for module, path in dict.fromkeys(brought):
            if path not in closures:
                closures[path] = _closure(path, places, looked)
            for needed in closures[path]:
                event = Event(module, looked(needed)[0], needed, len(rank.executions))
                if event.what and event not in rank.events:
                    rank.events.append(event)
                loader = first.get(needed, "")
                if loader not in ("", module) and any(part in needed for part in _PACKAGES):
                    rank.follows.setdefault((module, loader), needed)


def _closure(
    path: str, places: dict[str, str], looked: Callable[[str], tuple[str, tuple[str, ...]]]
) -> list[str]:
    """An object and all that it needs, as far as that was loaded."""
    found = [path]
    for one in found:
        for needed in looked(one)[1]:  # a name, or a path
            other = places.get(needed.rpartition("/")[2])
            if other and other not in found:
                found.append(other)
    return found
