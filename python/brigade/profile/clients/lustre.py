"""Lustre: the client's statistics of its metadata (mdc) and data (osc) connections.

`mdc/FS-MDT*/stats` counts remote procedure calls by kind. It lies below /proc/fs/lustre, or, since
2.12, in debugfs, which only root may read. Below it, `md_stats` counts what the file system asked
of the connection, some of which a lock answers: it is taken where nothing else can be read, and
said so. The counters of llite are those of system calls, and not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from brigade.profile.clients import Client, Mounted, Reading

ROOTS = ("/sys/kernel/debug/lustre", "/proc/fs/lustre", "/sys/fs/lustre")
BACKGROUND = frozenset({"obd_ping", "mds_connect", "mds_disconnect", "seq_query", "fld_query"})
_LINE = re.compile(r"^(\w+)\s+(\d+) samples \[(\w+)\](?: +(\d+) +(\d+) +(\d+))?", re.MULTILINE)
_NO_CALLS = ("req_waittime", "req_active", "req_qdepth", "req_timeout", "reqbuf_avail")


def readers(mounts: Iterable[Mounted], roots: Iterable[str] = ROOTS) -> list[Client]:
    found: dict[str, Client] = {}
    for mount in mounts:
        name = mount.source.rpartition(":/")[2].split("/")[0]
        if mount.fstype != "lustre" or not name or name in found:
            continue
        for file, what in (("stats", "calls to the servers"), ("md_stats", "operations")):
            pages = list(_files(roots, f"mdc/{name}-MDT*", file))
            if not pages:
                continue
            data = list(_files(roots, f"osc/{name}-OST*", "stats"))
            note = f"{mount.point}: {what}, of this node's client alone."
            found[name] = Client(*("lustre", mount.point, partial(read, pages, data), note))
            break
    return list(found.values())


def _files(roots: Iterable[str], folder: str, name: str) -> Iterator[Path]:
    """Those that can be read, of the first root that has any."""
    for root in roots:
        found = sorted(Path(root).glob(f"{folder}/{name}"))
        readable = [path for path in found if _can_read(path)]
        if readable:
            yield from readable
            return


def _can_read(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


def read(pages: Iterable[Path], data: Iterable[Path]) -> Reading:
    total = Reading()
    for path in pages:
        add(total, path.read_text(encoding="ascii", errors="replace"))
    for path in data:
        for name, _, unit, *spread in _LINE.findall(path.read_text(errors="replace")):
            if name == "read_bytes" and unit == "bytes":
                total.bytes_read = (total.bytes_read or 0) + int(spread[2] or 0)
    return total


def add(total: Reading, text: str) -> None:
    """Add the calls of one connection."""
    for name, samples, *_ in _LINE.findall(text):
        if name in BACKGROUND:
            total.background += int(samples)
        elif name not in _NO_CALLS:
            total.kinds[name] = total.kinds.get(name, 0) + int(samples)
