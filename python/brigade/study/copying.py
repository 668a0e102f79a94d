"""Copy installed software to another file system, so that it runs from there; and remove it again.

The copy is a plain one, times and links kept. Then it is told where it is: links and texts that
name the old place (scripts' first lines, `pyvenv.cfg`, `.pth` files, editable installs), and, if
there is `patchelf`, search paths inside ELF files. Whether it worked is not believed but looked at
afterwards (`brigade.study.evidence`). The user's own files are only read.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from brigade import interrupt
from brigade import scratch as own
from brigade.elf import file as elf_file
from brigade.elf.file import NotElf
from brigade.errors import BrigadeError
from brigade.study.rewrite import mentions, moved, moved_bytes

_TEXT_BYTES = 1 << 20
Progress = Callable[[str, int], None]  # (what, files so far)


def scratch(base: str) -> AbstractContextManager[Path]:
    """A folder of this study's own below `base`, removed again in any case."""
    return own.scratch(base, "study", 0o755, "name a folder that you may write to")


def copy(folders: Mapping[str, str], progress: Progress) -> list[str]:
    """Copy each folder (old -> new) and rehome it; what could not be told, as sentences.

    Raises BrigadeError (no space, not readable), Interrupted.
    """
    copied = 0
    unreadable: list[str] = []

    def one(source: str, target: str) -> None:
        nonlocal copied
        interrupt.check()
        copied += 1
        progress("copying", copied)
        try:
            shutil.copy2(source, target)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM) or os.access(source, os.R_OK):
                raise BrigadeError(f"copying {source} to {target}: {error.strerror}") from error
            unreadable.append(source)

    for old, new in folders.items():
        try:
            shutil.copytree(old, new, symlinks=True, copy_function=one)
        except shutil.Error as error:
            source, target, why = error.args[0][0]
            raise BrigadeError(f"copying {source} to {target}: {why}") from error
        except OSError as error:
            raise BrigadeError(f"copying {old} to {new}: {error}") from error
    said: list[str] = []
    if unreadable:
        said.append(f"{len(unreadable)} files may not be read and were left out: {unreadable[0]}")
    for new in folders.values():
        said += rehome(new, folders, progress)
    return said


def rehome(root: str, folders: Mapping[str, str], progress: Progress) -> list[str]:
    """Tell the copy where it is; sentences on what could not be told."""
    objects = []
    for number, (path, link) in enumerate(_files(root)):
        interrupt.check()
        if number % 200 == 0:
            progress("rewriting", number)
        if link:
            _relink(path, folders)
        elif _may_name_its_place(path):
            _rewrite(path, folders)
        if not link and _has_path_of(path, folders):
            objects.append(path)
    return _patch(objects, folders)


def _files(root: str) -> Iterator[tuple[str, bool]]:
    """(path, is a link) of everything but real folders."""
    for folder, folders, files in os.walk(root):
        for name in files:
            path = os.path.join(folder, name)
            yield path, os.path.islink(path)
        for name in folders:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                yield path, True


def _relink(path: str, folders: Mapping[str, str]) -> None:
    target = os.readlink(path)
    text = moved(target, folders)
    if text != target:
        os.unlink(path)
        os.symlink(text, path)


def _may_name_its_place(path: str) -> bool:
    folder, name = os.path.split(path)
    known = name == "pyvenv.cfg" or name.endswith((".pth", ".egg-link"))
    known = known or name.startswith("__editable__") or os.path.basename(folder) in ("bin", "sbin")
    return known and os.path.getsize(path) <= _TEXT_BYTES


def _rewrite(path: str, folders: Mapping[str, str]) -> None:
    content = Path(path).read_bytes()
    if b"\0" in content:
        return
    text = moved_bytes(content, folders)
    if text != content:
        mode = os.stat(path).st_mode
        os.chmod(path, mode | 0o200)
        Path(path).write_bytes(text)
        os.chmod(path, mode)


def _has_path_of(path: str, folders: Mapping[str, str]) -> bool:
    """Whether an ELF file searches below one of the old folders."""
    try:
        if ".so" not in os.path.basename(path) and not os.stat(path).st_mode & 0o111:
            return False
        with open(path, "rb") as start:
            if start.read(4) != b"\x7fELF":
                return False
        elf = elf_file.read(path)
    except (OSError, NotElf):
        return False
    paths = f"{elf.rpath or ''}:{elf.runpath or ''}"
    return any(mentions(paths, old) for old in folders)


def _patch(objects: list[str], folders: Mapping[str, str]) -> list[str]:
    """Change the search paths of ELF files, if there is patchelf."""
    tool = shutil.which("patchelf")
    if objects and not tool:
        return [
            f"{len(objects)} ELF files name the old place in their RPATH or RUNPATH, and there is "
            f"no patchelf to change that; the first is {objects[0]}"
        ]
    for path in objects:
        interrupt.check()
        elf = elf_file.read(path)
        kind = [] if elf.rpath is None or elf.runpath is not None else ["--force-rpath"]
        wanted = moved(elf.runpath or elf.rpath or "", folders)
        patchelf([*kind, "--set-rpath", wanted, path])
    return []


def patchelf(words: list[str]) -> None:
    """Change a file of ours, the last word. Raises BrigadeError if that fails."""
    done = subprocess.run(
        ["patchelf", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise BrigadeError(f"patchelf {' '.join(words)}: {done.stderr.strip()}")
    try:
        elf_file.read(words[-1])
    except (OSError, NotElf) as error:
        raise BrigadeError(f"patchelf has broken {words[-1]}: {error}") from error
