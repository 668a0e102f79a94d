"""Makes a failing world small: drops one part after the other as long as it still fails alike."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path

from .build import Builder, CannotBuild
from .compare import judge
from .describe import ElfWorld, from_json, to_json

KEPT = Path(__file__).with_name("kept")
LIMIT_S = 60
_LISTS = ("needs", "features", "opens", "twins", "links")


def shrink(world: ElfWorld, builder: Builder, way: str, limit_s: float = LIMIT_S) -> ElfWorld:
    """The smallest world found within `limit_s` that still differs when it is run by `way`."""
    end = time.monotonic() + limit_s
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(world):
            if time.monotonic() > end:
                return world
            try:
                fails = way in judge(candidate, builder).differences
            except (CannotBuild, OSError):
                continue  # it makes no sense without that part
            if fails:
                world, smaller = candidate, True
                break
    return world


def keep(world: ElfWorld, name: str) -> Path:
    """Write a world where the test suite finds it for ever."""
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{name}.json"
    path.write_text(to_json(world))
    return path


def kept() -> dict[str, ElfWorld]:
    """All worlds that were kept, by name."""
    return {path.stem: from_json(path.read_text()) for path in sorted(KEPT.glob("*.json"))}


def _smaller(world: ElfWorld) -> Iterator[ElfWorld]:
    """Worlds with one part less, the large parts first."""

    def changed() -> ElfWorld:
        return copy.deepcopy(world)

    for i, library in enumerate(world.libraries):
        other = changed()
        del other.libraries[i]
        for owner in [*other.libraries, other.program]:
            owner.needs = [need for need in owner.needs if need != library.name]
        yield other
    for i, word in enumerate(world.program.script):
        other = changed()
        del other.program.script[i]
        yield other
        for k in range(len(word[1]) if word[0] in ("child", "fork") else 0):
            other = changed()
            del other.program.script[i][1][k]
            yield other
    for part in ("environment", "folder_links"):
        for key in getattr(world, part):
            if key == "GLIBC_TUNABLES":
                continue  # room for tls_big, without which a plain program fails by chance
            other = changed()
            del getattr(other, part)[key]
            yield other
    for i, library in enumerate(world.libraries):
        for part in _LISTS:
            for k in range(len(getattr(library, part))):
                other = changed()
                del getattr(other.libraries[i], part)[k]
                yield other
        if library.stored or library.soname != library.file:
            other = changed()
            other.libraries[i].stored, other.libraries[i].soname = "", library.file
            yield other
    for k in range(len(world.program.needs)):
        other = changed()
        del other.program.needs[k]
        yield other
    for i, owner in enumerate([*world.libraries, world.program]):
        for k in range(len(owner.search.paths)):
            other = changed()
            del [*other.libraries, other.program][i].search.paths[k]
            yield other
    for name, value in world.environment.items():
        for separator in ":; ":
            entries = value.split(separator)
            for k in range(len(entries) if len(entries) > 1 else 0):
                other = changed()
                other.environment[name] = separator.join(entries[:k] + entries[k + 1 :])
                yield other
    if world.cwd != "{tree}" or world.program.invoke != "absolute" or world.partly:
        other = changed()
        other.partly = []
        yield other
        other = changed()
        other.cwd, other.program.invoke = "{tree}", "absolute"
        yield other
