"""NFS: `/proc/self/mountstats`, which counts each operation of the protocol, per superblock.

Format: fs/nfs/super.c and net/sunrpc/stats.c of Linux. Two mounts of one export share a superblock
and show the same numbers; they are taken once, by the kernel's device number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from brigade.profile.clients import Client, Mounted, Reading

PATH = "/proc/self/mountstats"
# what the client sends to keep its lease and session, or with every other operation
BACKGROUND = frozenset(
    """NULL RENEW SEQUENCE SETCLIENTID SETCLIENTID_CONFIRM EXCHANGE_ID CREATE_SESSION
    DESTROY_SESSION DESTROY_CLIENTID RECLAIM_COMPLETE BIND_CONN_TO_SESSION TEST_STATEID
    SERVER_CAPS FSINFO GET_LEASE_TIME""".split()
)
_DEVICE = re.compile(r"^device (\S+) mounted on (\S+) with fstype (nfs4?)\b")
_OPERATION = re.compile(r"^\s+([A-Z][A-Z0-9_]*): (\d+) ")
_ESCAPE = re.compile(r"\\([0-7]{3})")
_SERVER_READ = 4  # of the numbers after "bytes:", read from the server


def readers(mounts: Iterable[Mounted], path: str = PATH) -> list[Client]:
    found: dict[str, Client] = {}
    for mount in mounts:
        if mount.fstype in ("nfs", "nfs4") and mount.device not in found:
            note = f"{mount.point}: this node's client alone."

            def read_it(point: str = mount.point) -> Reading:
                with open(path, encoding="utf-8", errors="surrogateescape") as text:
                    return parse(text.read(), point)

            found[mount.device] = Client("nfs", mount.point, read_it, note)
    return list(found.values())


def parse(text: str, point: str) -> Reading:
    """What is told of the mount at `point`; ValueError if nothing is."""
    found: Reading | None = None
    for line in text.splitlines():
        device = _DEVICE.match(line)
        if device or line.startswith("device "):
            if found:
                return found
            if device and _unescaped(device[2]) == point:
                found = Reading()
        elif found and line.lstrip().startswith("bytes:"):
            found.bytes_read = int(line.split()[1 + _SERVER_READ])
        elif found:
            operation = _OPERATION.match(line)
            if operation and operation[1] in BACKGROUND:
                found.background += int(operation[2])
            elif operation and operation[2] != "0":
                found.kinds[operation[1]] = int(operation[2])
    if not found:
        raise ValueError("nothing is told of it")
    return found


def _unescaped(word: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)), word)
