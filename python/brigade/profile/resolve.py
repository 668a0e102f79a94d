"""`brigade explain NAME --program FILE`: ld.so's search worked out, nothing started and nothing
traced. The environment is this process's own."""

from __future__ import annotations

import os

from brigade.elf import cache, closure, file, loader
from brigade.elf.file import NotElf
from brigade.elf.search import Found, Place, Search
from brigade.errors import BrigadeError
from brigade.profile.explain import Explanation, Step, near_files
from brigade.profile.places import kind_of
from brigade.profile.profile import SHARED
from brigade.trial.mounts import MountTable, read


def explained(name: str, program: str) -> list[Explanation]:
    """How ld.so looks for `name` when it loads `program`; nothing if that does not need it."""
    elf = _elf(program)
    interpreter = elf.interpreter or _elf("/bin/sh").interpreter or ""
    own = loader.ask(interpreter)
    if own is None:
        raise BrigadeError(
            f"{program} is loaded by {interpreter}, which does not answer here",
            hint="is it for this kind of machine?",
        )
    whole = closure.close(elf, Search(dict(os.environ), own, cache.read(), os.getcwd()))
    mounts = read()
    told = []
    for one in whole.objects:
        if one.search and _meant(name, one.search.name, one.elf.path):
            asker = one.asked_by
            told.append(_told(one.search, one.elf.path, asker, "DT_NEEDED", mounts))
    for missing in whole.missing:
        if _meant(name, missing.name, ""):
            told.append(_told(missing.search, "", missing.needed_by, "DT_NEEDED", mounts))
    return told


def _elf(path: str) -> file.ElfFile:
    try:
        return file.read(os.path.realpath(path))
    except OSError as error:
        raise BrigadeError(f"{path}: {error.strerror}") from error
    except NotElf as error:
        raise BrigadeError(
            f"{path} is {error}",
            hint="for a script: brigade explain NAME -- COMMAND runs it",
        ) from error


def _meant(name: str, sought: str, path: str) -> bool:
    if "/" in name:
        return bool(path) and os.path.realpath(name) == os.path.realpath(path)
    sought = os.path.basename(sought)
    return name == sought or (name.endswith(".so") and sought.startswith(name + "."))


def _told(
    found: Found, path: str, asker: closure.Loaded | None, how: str, mounts: MountTable
) -> Explanation:
    chain = []
    while asker is not None:
        chain.append(os.path.basename(asker.elf.path))
        asker = asker.asked_by
    steps: dict[tuple[Place, str], Step] = {}
    for tried in found.tried:
        place, answer = tried.place, tried.why or "found"
        key = (place._replace(hwcaps="yes" if place.hwcaps else ""), answer)
        if key not in steps:
            mount = mounts.of(os.path.realpath(place.folder))
            shared = mount is not None and kind_of(mount) == SHARED
            steps[key] = Step(
                *(place.folder, place.cause, place.owner, bool(place.hwcaps), answer, 0, 0.0),
                shared,
            )
        steps[key].calls += 1
    name = os.path.basename(found.name)
    folders = [step.place for step in steps.values()]
    return Explanation(
        name=name,
        kind="library",
        found=path,
        how=how,
        certain=True,
        chain=chain,
        steps=list(steps.values()),
        read_calls=0,
        read_us=0.0,
        read_bytes=0,
        ranks=1,
        of_ranks=1,
        closest=[] if path else near_files(name, folders),
    )
