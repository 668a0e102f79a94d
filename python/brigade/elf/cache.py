"""/etc/ld.so.cache: where `ldconfig` found which library, as ld.so reads it.

    "glibc-ld.so.cache" "1.1"   20 bytes
    n_libs, strings' bytes      u32 each
    flags, 3 unused bytes, extension offset, 12 unused bytes
    n_libs times: flags i32, name u32, path u32, osversion u32, hwcap u64     (offsets from here on)
    strings

An older header ("ld.so-1.7.0") may stand before it. A path in a glibc-hwcaps folder has bit 62 of
`hwcap` set; its low half numbers the folder's name in the extension.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field

PATH = "/etc/ld.so.cache"
_MAGIC = b"glibc-ld.so.cache1.1"
_ENTRY = struct.Struct("<iIIIQ")
_EXTENSION_MAGIC, _TAG_HWCAPS = 0xEAA42174, 1
_HWCAPS = 1 << 62
# What `flags` has to be for a library to be this machine's (glibc's _DL_CACHE_DEFAULT_ID).
_FLAGS = {
    ("x86_64", 64): 0x0303, ("aarch64", 64): 0x0A03, ("ppc64", 64): 0x0503,
    ("s390x", 64): 0x0403, ("riscv64", 64): 0x1003, ("i386", 32): 0x0003,
    ("arm", 32): 0x0903,
}  # fmt: skip


@dataclass
class Cache:
    """name -> [(path, glibc-hwcaps subdirectory or "", flags)], in the file's order."""

    entries: dict[str, list[tuple[str, str, int]]] = field(default_factory=dict)

    def find(self, name: str, machine: str, cls: int, hwcaps: tuple[str, ...] = ()) -> str | None:
        """The path that ld.so takes, of the best supported subdirectory. `hwcaps`: best first."""
        flags = _FLAGS.get((machine, cls))
        found = [e for e in self.entries.get(name, []) if flags is None or e[2] == flags]
        order = {**{one: i for i, one in enumerate(hwcaps)}, "": len(hwcaps)}
        fit = [entry for entry in found if entry[1] in order]
        return min(fit, key=lambda entry: order[entry[1]])[0] if fit else None

    def folders(self) -> list[str]:
        """The directories that it leads to, in the order of their first mention."""
        all_ = (os.path.dirname(e[0]) for entries in self.entries.values() for e in entries)
        return list(dict.fromkeys(all_))


def read(path: str = PATH) -> Cache:
    """The cache; an empty one if there is none, or none that can be read: ld.so does not mind."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        return _parse(data)
    except (OSError, ValueError, struct.error):
        return Cache()


def _parse(data: bytes) -> Cache:
    start = data.find(_MAGIC)
    if start < 0:
        return Cache()
    data = data[start:]
    number, _, _, extension = struct.unpack_from("<IIB3xI", data, 20)
    hwcaps = _hwcaps(data, extension)

    def text(at: int) -> str:
        return os.fsdecode(data[at : data.index(b"\0", at)])

    cache = Cache()
    for i in range(number):
        flags, name, path, _, hwcap = _ENTRY.unpack_from(data, 48 + i * _ENTRY.size)
        if hwcap & _HWCAPS:
            index = hwcap & 0xFFFFFFFF
            folder = text(hwcaps[index]) if index < len(hwcaps) else "?"
        else:
            folder = "legacy" if hwcap else ""
        cache.entries.setdefault(text(name), []).append((text(path), folder, flags))
    return cache


def _hwcaps(data: bytes, extension: int) -> tuple[int, ...]:
    """Offsets of the names of glibc-hwcaps subdirectories."""
    if not extension or len(data) < extension + 8:
        return ()
    magic, count = struct.unpack_from("<II", data, extension)
    if magic != _EXTENSION_MAGIC:
        return ()
    for i in range(count):
        tag, _, offset, size = struct.unpack_from("<IIII", data, extension + 8 + 16 * i)
        if tag == _TAG_HWCAPS:
            return struct.unpack_from(f"<{size // 4}I", data, offset)
    return ()
