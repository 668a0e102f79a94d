"""Which views a job's ranks get: what `--view` names, or what `auto` chooses for the program.

A static program runs no `ld.so`: nothing can be preloaded into it, and only the namespace view
reaches it. Everything else gets `interpose` and, if it is Python, `python`: they change less of
what a program can notice (docs/design/0005-namespace-view.md).
"""

from __future__ import annotations

import shutil
import struct

from brigade.errors import UsageError

AUTO = ("interpose", "python")
VIEWS = ("namespace", *AUTO)
_PT_INTERP = 3


def parse(text: str) -> list[str]:
    """The views that `--view` names; empty for none."""
    if text == "auto":
        return list(AUTO)
    if text == "none":
        return []
    views = [view for view in text.split(",") if view]
    unknown = [view for view in views if view not in VIEWS]
    if unknown or not views:
        raise UsageError(f"--view {text}: views are auto, none, {', '.join(VIEWS)}")
    return views


def automatic(program: list[str], has_python: bool) -> list[str]:
    """What `auto` is for a program. `has_python`: its image knows about imports."""
    views = list(AUTO) if has_python else ["interpose"]
    return ["namespace", *views] if program and is_static(program[0]) else views


def is_static(program: str) -> bool:
    """Whether a program (a name is searched as a shell would) is an ELF file without an ld.so."""
    path = shutil.which(program)
    if path is None:
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
                return False
            (table,) = struct.unpack_from("<Q", head, 32)
            size, count = struct.unpack_from("<HH", head, 54)
            file.seek(table)
            rows = file.read(size * count)
    except OSError:
        return False
    kinds = [struct.unpack_from("<I", rows, at)[0] for at in range(0, len(rows) - 3, size or 1)]
    return bool(kinds) and _PT_INTERP not in kinds
