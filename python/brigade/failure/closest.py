"""What is there in place of what is missing: names that are alike, the same library elsewhere,
the package or module that has it.

Everything is bounded: a file system that is slow today must not make a failed job a slow one.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from brigade.elf import file as elf_file
from brigade.elf.file import ElfFile, NotElf
from brigade.failure.packages import PACKAGES

_MOST_FOLDERS = 400
_MOST_S = 0.3
_VARIABLES = ("_ROOT", "_HOME", "_DIR", "_PREFIX", "_BASE", "_PATH")
_PREFIXES = ("CONDA_PREFIX", "VIRTUAL_ENV", "EBROOT")


class Patience:
    """An end to looking: after `seconds` of work, or three times that on the clock."""

    def __init__(self, seconds: float) -> None:
        self._cpu = time.process_time() + seconds
        self._clock = time.monotonic() + 3 * seconds

    @property
    def is_over(self) -> bool:
        return time.process_time() > self._cpu or time.monotonic() > self._clock


def alike(name: str, names: Iterable[str], most: int = 1) -> list[str]:
    """The names that are written most alike, best first."""
    known = sorted(set(names) - {name})
    folded = {one.lower(): one for one in known}
    if name.lower() in folded:
        return [folded[name.lower()]]
    return difflib.get_close_matches(name, known, n=most, cutoff=0.72)


def listing(folder: str) -> list[str]:
    """The names in a folder; none if it cannot be listed."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def on_path(name: str, env: Mapping[str, str]) -> list[str]:
    """Programs on PATH whose names are like `name`, as paths."""
    folders = [one for one in env.get("PATH", "").split(":") if one]
    programs = {one: folder for folder in reversed(folders) for one in listing(folder)}
    paths = [os.path.join(programs[one], one) for one in alike(name, programs, most=4)]
    return [path for path in paths if os.access(path, os.X_OK)][:2]


@dataclass
class Elsewhere:
    """Where a library is, outside the search."""

    same: list[str] = field(default_factory=list)  # paths: the very name, usable
    other: list[str] = field(default_factory=list)  # another version of it
    unfit: list[str] = field(default_factory=list)  # the name, for another machine


def stem(name: str) -> str:
    """libhdf5.so.103 -> libhdf5; libfoo-1.2.so -> libfoo."""
    return re.sub(r"(-\d[\d.]*)?\.so(\.[\d.]*)?$", "", name)


def library(name: str, program: ElfFile, near: Iterable[str], env: Mapping[str, str]) -> Elsewhere:
    """Look for a library in the folders where software lies. `near`: those to look at first."""
    patience = Patience(_MOST_S)
    found = Elsewhere()
    wanted = stem(name)
    for folder in _folders(near, env):
        if patience.is_over:
            break
        for one in sorted(listing(folder)):
            if one == name or (stem(one) == wanted and re.search(r"\.so(\.|$)", one)):
                _sort(os.path.join(folder, one), name, program, found)
    found.other = _unlike(found.other)
    return found


def _sort(path: str, name: str, program: ElfFile, found: Elsewhere) -> None:
    try:
        elf = elf_file.read(path)
    except (OSError, NotElf):
        return
    if (elf.cls, elf.machine) != (program.cls, program.machine):
        found.unfit += [path] if os.path.basename(path) == name else []
    elif os.path.basename(path) == name:
        found.same.append(path)
    else:
        found.other.append(path)


def _unlike(paths: list[str]) -> list[str]:
    """One path for each file: libx.so and libx.so.2 are most often one. Names with a number win."""
    files: dict[str, str] = {}
    for path in paths:
        real = os.path.realpath(path)
        if real not in files or re.search(r"\.so\.\d+$", path):
            files[real] = path
    return sorted(set(files.values()), key=lambda path: (".so." not in path, path))


def _folders(near: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """Folders of libraries, each once, the likely ones first."""
    found: dict[str, None] = {}
    for folder in near:
        parent = os.path.dirname(folder)
        for one in (folder, f"{folder}/lib", f"{parent}/lib", f"{parent}/lib64", f"{folder}/lib64"):
            found.setdefault(os.path.normpath(one))
    for name, value in env.items():
        if name.startswith(_PREFIXES) or name.endswith(_VARIABLES):
            if value.startswith("/") and ":" not in value and value != "/":
                found.setdefault(f"{value.rstrip('/')}/lib")
                found.setdefault(f"{value.rstrip('/')}/lib64")
    for folder in env.get("PATH", "").split(":"):
        if folder.startswith("/"):
            prefix = os.path.dirname(folder.rstrip("/"))
            found.setdefault(os.path.normpath(f"{prefix}/lib"))
            found.setdefault(os.path.normpath(f"{prefix}/lib64"))
    for pattern in (
        *("/usr/local/lib", "/usr/local/lib64", "/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib"),
        *("/opt/*/lib", "/opt/*/lib64", "/opt/*/*/lib", "/opt/*/*/lib64"),
        *("/usr/lib/*-linux-gnu/*", "/usr/lib/*-linux-gnu/*/lib", "/usr/lib64/*/lib"),
    ):
        for one in sorted(glob.glob(pattern)):
            found.setdefault(one)
    return [one for one in found if os.path.isdir(one)][:_MOST_FOLDERS]


def export(variable: str, folder: str, env: Mapping[str, str]) -> str:
    """The command that puts a folder first in a variable."""
    quoted = folder if re.fullmatch(r"[\w./+@%=-]+", folder) else f"'{folder}'"
    more = f":${variable}" if env.get(variable) else ""
    return f"export {variable}={quoted}{more}"


def package(name: str, env: Mapping[str, str]) -> list[str]:
    """What would bring a library: the module that is on offer, the package of the system."""
    found = []
    base = stem(name)
    module = _module(re.sub(r"^lib", "", base), env)
    if module:
        found.append(f"module load {module}")
    known = PACKAGES.get(name) or next(
        (text for pattern, text in PACKAGES.items() if re.fullmatch(pattern, name)), None
    )
    if known:
        found.append(known if " " in known else f"{known} is the package that has it (Debian name)")
    return found


def _module(name: str, env: Mapping[str, str]) -> str | None:
    """The environment module of that name on MODULEPATH, if there is one."""
    for folder in env.get("MODULEPATH", "").split(":")[:50]:
        names = {one.lower(): one for one in listing(folder)} if folder else {}
        for candidate in (name.lower(), re.sub(r"[\d_.-].*", "", name.lower())):
            if candidate and candidate in names:
                return names[candidate]
    return None


def module(name: str, env: Mapping[str, str]) -> list[str]:
    """The same, for a program."""
    found = _module(name, env)
    return [f"module load {found}"] if found else []


def has(program: str, env: Mapping[str, str]) -> bool:
    return shutil.which(program, path=env.get("PATH", os.defpath)) is not None
