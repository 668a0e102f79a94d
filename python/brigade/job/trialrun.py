"""Start the trial: the user's program at a small width, recorded.

The trial ends when the program ends, or when its start-up is over: no process recorded a new
look-up for `quiet_s` seconds; it is then told to stop (SIGTERM, later SIGKILL). What was recorded
until then is kept, because recorders write through to their files.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from brigade import interrupt
from brigade.errors import TrialError
from brigade.job import child as launcher
from brigade.job.pulse import patience
from brigade.launch import Launch, environment
from brigade.paths import native
from brigade.trial.record import load, note_end


@dataclass(frozen=True)
class TrialRun:
    """How a trial ended."""

    seconds: float
    ended: str  # "exit", "quiet", "limit" or "never" (its launcher started nothing)
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
    fork: bool = False,
) -> TrialRun:
    """Record `launch`'s program with `ranks` ranks into `folder` (empty and nobody else's;
    visible from all nodes); `fork`: with what modules do, too, for a plan of ranks that are forked.

    `progress(seconds, bytes_recorded)` is called about twice a second. Raises TrialError if
    nothing was recorded.
    """
    log = os.path.join(folder, "output.log")
    wrapper = [str(native("brigade-rank")), "--record", folder, "--python-view", python_view()]
    if fork:
        wrapper += ["--watch", secrets.token_hex(8)]
    command = launch.trial(ranks, launch.guarded(wrapper))
    start = time.monotonic()
    with open(log, "wb") as output:
        try:
            child = launcher.start(
                command, signal.SIGTERM, stdout=output, stderr=subprocess.STDOUT, env=environment()
            )
        except OSError as error:
            raise TrialError(f"cannot start {command[0]}: {error.strerror}") from error
        try:
            with interrupt.promptly():
                watch = _Watch(child, folder, log, patience(ranks))
                ended = watch.wait(quiet_s, limit_s, progress)
        finally:
            launcher.end(child, undo=False)
    note_end(folder)
    if ended == "never":
        raise TrialError(
            f"{command[0]} has started nothing for {watch.patience_s:.0f} s, and was ended",
            hint="BRIGADE_PATIENCE=SECONDS gives it longer",
        )
    if not recorded_bytes(folder):
        tail = "\n    ".join(tail_of(log))
        raise TrialError(
            f"the trial recorded nothing (exit status {child.returncode}); it said:\n    {tail}",
            hint="does it start without Brigade? `brigade run --view none -- …` starts it so",
        )
    if child.returncode and load(folder).misses_program:
        missing = launch.program[0] if len(launch.programs) == 1 else "one of the programs"
        raise TrialError(
            f"the trial did not find {missing} in PATH",
            hint="a launcher may look elsewhere; a path finds it everywhere",
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


class _Watch:
    """A trial that runs."""

    def __init__(
        self, child: subprocess.Popen[bytes], folder: str, log: str, patience_s: float
    ) -> None:
        self.patience_s = patience_s
        self._child = child
        self._folder = folder
        self._log = log
        self._start = time.monotonic()

    def wait(self, quiet_s: float, limit_s: float, progress: Callable[[float, int], None]) -> str:
        """Until the end of the program or of its start-up; returns which."""
        size, grown, silent_s = 0, self._start, 0.0
        while True:
            tick_s = 0.1 if time.monotonic() - self._start < 2 else 0.5
            try:
                self._child.wait(timeout=tick_s)
                return "exit"
            except subprocess.TimeoutExpired:
                pass
            now = time.monotonic()
            recorded = recorded_bytes(self._folder)
            if recorded != size:
                size, grown = recorded, now
            progress(now - self._start, size)
            silent_s += tick_s  # a machine that stood still counts once
            if not size and silent_s > self.patience_s and not os.path.getsize(self._log):
                return "never"
            if size and now - grown > quiet_s:
                return "quiet"
            if now - self._start > limit_s:
                return "limit"
