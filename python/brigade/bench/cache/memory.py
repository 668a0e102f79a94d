"""How much memory the study has: a cgroup of its own, where this user may make one.

Version 2 (memory.max) or 1 (memory.limit_in_bytes), whichever has the memory controller here.
Without either the limit that is in force, of the cgroups above, or the machine's memory is what
there is. Nothing else of the cgroups is changed, and ours is removed.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_FILES = {1: "memory.limit_in_bytes", 2: "memory.max"}
_STAT = {1: ("dirty", "writeback", "cache"), 2: ("file_dirty", "file_writeback", "file")}


@dataclass(frozen=True)
class Room:
    """What memory there is, and by whose word."""

    bytes: int
    version: int = 0  # of cgroups; 0: no cgroup limits it
    folder: str = ""  # of the cgroup
    own: bool = False  # made for this study
    why: str = ""  # it is not our own

    @property
    def procs(self) -> str:
        """Where a process writes itself to get into it; "" if it is there."""
        return f"{self.folder}/cgroup.procs" if self.own else ""

    def state(self) -> tuple[int, int, int]:
        """Bytes now dirty, being written, and cached: of the cgroup, or of the machine."""
        if self.version:
            found = _numbers(Path(self.folder) / "memory.stat")
            dirty, writeback, cached = (found.get(name, 0) for name in _STAT[self.version])
            return dirty, writeback, cached
        found = _numbers(Path("/proc/meminfo"))
        dirty, writeback, cached = (found.get(n, 0) << 10 for n in ("Dirty", "Writeback", "Cached"))
        return dirty, writeback, cached


def _numbers(path: Path) -> dict[str, int]:
    found = {}
    with suppress(OSError):
        for line in path.read_text().splitlines():
            words = line.split()
            if len(words) > 1 and words[1].isdigit():
                found[words[0].rstrip(":")] = int(words[1])
    return found


def homes(own: str, mounts: str) -> list[tuple[int, Path, Path]]:
    """(version, where cgroups are mounted, our cgroup) of each hierarchy that may have the memory
    controller, from the texts of /proc/self/cgroup and /proc/self/mounts. Pure."""
    paths = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            paths[2] = path
        elif "memory" in controllers.split(","):
            paths[1] = path
    found = []
    for line in mounts.splitlines():
        _, mount, kind, options = line.split(" ")[:4]
        version = {"cgroup2": 2, "cgroup": 1}.get(kind, 0)
        if version in paths and (version == 2 or "memory" in options.split(",")):
            found.append((version, Path(mount), Path(mount) / paths[version].lstrip("/")))
    return sorted(found, reverse=True)


def _here() -> list[tuple[int, Path, Path]]:
    try:
        with open("/proc/self/cgroup", encoding="ascii") as own:
            with open("/proc/self/mounts", encoding="utf-8") as mounts:
                return homes(own.read(), mounts.read())
    except OSError:
        return []


def in_force() -> Room:
    """The tightest limit of the cgroups that this process is in, or the machine's memory."""
    room = Room(_numbers(Path("/proc/meminfo")).get("MemTotal", 1 << 20) << 10)
    for version, top, own in _here():
        for folder in (own, *own.parents):
            if top not in (folder, *folder.parents):
                break
            with suppress(OSError, ValueError):
                limit = int((folder / _FILES[version]).read_text())
                if limit < room.bytes:
                    room = Room(limit, version, str(folder))
    return room


@contextmanager
def limited(bytes_: int) -> Iterator[Room]:
    """Memory of so many bytes, while it lasts; or what there is, and why it is not ours."""
    there = in_force()
    if bytes_ >= there.bytes:
        yield there
        return
    why = "no memory controller of cgroups is mounted here"
    for version, top, own in _here():
        for folder in _parents(version, top, own):
            made = folder / f"brigade-cache-{os.getpid()}"
            try:
                _make(made, version, bytes_)
            except OSError as error:
                why = f"{error.filename or made}: {error.strerror}"
                _remove(made)
                continue
            try:
                yield Room(bytes_, version, str(made), own=True)
            finally:
                _remove(made)
            return
    yield Room(there.bytes, there.version, there.folder, why=why)


def _parents(version: int, top: Path, own: Path) -> list[Path]:
    """Where a cgroup with a memory limit can be made: of version 2 below one that hands the memory
    controller on, which one with processes in it cannot, but for the topmost."""
    if version == 1:
        return [own]
    found = []
    for folder in (own, *own.parents):
        if top not in (folder, *folder.parents):
            break
        with suppress(OSError):
            if "memory" in (folder / "cgroup.subtree_control").read_text().split():
                found.append(folder)
    return found


def _make(folder: Path, version: int, bytes_: int) -> None:
    """Make it, and see that a process may go into it."""
    folder.mkdir()
    (folder / _FILES[version]).write_text(str(bytes_))
    if version == 1:  # a writer that finds it full of dirty pages is refused, not killed
        with suppress(OSError):
            (folder / "memory.oom_control").write_text("1")
    tried = subprocess.run(
        ["sh", "-c", 'echo 0 > "$0"', str(folder / "cgroup.procs")], stderr=subprocess.DEVNULL
    )
    if tried.returncode:
        raise PermissionError(1, "no process may go there", str(folder))


def _remove(folder: Path) -> None:
    for _ in range(100):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:  # its last process is not quite gone
            time.sleep(0.05)
        else:
            return
