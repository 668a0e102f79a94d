"""ELF files from one line of C, and what ld.so itself says of its search."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from brigade.elf import cache, closure, file, loader
from brigade.elf.search import Search


def compile_c(source: str, target: Path, *flags: str, libraries: Sequence[Path] = ()) -> Path:
    """A program, or with -shared a library, that needs `libraries` by their sonames."""
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-x", "c", "-", "-o", str(target), "-Wl,--no-as-needed", *flags]
    command += ["-fPIC"] if "-shared" in flags else ["-Wl,--allow-shlib-undefined"]
    command += ["-x", "none", *map(str, libraries)]
    done = subprocess.run(command, input=source, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return target


def library(path: Path, *flags: str, needs: Sequence[Path] = (), source: str = "") -> Path:
    """A library whose soname is its name."""
    name = re.sub(r"\W", "_", path.name)
    return compile_c(
        source or f"int {name};", path, "-shared", f"-Wl,-soname,{path.name}", *flags,
        libraries=needs,
    )  # fmt: skip


def program(path: Path, *flags: str, needs: Sequence[Path] = ()) -> Path:
    return compile_c("int main(void) { return 0; }", path, *flags, libraries=needs)


def search(environment: dict[str, str] | None = None, cwd: str = "/") -> Search:
    own = loader.ask(file.read("/bin/sh").interpreter or "")
    assert own is not None
    return Search(environment or {}, own, cache.read(), cwd)


def tried(path: Path, environment: dict[str, str], cwd: str = "/") -> tuple[list[str], list[str]]:
    """(files that ld.so tried, in order, whether or not they were there; what it loaded)."""
    done = subprocess.run(
        [path],
        env={**environment, "LD_DEBUG": "libs"},
        capture_output=True, text=True, errors="replace", cwd=cwd,
    )  # fmt: skip
    files = re.findall(r"trying file=(\S+)", done.stderr)
    loaded = re.findall(r"calling init: (\S+)", done.stderr)
    return files, loaded


def worked_out(path: Path, search: Search) -> tuple[list[str], list[str]]:
    """The same, as `brigade.elf` has it."""
    whole = closure.close(file.read(str(path)), search)
    files = []
    gone: set[tuple[str, int]] = set()  # directories, which ld.so has found not to be there
    finds = [(one.search.name, one.search) for one in whole.objects if one.search]
    finds += [(one.name, one.search) for one in whole.missing]
    for _, found in _in_order(whole, finds):
        seen: Counter[str] = Counter()  # a directory may stand twice in its list
        for one in found.tried:
            folder = os.path.dirname(one.path)
            seen[folder] += 1
            if (folder, seen[folder]) not in gone:
                files.append(one.path)
            if not os.path.isdir(folder):
                gone.add((folder, seen[folder]))
    return files, [one.elf.path for one in whole.objects[1:]]


def _in_order(whole: closure.Closure, finds: list) -> list:
    """Searches in the order in which ld.so makes them: by who needs, then by its list."""
    order = [name for one in whole.objects for name in one.elf.needed]
    return sorted(finds, key=lambda pair: order.index(pair[0]))
