"""What this kernel was told about its page cache, and about the device below a folder."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from brigade.bench.cache.memory import Room

_VM = {
    "dirty_ratio": "dirty_ratio",
    "dirty_background_ratio": "dirty_background_ratio",
    "dirty_bytes": "dirty_bytes",
    "dirty_background_bytes": "dirty_background_bytes",
    "dirty_expire_cs": "dirty_expire_centisecs",
    "dirty_writeback_cs": "dirty_writeback_centisecs",
}
_BDI = {"max_ratio", "max_bytes", "strict_limit", "read_ahead_kb"}


def _number(path: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return None


def settings(folder: Path, room: Room) -> dict[str, Any]:
    """Thresholds, times and limits as the kernel has them; None for what it does not say."""
    found: dict[str, Any] = {
        name: _number(Path("/proc/sys/vm") / file) for name, file in _VM.items()
    }
    device = os.stat(folder).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    for one in sorted(_BDI):
        found[one] = _number(Path("/sys/class/bdi") / name / one)
    found["available"] = _available()
    found["memory"] = room.bytes
    found["cgroup"] = room.version
    return {**found, **_mounted(folder)}


def _available() -> int:
    """Bytes that dirty pages are a share of: free memory, and what the cache has."""
    with open("/proc/meminfo", encoding="ascii") as info:
        numbers = {line.split(":")[0]: int(line.split()[1]) << 10 for line in info}
    return numbers["MemFree"] + numbers["Active(file)"] + numbers["Inactive(file)"]


def _mounted(folder: Path) -> dict[str, str]:
    """File system and source of the mount that a folder lies in."""
    where, found = str(folder.resolve()), ("", "", "")
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        for line in mounts:
            source, mount, kind = line.split(" ")[:3]
            inside = where == mount or where.startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= len(found[1]):
                found = (source, mount, kind)
    return {"filesystem": found[2], "source": found[0]}
