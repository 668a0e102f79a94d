"""MooseFS' client: the file `.stats` at the mount's root, which the client answers by itself.

It knows the sum of packets to the metadata server, the keep-alive ones (one in three seconds of
silence) included, and of the kinds only look-ups and links exactly: its other numbers count what
the kernel asked of it, this very file included.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import partial

from brigade.profile.clients import Client, Mounted, Reading

_LINE = re.compile(r"^([\w.]+): \[?(\d+)\]?$", re.MULTILINE)
_EXACT = {"fuse_ops.lookup.master": "lookup", "fuse_ops.readlink.master": "readlink"}


def readers(mounts: Iterable[Mounted]) -> list[Client]:
    found = []
    for mount in mounts:
        if mount.fstype in ("fuse", "fuse.mfs") and mount.source.startswith(("mfs#", "mfsmaster")):
            note = f"{mount.point}: this node's client alone, its keep-alive packets counted in."
            path = os.path.join(mount.point, ".stats")
            found.append(Client("moosefs", mount.point, partial(read, path), note))
    return found


def read(path: str) -> Reading:
    with open(path, encoding="ascii", errors="replace") as text:
        return parse(text.read())


def parse(text: str) -> Reading:
    """Raises ValueError if it is something else."""
    said = {name: int(number) for name, number in _LINE.findall(text)}
    if "master.packets_sent" not in said:
        raise ValueError("no packets are told")
    kinds = {word: said[name] for name, word in _EXACT.items() if name in said}
    kinds["other"] = max(0, said["master.packets_sent"] - sum(kinds.values()))
    return Reading(kinds)
