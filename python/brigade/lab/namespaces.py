"""Namespaces that outlive their processes, and the processes in them.

A member of a lab (the hub, a node) has four namespaces: network, host name, IPC and mounts. Each is
*pinned*: bound to a file, so that it exists, and can be recognised without doubt, whatever is
killed. The folder of pins is a private mount: nothing of it spreads to other namespaces.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from brigade.errors import LabError

KINDS = ("net", "uts", "ipc", "mnt")  # mnt last: paths change their meaning there
_TELLING = ("net", "mnt", "uts", "ipc")  # the order in which they say whose a process is

_MS_BIND = 0x1000
_MS_PRIVATE = 1 << 18
_MNT_DETACH = 2

_OCTAL = re.compile(r"\\([0-7]{3})")  # how mountinfo writes spaces

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str | None, target: Path, flags: int) -> None:
    name = source.encode() if source else None
    result = _libc.mount(name, os.fsencode(target), None, ctypes.c_ulong(flags), None)
    _check(result, f"mounting on {target}")


def prepare_pins(folder: Path) -> None:
    """Make `folder` a place where namespaces can be pinned."""
    folder.mkdir(parents=True, exist_ok=True)
    _mount(str(folder), folder, _MS_BIND)
    _mount(None, folder, _MS_PRIVATE)


def pin(pid: int, folder: Path) -> None:
    """Bind the namespaces of process `pid` to files in `folder`."""
    folder.mkdir()
    for kind in KINDS:
        target = folder / kind
        target.touch()
        _mount(f"/proc/{pid}/ns/{kind}", target, _MS_BIND)


def processor_for_pins(folder: Path) -> int:
    """A processor on which mount namespaces are made that can be pinned in `folder`.

    The kernel binds only a namespace that is younger, by its number, than the one it is bound in
    (`mnt_ns_loop` in fs/namespace.c). In Linux 6.18 processors number in lots of their own, so
    what another one makes later may count as older; what the same one makes later does not.

    It is tried in a folder like a member's, so that what is left of a trial that ended half-way
    is taken down like one.
    """
    target = folder / "probe" / "mnt"
    target.parent.mkdir()
    target.touch()
    problem = None
    for processor in sorted(os.sched_getaffinity(0)):
        with _short_lived(processor) as pid:
            try:
                _mount(f"/proc/{pid}/ns/mnt", target, _MS_BIND)
            except OSError as error:
                problem = error
                continue
        _check(_libc.umount2(os.fsencode(target), _MNT_DETACH), f"unmounting {target}")
        shutil.rmtree(target.parent)
        return processor
    raise LabError(
        f"no mount namespace can be kept in {folder}: {problem}",
        hint="start the lab outside this container or namespace, or on all of the processors",
    )


@contextlib.contextmanager
def _short_lived(processor: int) -> Iterator[int]:
    """A process in a mount namespace of its own, made on a processor; its pid."""
    with subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo made; read -r end"],
        preexec_fn=lambda: os.sched_setaffinity(0, {processor}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate()


def unpin_all(root: Path) -> None:
    """Undo every mount at or below `root`; fails if one stays."""
    for target in mounts_below(root):
        _check(_libc.umount2(os.fsencode(target), _MNT_DETACH), f"unmounting {target}")


def mounts_below(root: Path) -> list[str]:
    """Mount points at or below `root` in this process's namespace, deepest first."""
    prefix = str(root)
    found = []
    with open("/proc/self/mountinfo") as table:
        for line in table:
            target = _OCTAL.sub(lambda code: chr(int(code[1], 8)), line.split()[4])
            if target == prefix or target.startswith(prefix + "/"):
                found.append(target)
    return sorted(found, key=lambda path: path.count("/"), reverse=True)


def enter(folder: Path, kinds: Iterable[str] = KINDS) -> None:
    """Move this (single-threaded) process into the pinned namespaces.

    The working directory becomes the root of the new mount namespace.
    """
    handles = [os.open(folder / kind, os.O_RDONLY | os.O_CLOEXEC) for kind in kinds]
    for handle, kind in zip(handles, kinds):
        _check(_libc.setns(handle, 0), f"entering {folder / kind}")
        os.close(handle)


def identity(path: str | Path) -> tuple[int, int]:
    """What two names of one namespace have in common."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def is_pinned(folder: Path) -> bool:
    """True if `folder` holds a whole set of namespaces (and not just files of that name)."""
    try:
        return all(
            os.stat(folder / kind).st_dev == os.stat(f"/proc/self/ns/{kind}").st_dev
            for kind in KINDS
        )
    except FileNotFoundError:
        return False


def processes(folders: Iterable[Path]) -> dict[int, Path]:
    """The living processes in any of the pinned namespaces: pid -> folder.

    One is enough, as a process may have made others of its own. IPC comes last: the members of a
    lab share it, so it does not tell one from another.
    """
    wanted = {}
    for folder in folders:
        for kind in _TELLING:
            try:
                wanted[identity(folder / kind)] = folder
            except FileNotFoundError:
                continue
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        for kind in _TELLING:
            try:
                member = wanted.get(identity(f"/proc/{entry}/ns/{kind}"))
            except OSError:
                break  # it ended meanwhile, or is a zombie
            if member is not None:
                found[int(entry)] = member
                break
    return found


def kill_all(folders: list[Path], limit_s: float = 10.0) -> list[int]:
    """Kill every process in the pinned namespaces; returns those that would not die in time."""
    deadline = time.monotonic() + limit_s
    pause = 0.005
    while True:
        alive = processes(folders)
        if not alive or time.monotonic() > deadline:
            return sorted(alive)
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(pause)
        pause = min(2 * pause, 0.1)


def command_name(pid: int) -> str:
    """The short name of a process, or "" if it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
