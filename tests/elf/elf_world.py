"""What ld.so itself says of its search, to compare with."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

from brigade.elf import cache, closure, file, loader
from brigade.elf.search import Search


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
