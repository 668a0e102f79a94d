"""One node's part of a broadcast: the staged folder, the view of each rank, and the end of both.

    Place   on the first rank of a node: takes the image's bytes and has `brigade-stage` unpack
            them, exactly as it does under `brigade run`
    View    on every rank: the python view on that folder; at exit the last one removes the folder

Who is alive is said by locks, which a kill releases too: each rank holds a shared flock on
`<stage>/jobs/<job>/ranks`, and whoever gets it for itself alone is the last. A job whose ranks
were all killed leaves its folder; the next broadcast of this user on the node removes it.

What must stay true: `ranks` appears locked (made aside, locked, renamed); the job's name tells
its maker (pid and start time) until then. The image itself lies in memory without a name and
cannot be left behind. Only `os`-like modules are imported: see inside.py.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import sys

from brigade.imports.inside_stage import drop, own_folder, put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PREFIX = "inside-"
_PYTHON_PARTS = "root/.brigade/python"
# struct brg_state and brg_slot (src/view/state.h)
_N_SLOTS_AT, _SLOTS_OFF_AT, _SLOT_BYTES = 12, 32, 128
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class Place:
    """The image's place on this node while it arrives. Methods return "" or what went wrong."""

    def __init__(self, offer: dict[str, Any]) -> None:
        self.job = f"{_PREFIX}{os.getpid()}-{_start_time(os.getpid())}"
        self.memory = -1  # descriptor of the image's bytes
        self.staged = False
        self._offer = offer
        self._lock = -1

    def make_room(self) -> str:
        """Room for the image's bytes, and a first look whether unpacked they will fit, too."""
        offer = self._offer
        try:
            sweep(offer["stager"])
            folder = own_folder()
            found = os.statvfs(os.path.dirname(folder))
            free, needed = found.f_bavail * found.f_frsize, offer["bytes"]
            if not os.path.isdir(f"{folder}/{offer['id']}"):
                needed += offer["raw_bytes"]
            if free < needed:
                return _no_room(os.path.dirname(folder), needed, free)
            self.memory = os.memfd_create("brigade-image")
            os.posix_fallocate(self.memory, 0, offer["bytes"])
        except Exception as error:
            return f"no room for the image on {_host()}: {error}"
        return ""

    def unpack(self) -> str:
        """Make the staged folder, or add this job to the one that is there."""
        try:
            said = put(self._offer, self.memory, self.job)
            if not said:
                self.staged = True
                self._lock = _make_lock(_job_folder(self._offer, self.job))
        except Exception as error:
            said = f"the image cannot be unpacked on {_host()}: {error}"
        return said

    def forget_image(self) -> None:
        """The bytes are unpacked, or not wanted any more."""
        if self.memory >= 0:
            os.close(self.memory)
            self.memory = -1

    def drop(self) -> None:
        """Another node failed: nothing stays here either."""
        if self.staged:
            if self._lock >= 0:
                os.close(self._lock)
            drop(self._offer["stager"], self._offer["id"], self.job)

    def release(self) -> None:
        """The views of this node's ranks hold the folder now; if there is none, it goes."""
        _leave(self._offer, self.job, self._lock)


class View:
    """The python view of this process. Raises OSError or RuntimeError, with nothing changed."""

    def __init__(self, offer: dict[str, Any], job: str, slot: int, rank: int) -> None:
        self._offer, self._job = offer, job
        stage = f"{own_folder()}/{offer['id']}"
        for folder in (own_folder(), stage):
            if os.stat(folder).st_uid != os.geteuid():
                raise RuntimeError(f"{folder} belongs to another user")
        self._lock = _take_lock(_job_folder(offer, job))
        try:
            state = f"{_job_folder(offer, job)}/state"
            self._counted = _start(stage, state, _take_slot(state, slot, rank))
        except BaseException:
            os.close(self._lock)
            raise
        atexit.register(_leave, offer, job, self._lock)

    def counted(self) -> tuple[int, dict[str, int]]:
        """(answers, {cause: misses}) of this rank until now."""
        answers, misses = self._counted()
        return answers, misses


def under_run() -> bool:
    """Whether `brigade run` started this process: in a trial looking for an image would itself
    be recorded. os.environ does not tell: it is the program's own."""
    with open("/proc/self/environ", "rb") as file:
        names = {word.partition(b"=")[0] for word in file.read().split(b"\0")}
    return b"BRIGADE_STAGE" in names or b"BRIGADE_RECORD" in names


def sweep(stager: str) -> None:
    """End jobs of this module whose ranks have all died on this node."""
    top = own_folder()
    for image_id in _names(top):
        for job in _names(f"{top}/{image_id}/jobs"):
            if job.startswith(_PREFIX) and _is_dead(f"{top}/{image_id}/jobs/{job}", job):
                drop(stager, image_id, job)


def _start(stage: str, state: str, slot: int) -> Any:
    """Start the view as sitecustomize.py does; returns what counts its answers."""
    folder = f"{stage}/{_PYTHON_PARTS}"
    with open(f"{folder}/sitecustomize.py", "rb") as file:
        code = compile(file.read(), f"{folder}/sitecustomize.py", "exec", dont_inherit=True)
    scope: dict[str, Any] = {"__name__": "brigade.sitecustomize"}
    exec(code, scope)
    start = scope["_load"](sys, folder, scope["_VIEW"])
    variables = {"STAGE": stage, "STATE": state, "SLOT": str(slot), "VIEW": "python"}
    environ = {f"BRIGADE_{name}".encode(): os.fsencode(v) for name, v in variables.items()}
    environ[b"BRIGADE_STRICT"] = os.environb.get(b"BRIGADE_STRICT", b"")
    counted = start(environ, folder)
    if counted is None:
        raise RuntimeError(
            "the image has no tables for this Python, or its path hooks were replaced"
        )
    return counted


def _take_slot(state: str, slot: int, rank: int) -> int:
    """Enter this rank into the job's counters; past the last slot ranks share it."""
    import time

    fd = os.open(state, _OPEN)
    try:
        header = os.pread(fd, _SLOTS_OFF_AT + 8, 0)
        slot = min(slot, int.from_bytes(header[_N_SLOTS_AT : _N_SLOTS_AT + 4], "little") - 1)
        at = int.from_bytes(header[_SLOTS_OFF_AT:], "little") + slot * _SLOT_BYTES
        entry = os.getpid().to_bytes(4, "little") + rank.to_bytes(4, "little")
        os.pwrite(fd, entry + time.time_ns().to_bytes(8, "little"), at)
    finally:
        os.close(fd)
    return slot


# Who is alive ####################################################################


def _job_folder(offer: dict[str, Any], job: str) -> str:
    return f"{own_folder()}/{offer['id']}/jobs/{job}"


def _make_lock(folder: str) -> int:
    fd = os.open(f"{folder}/ranks.new", _OPEN | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(fd, fcntl.LOCK_SH)
    os.rename(f"{folder}/ranks.new", f"{folder}/ranks")
    return fd


def _take_lock(folder: str) -> int:
    fd = os.open(f"{folder}/ranks", _OPEN)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


def _leave(offer: dict[str, Any], job: str, lock: int) -> None:
    """Give up the lock; the last one ends the job. A process forked meanwhile still holds it."""
    try:
        os.close(lock)
        if _nobody_holds(f"{_job_folder(offer, job)}/ranks"):
            drop(offer["stager"], offer["id"], job)
    except OSError:
        pass  # the folder is gone already


def _nobody_holds(path: str) -> bool:
    fd = os.open(path, _OPEN)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def _is_dead(folder: str, job: str) -> bool:
    try:
        return _nobody_holds(f"{folder}/ranks")
    except OSError:
        pid, _, start = job[len(_PREFIX) :].partition("-")
        return _start_time(pid) != start


def _start_time(pid: int | str) -> str:
    """When the process started, in ticks since boot; "" if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return ""


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _host() -> str:
    return os.uname().nodename


def _no_room(base: str, needed: int, free: int) -> str:
    return (
        f"{base} on {_host()} has {free >> 20} MiB free, the image needs {(needed >> 20) + 1} MiB "
        "while it arrives: give the job more memory, or choose another folder with BRIGADE_NODE_DIR"
    )
