"""The counter pages of the lab (`brigade.lab.counters`): of all its nodes, background apart."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from brigade.lab.counters import kinds_of, parse_page
from brigade.lab.plan import SHARED
from brigade.profile.clients import Client, Mounted, Reading


def readers(mounts: Iterable[Mounted]) -> list[Client]:
    """The lab that this process is in, if its shared file system is among the mounts."""
    state, shared = os.environ.get("BRIGADE_LAB_STATE"), os.environ.get("BRIGADE_LAB_SHARED")
    if not state or not shared:
        return []
    pages = sorted((Path(state) / "counters").glob("*"))
    for mount in mounts:
        if mount.point == shared and pages:
            return [client(pages, "moosefs" if mount.source.startswith("mfs") else "slow", shared)]
    return []


def client(pages: list[Path], kind: str, point: str = SHARED) -> Client:
    """All nodes' clients as one; `kind`: as the lab's file system is named."""
    note = f"{point}: the clients of all {len(pages)} nodes of the lab were read."
    source = "moosefs" if kind == "moosefs" else "slowfs"
    return Client(source, point, partial(read, pages), note)


def read(pages: Iterable[Path]) -> Reading:
    """All pages together."""
    total = Reading(bytes_read=0)
    for path in pages:
        page = path.read_bytes()
        total.bytes_read = (total.bytes_read or 0) + parse_page(page).bytes_read
        for name, background, times in kinds_of(page):
            if background:
                total.background += times
            elif times:
                total.kinds[name] = total.kinds.get(name, 0) + times
    return total
