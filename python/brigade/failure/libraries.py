"""A program that ld.so ends: a library, a version or a symbol that it needs is nowhere.

What ld.so does is worked out again (`brigade.elf`), on the files as they are; nothing is run but
ld.so itself, to ask for its own directories.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import islice

from brigade.elf import cache, closure, loader
from brigade.elf import file as elf_file
from brigade.elf.closure import Closure, LacksVersion, Loaded, Missing
from brigade.elf.file import ElfFile, NotElf, Symbol
from brigade.elf.search import Found, Search
from brigade.failure import closest
from brigade.failure.diagnosis import Diagnosis
from brigade.failure.evidence import Evidence, Suspect

# Statuses with which ld.so ends a program: 127, and 1 for a version. Launchers pass them on.
_LD_SO = (1, 127)
_MOST_TOLD = 2
_CPU = "CPU ISA level is lower than required"


def examine(suspect: Suspect, evidence: Evidence) -> Iterator[Diagnosis]:
    """What ld.so would not find for it."""
    path = program_of(suspect)
    status = evidence.status if suspect.status is None else suspect.status
    if path is None or (status not in _LD_SO and not suspect.before_main):
        return
    try:
        elf = elf_file.read(path)
    except (OSError, NotElf):
        return
    search = search_for(elf, suspect)
    if search is None or not elf.dynamic:
        return
    whole = closure.close(elf, search)
    if whole.missing and status == 1 and not suspect.before_main:
        return  # ld.so would have ended it with 127: the environment was another one there
    ended_by_ld_so = status == 127 or suspect.before_main
    yield from lacks(whole, search, whole.undefined if ended_by_ld_so else None)


def program_of(suspect: Suspect) -> str | None:
    """The ELF file that is executed: of a script, its interpreter."""
    path = suspect.path
    for _ in range(4):
        if path is None:
            return None
        try:
            is_script, interpreter = suspect.script(path)
        except OSError:
            return None
        if not is_script:
            return path
        path = interpreter
    return None


def search_for(elf: ElfFile, suspect: Suspect) -> Search | None:
    """The search of that program's own ld.so."""
    own = loader.ask(elf.interpreter) if elf.interpreter else None
    return Search(suspect.env, own, cache.read(), suspect.cwd) if own else None


def lacks(
    whole: Closure, search: Search, symbols: Callable[[], Iterator[tuple[Loaded, Symbol]]] | None
) -> Iterator[Diagnosis]:
    """What a closure lacks; the first kind of it, as ld.so would say. `symbols` are looked at last,
    if at all."""
    if whole.missing:
        for missing in whole.missing[:_MOST_TOLD]:
            yield missing_library(missing, search)
        return
    if whole.versions:
        for lacking in whole.versions[:_MOST_TOLD]:
            yield missing_version(lacking, search)
        return
    level = cpu_level()
    for loaded in whole.objects:
        if level and loaded.elf.isa_level > level:
            yield newer_processor(loaded.elf, level)
            return
    for loaded, symbol in list(islice(symbols(), _MOST_TOLD)) if symbols else []:
        yield undefined_symbol(loaded, symbol, whole)


def missing_library(missing: Missing, search: Search) -> Diagnosis:
    if missing.search.fatal:
        return _no_library(missing)
    name, by = missing.name, missing.needed_by
    folders = [os.path.dirname(by.elf.path), os.path.dirname(by.chain[-1].path)]
    folders += [p.folder for p in missing.search.places if p.cause != "ld.so.cache"]
    found = closest.library(name, by.chain[-1], dict.fromkeys(folders), search.env)
    what = f"{name} is needed by {_who(by)}, and was not found"
    searched = places(missing.search)
    unfit = [t for t in missing.search.tried if t.why not in ("absent", "")]
    if unfit:
        searched.insert(0, f"{unfit[0].path}: {unfit[0].why}")
    if found.same:
        folder = os.path.dirname(found.same[0])
        mend = [closest.export("LD_LIBRARY_PATH", folder, search.env)]
        return Diagnosis("missing-library", what, searched, found.same[0], mend)
    mend = _bundled(missing) + closest.package(name, search.env)
    near = found.unfit[:1] or _versions_first(name, found.other)
    if found.unfit:
        machine = by.chain[-1].machine
        mend.append(f"get {name} for {machine}: the one that is there is for another machine")
    elif found.other:
        mend.append(f"build {os.path.basename(by.elf.path)} again with {_base(found.other[0])}")
    if not mend:
        mend.append("load the module with which it was built, or add its folder to LD_LIBRARY_PATH")
    return Diagnosis("missing-library", what, searched, ", ".join(near), mend)


def _bundled(missing: Missing) -> list[str]:
    """A library that a Python package brings along, in a folder beside it."""
    for place in missing.search.places:
        folder = os.path.normpath(place.folder)
        if folder.endswith(".libs") and os.path.basename(os.path.dirname(folder)).endswith(
            "-packages"
        ):
            package = _base(folder)[: -len(".libs")]
            return [f"python -m pip install --force-reinstall {package}   (it brings {folder})"]
    return []


def _versions_first(name: str, other: list[str]) -> list[str]:
    return sorted(other, key=lambda path: os.path.basename(path) == closest.stem(name) + ".so")[:2]


def _base(path: str) -> str:
    return os.path.basename(path)


def _no_library(missing: Missing) -> Diagnosis:
    """A file that bears its name and is none: ld.so stops there."""
    path = missing.search.tried[-1].path
    return Diagnosis(
        "no-library",
        f"{path}, which {_who(missing.needed_by)} needs, is {missing.search.fatal}",
        mend=[
            "copy or install it again: was the disk full, or is it a text that names the real one?"
        ],
    )


def _who(by: Loaded) -> str:
    """An object, and if it is not the program, how it came in."""
    chain = by.chain
    if len(chain) == 1:
        return chain[0].path
    names = " -> ".join(_base(elf.path) for elf in reversed(chain))
    return f"{chain[0].path} ({names})"


def places(found: Found) -> list[str]:
    """What was searched: each directory with what made it one, in order."""
    lines: dict[str, None] = {}
    default = []
    for place in found.places:
        if place.hwcaps:
            continue
        if place.cause == "default path":
            default.append(place.folder)
        elif place.cause == "ld.so.cache":
            lines.setdefault(place.folder)
        elif place.cause in ("RPATH", "RUNPATH"):
            lines.setdefault(f"{place.folder} ({place.cause} of {_base(place.owner)})")
        else:
            gone = "" if os.path.isdir(place.folder) else ", is not there"
            lines.setdefault(f"{place.folder} ({place.cause}{gone})")
    if default:
        lines.setdefault(f"{', '.join(default)} (default)")
    return list(lines)


def missing_version(lacking: LacksVersion, search: Search) -> Diagnosis:
    library, version = lacking.library.elf, lacking.version
    family = version.rpartition("_")[0]
    have = [one for one in library.versions_defined if one.rpartition("_")[0] == family]
    newest = max(have, key=_numbers) if have else ""
    name = library.soname or _base(library.path)
    found = closest.library(name, lacking.needed_by.chain[-1], [], search.env)
    better = [path for path in found.same if version in _defined(path)]
    if family == "GLIBC":
        mend = ["build it on this system, or run it in a container of a newer one"]
    elif better:
        mend = [closest.export("LD_LIBRARY_PATH", os.path.dirname(better[0]), search.env)]
    elif family in ("GLIBCXX", "CXXABI"):
        mend = [
            "load the compiler's module with which it was built (its libstdc++ is newer)",
            "or in conda: conda install libstdcxx-ng",
        ]
    else:
        mend = closest.package(name, search.env) or [f"install a newer {closest.stem(name)}"]
    place = lacking.library.search.tried[-1].place if lacking.library.search else None
    how = f" ({place.cause})" if place and place.cause not in ("other", "default path") else ""
    return Diagnosis(
        "missing-version",
        f"{_who(lacking.needed_by)} needs {version} of {name}; {library.path} does not have it",
        [library.path + how],
        better[0] if better else f"{newest} is its newest" if newest else "",
        mend,
    )


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _defined(path: str) -> list[str]:
    try:
        return elf_file.read(path).versions_defined
    except (OSError, NotElf):
        return []


def undefined_symbol(by: Loaded, symbol: Symbol, whole: Closure) -> Diagnosis:
    names = {
        one.name: _base(loaded.elf.path)
        for loaded in whole.objects
        for one in loaded.elf.symbols()
        if one.defined
    }
    near = closest.alike(symbol.name, (n for n in names if n[:3] == symbol.name[:3]), most=1)
    direct = [name for name in by.elf.needed if not name.startswith(("libc.so", "ld-linux"))]
    return Diagnosis(
        "undefined-symbol",
        f"{symbol.name} is used by {_who(by)}, and no library that is loaded defines it",
        [one.elf.path for one in whole.objects if one.names & set(by.elf.needed)],
        f"{near[0]} in {names[near[0]]}" if near else "",
        [
            f"{' or '.join(direct[:3]) or 'a library'} is another version than it was built with: "
            f"`ldd {by.elf.path}` shows which",
            "take the old one away from LD_LIBRARY_PATH, or build it again",
        ],
    )


def newer_processor(elf: ElfFile, level: int) -> Diagnosis:
    return Diagnosis(
        "newer-processor",
        f"{elf.path} was built for processors of {_level(elf.isa_level)}; "
        f"{os.uname().nodename} has {_level(level)}",
        mend=[
            f"build it with -march=x86-64-v{level}, on the kind of node that it runs on",
            "or ask for newer nodes: srun --constraint …",
        ],
    )


def _level(number: int) -> str:
    return f"x86-64-v{number}"


_LEVELS = (
    {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
    {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
    {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
)


def cpu_level() -> int:
    """The x86-64 level of this processor; 0 on another kind."""
    if os.uname().machine != "x86_64":
        return 0
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as text:
            flags = next(
                (set(line.split()[2:]) for line in text if line.startswith("flags")), set()
            )
    except OSError:
        return 0
    level = 1
    for wanted in _LEVELS:
        if not wanted <= flags:
            break
        level += 1
    return level
