"""Builds a world's files with cc and ld.

Objects are kept by what they are made from, so that worlds that share a source share its object.
Libraries are linked by ld itself, from the highest number down, since each needs only those of
higher number; an edge that closes a circle is linked against a stub that has just the name.
DT_RPATH beside DT_RUNPATH, which no linker writes any more, is a DT_DEPAUDIT that is renamed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

from .describe import ElfWorld, Library, Search
from .sources import (
    CATCH,
    THROW,
    VERSION_SCRIPT,
    VERSION_SCRIPT_OLD,
    library_source,
    program_source,
    throws,
)

_DT_RPATH, _DT_DEPAUDIT = 15, 0x6FFFFEFB
_ELF_MACHINE = 18  #: where an ELF header says its machine
_DRIVER = Path(__file__).with_name("driver.c")


class CannotBuild(Exception):
    """The compiler or linker refused: the world makes no sense (or the generator has a defect)."""


@functools.cache
def lib_token() -> str:
    """What ld.so puts for $LIB."""
    loader = _needed_output(["cc", "-print-file-name=ld-linux-x86-64.so.2"])
    if "/" not in loader:
        loader = _needed_output(["cc", "-print-file-name=ld-linux-aarch64.so.1"])
    said = subprocess.run([loader, "--list-diagnostics"], capture_output=True, text=True).stdout
    found = re.search(r'^dl_dst_lib="(.*)"', said, re.M)
    return found.group(1) if found else "lib"


@functools.cache
def _libc_folder() -> str:
    return os.path.dirname(os.path.realpath(_needed_output(["cc", "-print-file-name=libc.so"])))


def _needed_output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _do(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotBuild(f"{' '.join(command)}\n{done.stderr}")


class Builder:
    """`cache` holds objects, for all worlds; one `Builder` may be used from several threads."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        cache.mkdir(parents=True, exist_ok=True)

    def build(self, world: ElfWorld, tree: Path, scratch: Path) -> Path:
        """Make the world below the (empty) folder `tree`; returns the path to start it by."""
        scratch.mkdir(parents=True, exist_ok=True)
        for link, target in world.folder_links.items():
            place = tree / self.expand(link, tree)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(self.expand(target, tree))
        for folder in ("bin", "empty"):
            (tree / folder).mkdir(parents=True, exist_ok=True)
        stubs = scratch / "stubs"
        stubs.mkdir(exist_ok=True)
        made: dict[str, Path] = {}
        for library in sorted(world.libraries, key=lambda lib: -int(lib.name[1:])):
            self._library(world, library, tree, scratch, made)
        program = self._program(world, tree, scratch, made)
        for library in world.libraries:
            if library.missing:
                made[library.name].unlink()
        return program

    def expand(self, text: str, tree: Path) -> str:
        return text.replace("{tree}", str(tree)).replace("{lib}", lib_token())

    def _object(self, source: str, *flags: str) -> str:
        key = hashlib.sha256("\0".join([source, *flags]).encode()).hexdigest()[:24]
        target = self.cache / f"{key}.o"
        if not target.exists():
            compiler = ["g++", "-x", "c++"] if "-fexceptions" in flags else ["cc", "-x", "c"]
            part = self.cache / f"{key}.{os.getpid()}.{id(flags)}.part"
            command = [*compiler, "-O0", "-w", "-D_GNU_SOURCE", *flags, "-c", "-", "-o", str(part)]
            done = subprocess.run(command, input=source, capture_output=True, text=True)
            if done.returncode != 0:
                raise CannotBuild(f"{' '.join(command)}\n{done.stderr}\n{source}")
            os.replace(part, target)
        return str(target)

    def _library(
        self, world: ElfWorld, library: Library, tree: Path, scratch: Path, made: dict[str, Path]
    ) -> None:
        place = tree / self.expand(library.folder, tree) / library.file
        place.parent.mkdir(parents=True, exist_ok=True)
        real = place
        if library.stored:
            real = tree / self.expand(library.stored, tree) / f"{library.file}.real"
            real.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(os.path.relpath(real, place.parent.resolve()))
        self._link(world, library, library.folder, False, real, tree, scratch, made)
        for twin in library.twins:
            self._twin(world, library, twin.folder, twin.kind, real, tree, scratch, made)
        for link in library.links:
            other = tree / self.expand(link, tree)
            other.parent.mkdir(parents=True, exist_ok=True)
            if not other.exists() and not other.is_symlink():
                other.symlink_to(os.path.relpath(place, other.parent.resolve()))
        made[library.name] = place

    def _twin(self, world, library, folder, kind, real, tree, scratch, made) -> None:
        other = tree / self.expand(folder, tree) / (library.soname or library.file)
        other.parent.mkdir(parents=True, exist_ok=True)
        if other.exists() or other.is_symlink():
            return
        if kind in ("copy", "old"):
            self._link(world, library, folder, kind == "old", other, tree, scratch, made)
        elif kind == "directory":
            other.mkdir()
        elif kind == "foreign":
            shutil.copy(real, other)
            with open(other, "r+b") as file:
                file.seek(_ELF_MACHINE)
                file.write(struct.pack("<H", 8))  # MIPS
        else:
            other.write_text("" if kind == "empty" else "no library at all\n" * 100)

    def _link(self, world, library, where, old, target, tree, scratch, made) -> None:
        flags = ["-fPIC"]
        if "tls_desc" in library.features and os.uname().machine == "x86_64":
            flags.append("-mtls-dialect=gnu2")
        text = library_source(world, library, where, old, str(tree))
        objects = [self._object(text, *flags)]
        command = ["ld", "-shared"]
        if "throws" in library.features:
            objects.append(
                self._object(THROW.replace("NAME", library.name), "-fPIC", "-fexceptions")
            )
            command = ["g++", "-shared"]
        options = ["--no-as-needed", "--eh-frame-hdr", "--hash-style=gnu"]
        if library.soname:
            options += ["-soname", library.soname]
        if "symbolic" in library.features:
            options.append("-Bsymbolic")
        options += ["-z", "now" if "now" in library.features else "lazy"]
        if "versioned" in library.features:
            script = scratch / f"{library.name}.{'old' if old else 'new'}.map"
            text = VERSION_SCRIPT_OLD if old else VERSION_SCRIPT
            script.write_text(text.replace("NAME", library.name))
            options += ["--version-script", str(script)]
        options += self._search(library.search, tree)
        needs = self._needs(world, library.needs, tree, scratch, made)
        self._ld(command, options, objects, needs, target)
        if library.search.kind == "both":
            rename_depaudit(target)

    def _program(self, world: ElfWorld, tree: Path, scratch: Path, made: dict[str, Path]) -> Path:
        program = world.program
        folder = tree / self.expand(program.folder, tree)
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / "prog"
        fixed = "fixed address" in program.features
        pic = "-fno-pie" if fixed else "-fPIE"
        objects = [
            self._object(_DRIVER.read_text(), pic),
            self._object(program_source(world), pic),
        ]
        command = ["g++" if throws(world) else "cc", "-no-pie" if fixed else "-pie"]
        if throws(world):
            objects.append(self._object(CATCH, pic, "-fexceptions"))
        options = ["--no-as-needed", "--allow-shlib-undefined"]
        options += ["-z", "now" if "now" in program.features else "lazy"]
        options += self._search(program.search, tree)
        needs = self._needs(world, program.needs, tree, scratch, made)
        self._ld(command, options, objects, needs, target)
        if program.search.kind == "both":
            rename_depaudit(target)
        if program.invoke == "link":
            start = tree / "start"
            start.symlink_to(os.path.relpath(target, tree))
            return start
        return target

    def _search(self, search: Search, tree: Path) -> list[str]:
        def joined(paths: list[str]) -> str:
            return ":".join(self.expand(path, tree) for path in paths)

        if not search.kind or not search.paths:
            return []
        tags = "--disable-new-dtags" if search.kind == "rpath" else "--enable-new-dtags"
        options = [tags, "-rpath", joined(search.paths)]
        if search.kind == "both":
            options += ["--depaudit", joined(search.ignored)]
        return options

    def _needs(self, world, names, tree, scratch, made) -> list[str]:
        """Linker arguments for libraries: DT_NEEDED takes a file's soname, or what is said here."""
        words = []
        for name in names:
            needed = world.library(name)
            if not needed:
                continue
            if name not in made:  # closes a circle
                stub = scratch / "stubs" / needed.file
                _do(["ld", "-shared", "-soname", needed.soname or needed.file, "-o", str(stub)]
                    + [self._object("", "-fPIC")])  # fmt: skip
                words.append(str(stub))
            elif needed.soname or needed.by_path:
                words.append(str(made[name]))
            else:
                alone = scratch / "alone" / name  # beside it there may be twins of other libraries
                alone.mkdir(parents=True, exist_ok=True)
                if not (alone / needed.file).is_symlink():
                    (alone / needed.file).symlink_to(made[name])
                words += ["-L", str(alone), f"-l:{needed.file}"]
        return words

    def _ld(self, command, options, objects, needs, target: Path) -> None:
        system = ["--as-needed", "-ldl", "-lpthread"]  # of their own before glibc 2.34
        if command[0] == "ld":
            needs = [*needs, "-L", _libc_folder(), *system, "-lc"]
            _do([*command, *options, *objects, *needs, "-o", str(target)])
        else:
            options, system = (
                [word for option in words for word in ("-Xlinker", option)]
                for words in (options, system)
            )
            _do([*command, *options, *objects, *needs, *system, "-o", str(target)])


def rename_depaudit(path: Path) -> None:
    """Make the DT_DEPAUDIT of a 64-bit little-endian ELF file its DT_RPATH."""
    data = bytearray(path.read_bytes())
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", data, offset + i * size)
        if kind != 2:  # PT_DYNAMIC
            continue
        for at in range(start, start + length, 16):
            if struct.unpack_from("<Q", data, at)[0] == _DT_DEPAUDIT:
                struct.pack_into("<Q", data, at, _DT_RPATH)
    path.write_bytes(data)
