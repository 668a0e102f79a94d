"""What processes have of memory, and what a machine has."""

from __future__ import annotations

import ctypes
import mmap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LEFT = 1 << 30  # bytes that stay free
PART = 64 << 20  # bytes that one thread writes at a time


def pss_of(pid: int, kind: str = "Pss") -> int:
    """Bytes of a process, shared pages divided among those that share them (PSS); of `Pss_Anon`
    alone, those that are no file's."""
    return _bytes_in(f"/proc/{pid}/smaps_rollup", kind)


def settle(most: int) -> int:
    """Write to free memory, and give it back; returns bytes: `most`, or what is free but for LEFT.

    Of a virtual machine's memory its host may have given what was used before, and no more. Who is
    first to write to another page waits for the host: 8 to 16 us, where less than 2 is usual. So a
    start that needs more memory than the last ones waits for what is no work of its own.
    """
    size = min(most, free() - LEFT)
    if size <= 0:
        return 0
    area = mmap.mmap(-1, size)
    held = ctypes.c_char.from_buffer(area)
    begin = ctypes.addressof(held)
    with ThreadPoolExecutor() as threads:
        for _ in threads.map(
            lambda at: ctypes.memset(begin + at, 1, min(PART, size - at)), range(0, size, PART)
        ):
            pass
    del held
    area.close()
    return size


def free() -> int:
    """Bytes that nobody uses, not even to keep files in."""
    return _bytes_in("/proc/meminfo", "MemFree")


def _bytes_in(path: str, name: str) -> int:
    rows = Path(path).read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(f"{name}:")) << 10
