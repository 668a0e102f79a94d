"""Start the trial: the user's program at a small width, recorded.

The trial ends when the program ends, or when its start-up is over: no process recorded a new
look-up for `quiet_s` seconds; it is then told to stop (SIGTERM, later SIGKILL). What was recorded
until then is kept, because recorders write through to their files.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from brigade.errors import TrialError
from brigade.launch import Launch, guarded
from brigade.paths import native

_GRACE_S = 5.0


@dataclass(frozen=True)
class TrialRun:
    """How a trial ended."""

    seconds: float
    ended: str  # "exit", "quiet" or "limit"
    status: int  # of the launcher, as subprocess gives it
    log: str


def run_trial(
    launch: Launch,
    ranks: int,
    folder: str,
    *,
    quiet_s: float,
    limit_s: float,
    progress: Callable[[float, int], None],
) -> TrialRun:
    """Record `launch`'s program with `ranks` ranks into `folder` (made; visible from all nodes).

    `progress(seconds, bytes_recorded)` is called about twice a second. Raises TrialError if
    nothing was recorded.
    """
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, "output.log")
    wrapper = [str(native("brigade-rank")), "--record", folder, "--python-view", python_view()]
    command = launch.trial(ranks, guarded(wrapper))
    start = time.monotonic()
    with open(log, "wb") as output:
        try:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise TrialError(f"cannot start {command[0]}: {error.strerror}") from error
        try:
            ended = _watch(child, folder, start, quiet_s, limit_s, progress)
        finally:
            _stop(child)
    if not recorded_bytes(folder):
        tail = "\n    ".join(tail_of(log))
        raise TrialError(
            f"the trial recorded nothing (exit status {child.returncode}); it said:\n    {tail}",
            hint="does it start without Brigade? `brigade run --view none -- …` starts it so",
        )
    return TrialRun(time.monotonic() - start, ended, child.returncode, log)


def python_view() -> str:
    """The folder of the Python view (`sitecustomize.py`) in this installation."""
    from brigade import imports

    return os.path.join(os.path.dirname(os.path.abspath(imports.__file__)), "site")


def recorded_bytes(folder: str) -> int:
    """Bytes in the record files of `folder` so far."""
    with os.scandir(folder) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.name.endswith(".rec"))


def tail_of(log: str, lines: int = 8) -> list[str]:
    """The last lines of a log, for an error message."""
    with open(log, encoding="utf-8", errors="replace") as text:
        return text.read().splitlines()[-lines:] or ["(nothing)"]


def _watch(
    child: subprocess.Popen[bytes],
    folder: str,
    start: float,
    quiet_s: float,
    limit_s: float,
    progress: Callable[[float, int], None],
) -> str:
    """Wait for the end of the program or of its start-up; returns which."""
    size, grown = 0, start
    while True:
        try:
            child.wait(timeout=0.1 if time.monotonic() - start < 2 else 0.5)
            return "exit"
        except subprocess.TimeoutExpired:
            pass
        now = time.monotonic()
        recorded = recorded_bytes(folder)
        if recorded != size:
            size, grown = recorded, now
        progress(now - start, size)
        if size and now - grown > quiet_s:
            return "quiet"
        if now - start > limit_s:
            return "limit"


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End the trial's process group if it still runs."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is not None:
            return
        try:
            os.killpg(child.pid, signum)
            child.wait(timeout=_GRACE_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
