"""The same start-up from several file systems: copied there, started from there, removed again."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from brigade import interrupt
from brigade.errors import BrigadeError, UsageError
from brigade.launch import parse
from brigade.launch.width import widths_of
from brigade.study import copying, evidence, rewrite
from brigade.study.plan import Variant, numbers
from brigade.study.run import Progress, Timing, moved_words, time_all
from brigade.study.samples import Study, host
from brigade.study.sources import sources
from brigade.trial import mounts
from brigade.trial.mounts import is_under


@dataclass(frozen=True)
class Wanted:
    """What the user asked for."""

    words: list[str]
    places: list[str]
    copied: list[str] = field(default_factory=list)
    here: bool = False  # measure it where it is, too
    with_libraries: bool = False
    widths: str | None = None
    repeats: int = 3
    timing: Timing = field(default_factory=Timing)
    begun: Callable[[Study], None] = lambda study: None  # told of the study that samples go into


def study(wanted: Wanted, progress: Progress) -> Study:
    """Make the study; whatever is made on the file systems is removed in any case."""
    launch = parse(wanted.words)
    folders = sources(launch.program, wanted.copied)
    widths = numbers(wanted.widths, widths_of(launch))
    _check(wanted.places, folders)
    found = Study("storage", wanted.words, {}, "", wanted.timing.until, host=host())
    with ExitStack() as stack:
        stack.enter_context(launch.session())
        variants = [Variant("here", "where it is", tuple(wanted.words))] if wanted.here else []
        roots: dict[str, Path] = {}
        for place in wanted.places:
            root = stack.enter_context(copying.scratch(place))
            variant = _copied(
                f"at{len(roots)}", place, root, folders, wanted.words, found, progress
            )
            roots[variant.name] = root
            variants.append(variant)
        for number, variant in enumerate(variants):  # grows
            progress("a traced start of each", number, len(variants))
            root = roots.get(variant.name.rstrip("+")) or next(iter(roots.values()))
            variants += _look(variant, root, folders, found, wanted)
        found.baseline = variants[0].name
        wanted.begun(found)
        time_all(found, variants, widths, wanted.repeats, wanted.timing, progress)
    return found


def _check(places: list[str], folders: list[str]) -> None:
    for place in places:
        if not os.path.isdir(place):
            raise UsageError(f"--at {place}: no such folder")
        for folder in folders:
            if is_under(os.path.realpath(place), os.path.realpath(folder)):
                raise UsageError(
                    f"--at {place} lies in {folder}, which is to be copied",
                    hint="name a folder beside it",
                )


def label_of(place: str) -> str:
    """A place for people: its path and the type of its file system."""
    mount = mounts.read().of(os.path.realpath(place))
    return f"{place} ({mount.fstype})" if mount else place


def _copied(
    name: str,
    place: str,
    root: Path,
    folders: list[str],
    words: list[str],
    found: Study,
    progress: Progress,
) -> Variant:
    """The start-up, copied to `root`; the command as it is started from there."""
    moves = {
        folder: str(root / f"{i}-{os.path.basename(folder)}") for i, folder in enumerate(folders)
    }
    begin = time.monotonic()
    said = copying.copy(moves, lambda what, files: progress(f"{what} to {place}", files, None))
    size = sum(_size(new) for new in moves.values())
    took = time.monotonic() - begin
    found.facts.append(
        f"{', '.join(folders)} ({size / 2**20:.0f} MiB) copied to {place}: {took:.1f} s"
    )
    found.facts += said
    return Variant(
        name,
        label_of(place),
        tuple(moved_words(words, moves)),
        rewrite.moved_environment(os.environ, moves),
        rewrite.moved(os.getcwd(), moves),
    )


def _size(folder: str) -> int:
    return sum(
        os.lstat(os.path.join(at, name)).st_size
        for at, _, names in os.walk(folder)
        for name in names
    )


def _look(
    variant: Variant, root: Path, folders: list[str], found: Study, wanted: Wanted
) -> list[Variant]:
    """A traced start: does it run from where it was copied to? What does it ask? If libraries are
    to be copied too, the variant that has them."""
    interrupt.check()
    try:
        trace = evidence.traced(variant, root / f"trace-{variant.name}", wanted.timing)
    except BrigadeError as error:
        why = "does it start where it is, and do all nodes of the job see that folder?"
        raise BrigadeError(error.message, hint=error.hint or why) from error
    found.operations[variant.name] = evidence.calls(trace)
    if variant.name == "here":
        return []
    strays = evidence.strays(trace, folders)
    if strays.found:
        found.facts.append(
            f"started from {variant.label}, {strays.found} of the look-ups of a rank still went to "
            f"the old place, for instance {', '.join(strays.examples)}"
        )
    if not wanted.with_libraries or variant.name.endswith("+"):
        return []
    return [_with_libraries(variant, root / "libraries", evidence.libraries(trace), root)]


def _with_libraries(
    variant: Variant, target: Path, libraries: dict[str, str], root: Path
) -> Variant:
    """The variant with a copy of each library that was found elsewhere, searched first."""
    target.mkdir()
    for name, path in libraries.items():
        if not is_under(path, str(root)):
            shutil.copy2(path, target / name)
    before = variant.env.get("LD_LIBRARY_PATH") or os.environ.get("LD_LIBRARY_PATH")
    path = f"{target}:{before}" if before else str(target)
    return Variant(
        variant.name + "+",
        f"{variant.label}, system libraries too",
        variant.words,
        {**variant.env, "LD_LIBRARY_PATH": path},
        variant.cwd,
    )
