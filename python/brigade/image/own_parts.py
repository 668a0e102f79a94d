"""Brigade's own parts in an image, under the reserved folder `/.brigade/`.

A rank starts from node memory, so what is loaded into it must be there too: the wrapper,
the auditor, the preloaded library, the Python view, and the plan of a template. None of it lies
under a covered root, so no look-up of a program is ever answered with it.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from types import SimpleNamespace as Metadata
from typing import Any

from brigade.image.layout import DIR, FILE, OWN_PARTS
from brigade.imports.table import SITE, Seen, site_files
from brigade.paths import native

NATIVE = {
    "bin/brigade-rank": "brigade-rank",
    "lib/libbrigade-audit.so": "libbrigade-audit.so",
    "lib/libbrigade-preload.so": "libbrigade-preload.so",
}
PLAN = "fork/plan"


@dataclass(frozen=True)
class Part:
    """One path under `/.brigade`. `source`: a file to read, the bytes themselves, or None for a
    folder; `metadata` has fields as os.stat_result."""

    path: str
    kind: int
    metadata: Any
    source: str | bytes | None = None


def own_parts(python: Seen, plan: bytes | None = None) -> list[Part]:
    """Brigade's own parts, folders first; `plan`: what a template of ranks imports, if the trial
    was recorded for that. Raises BrigadeError if a part was not built."""
    files: dict[str, Part] = {}
    for place, name in NATIVE.items():
        source = str(native(name))
        files[place] = Part(f"{OWN_PARTS}/{place}", FILE, os.stat(source), source)
    for place, data in site_files(python).items():
        place = f"python/{place}"
        files[place] = Part(f"{OWN_PARTS}/{place}", FILE, _of_bytes(data), data)
    if plan is not None:
        files[PLAN] = Part(f"{OWN_PARTS}/{PLAN}", FILE, _of_bytes(plan), plan)
    folders = {OWN_PARTS}
    for part in files.values():
        above = part.path.rpartition("/")[0]
        while above:
            folders.add(above)
            above = above.rpartition("/")[0]
    return [Part(folder, DIR, _folder()) for folder in sorted(folders)] + list(files.values())


def _folder() -> Metadata:
    return _made(stat.S_IFDIR | 0o755, 0)


def _of_bytes(data: bytes) -> Metadata:
    return _made(stat.S_IFREG | 0o644, len(data))


def _made(mode: int, size: int) -> Metadata:
    """Metadata of something that is made here; as old as the Python view it belongs to."""
    time_ns = os.stat(SITE).st_mtime_ns
    return Metadata(
        st_mode=mode, st_size=size, st_nlink=1, st_uid=os.getuid(), st_gid=os.getgid(),
        st_atime_ns=time_ns, st_mtime_ns=time_ns, st_ctime_ns=time_ns,
    )  # fmt: skip
