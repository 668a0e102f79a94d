"""A file system on a loop device whose rates of writing and reading are limited, each by itself.

The limits are those of the block layer (cgroup version 1, blkio.throttle.*, of the topmost cgroup,
which is charged for what the kernel writes back), so they hold for direct and buffered I/O alike.
The loop device reads and writes its file with O_DIRECT: nothing is cached twice. Needs root.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

BLKIO = Path("/sys/fs/cgroup/blkio")
MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
}


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def file_system(
    kind: str, base: Path, size: int, write: int, read: int, strict: int = 0
) -> Iterator[Path]:
    """Where a fresh file system is mounted; `write` and `read` in bytes a second; `strict`: most
    dirty bytes of the device (bdi max_bytes with strict_limit), 0: as the kernel has it."""
    with contextlib.ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(dir=base)))
        image = folder / "image"
        with open(image, "wb") as file:
            file.truncate(size)
        loop = _run("losetup", "-f", "--show", "--direct-io=on", str(image))
        undo.callback(_run, "losetup", "-d", loop)
        device = Path(f"/sys/block/{Path(loop).name}/dev").read_text().strip()
        _run(*MAKE[kind], loop)
        mounted = folder / "mounted"
        mounted.mkdir()
        _run("mount", loop, str(mounted))
        undo.callback(_run, "umount", str(mounted))
        for way, rate in (("write", write), ("read", read)):
            limit = BLKIO / f"blkio.throttle.{way}_bps_device"
            undo.callback(limit.write_text, f"{device} 0")
            limit.write_text(f"{device} {rate}")
        if strict:
            bdi = Path("/sys/class/bdi") / device
            (bdi / "strict_limit").write_text("1")
            (bdi / "max_bytes").write_text(str(strict))
            undo.callback((bdi / "strict_limit").write_text, "0")
            undo.callback((bdi / "max_ratio").write_text, "100")
        yield mounted


_DIRTY = ("dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes")


@contextlib.contextmanager
def dirty_limits(background: int, hard: int) -> Iterator[None]:
    """The machine's limits of dirty bytes, meanwhile. Of each pair *_bytes and *_ratio the kernel
    keeps the one that was written last and sets the other to 0: what was not 0 is put back."""
    folder = Path("/proc/sys/vm")
    before = {name: (folder / name).read_text().strip() for name in _DIRTY}
    try:
        (folder / "dirty_background_bytes").write_text(str(background))
        (folder / "dirty_bytes").write_text(str(hard))
        yield
    finally:
        for name, text in before.items():
            if text != "0":
                (folder / name).write_text(text)
