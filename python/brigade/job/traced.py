"""Run the user's job with every program of it traced.

The job is the user's own: its streams, terminal, process group and exit status are as if it had
been started without us. Each program becomes itself through `brigade-trace`, whose files lie in one
folder that all nodes see; `brigade.trace.native.load` reads them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from brigade.errors import LauncherError, NoTraceError
from brigade.job.heard import Heard, traces
from brigade.job.orphans import orphans
from brigade.job.signals import passing_on
from brigade.launch import Launch, environment
from brigade.paths import native

Progress = Callable[[float, int], None]

_TICK_S = 0.1
_LEAVE_S = 10.0  # what a job gets between SIGTERM and SIGKILL
_SETTLE_S = 2.0  # a tracer writes its last lines before the program's end is known: no wait at all
_END = b"\nZ\n"


class Ran(NamedTuple):
    """How a job ended."""

    status: int  # as subprocess gives it
    seconds: float
    ended_ns: int | None  # when we ended it (CLOCK_REALTIME here); None: it ended by itself


def run_traced(
    launch: Launch,
    folder: str,
    *,
    progress: Progress,
    quiet_s: float | None = None,
    limit_s: float | None = None,
    all_stops: bool = False,
    around: Callable[[subprocess.Popen[bytes]], AbstractContextManager[None]] = passing_on,
) -> Ran:
    """Run `launch`'s job, its trace into `folder` (made; visible from all nodes).

    With `quiet_s` the job is ended (SIGTERM, later SIGKILL) once no program has looked anything up
    for so long, with `limit_s` after so long. `progress(seconds, bytes)` is called about twice a
    second. A terminal's Ctrl-C reaches the job by itself; other signals are passed on, unless
    `around` says otherwise. Raises LauncherError if the launcher cannot be started,
    NoTraceError if nothing of the job left a trace.
    """
    os.makedirs(folder, exist_ok=True)
    tracer = [str(native("brigade-trace")), "--behind-shell", "--out", os.path.abspath(folder)]
    if launch.kind == "local" and launch.ranks == 1:
        tracer += ["--rank", "0"]
    if all_stops:
        tracer.append("--all-stops")
    command = launch.job(launch.guarded(tracer))
    start = time.monotonic()
    with orphans() as left:
        try:
            child = subprocess.Popen(command, env=environment())
        except OSError as error:
            raise LauncherError(
                f"cannot start {command[0]}: {error.strerror}",
                hint="is its module loaded, and does it start without Brigade?",
            ) from error
        with around(child):
            watch = Watch(child, folder, start, progress)
            try:
                status = watch.wait(quiet_s, limit_s)
            finally:
                watch.end()  # if it still runs, something of ours has failed
                if watch.ended_ns:
                    left.end(_LEAVE_S)
    ran = Ran(status, time.monotonic() - start, watch.ended_ns)
    _settle(folder)
    if not traces(folder):
        raise NoTraceError(
            f"no program of the job left a trace (its exit status: {status})",
            hint=f"is {os.path.abspath(folder)} visible on the nodes, and writable there?",
            status=status,
        )
    return ran


class Watch:
    """A job that runs, and that nothing is to be left of after `leave_s` once it is ended.
    `start` None: it has begun when the first of its programs leaves a trace."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        folder: str,
        start: float | None,
        progress: Progress,
        leave_s: float = _LEAVE_S,
    ) -> None:
        self._child = child
        self._folder = folder
        self._start = start
        self._progress = progress
        self._leave_s = leave_s
        self.ended_ns: int | None = None

    def wait(self, quiet_s: float | None, limit_s: float | None) -> int:
        """Until the end of the job, or of what was wanted of it."""
        heard, any_heard, shown, silent_s = Heard(self._folder), False, 0.0, 0.0
        while not self._over(_TICK_S):
            if self._start is None:
                if not traces(self._folder):
                    continue
                self._start = time.monotonic()
            passed = time.monotonic() - self._start
            if passed - shown >= 0.5:
                shown = passed
                self._progress(passed, sum(traces(self._folder).values()))
            if quiet_s is not None:
                more = heard.more()
                any_heard = any_heard or more
                silent_s = 0.0 if more else silent_s + _TICK_S  # a still machine counts once
                if any_heard and silent_s > quiet_s:
                    return self.end()
            if limit_s is not None and passed > limit_s:
                return self.end()
        return self._child.returncode

    def _over(self, wait_s: float) -> bool:
        try:
            self._child.wait(timeout=wait_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> int:
        """Let nothing of it run on. Returns its status."""
        for signum in (signal.SIGTERM, signal.SIGKILL):
            if self._child.poll() is not None:
                break
            self.ended_ns = self.ended_ns or time.time_ns()
            self._child.send_signal(signum)
            self._over(self._leave_s)
        return self._child.wait()


def _settle(folder: str) -> None:
    """Wait for the last lines of programs that were killed: their tracers write them afterwards."""
    until = time.monotonic() + _SETTLE_S
    while not all(map(_is_whole, traces(folder))) and time.monotonic() < until:
        time.sleep(0.02)


def _is_whole(path: str) -> bool:
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - len(_END)))
        return file.read() == _END
