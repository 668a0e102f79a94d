"""Run one of our own steps under the user's launcher: its JSON lines, its progress, its silence.

A launcher can hang where no program of ours runs yet, a node can go while one does. A step from
which nothing is heard, or no longer from each of its nodes, is therefore ended: the job is worth
more than its image. So is a step that one process of which has failed, or that nobody wants any
more; its processes are told to take away what they made (`brigade.job.child`).
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from brigade import interrupt
from brigade.errors import LostNodeError, StageError
from brigade.job import child as launcher
from brigade.job.pulse import Pulses, patience
from brigade.launch.base import step_environment

PULSE = ["--pulse", "1"]  # for the command line of `brigade-stage`
_TICK_S = 0.1
_HEAD, _TAIL = 400, 400  # characters of what was said that an error message has
_SETTLE_S = 1.0  # from the first word of a failure to that of the processes that end by themselves
_STREAMS_S = 2.0
_ENDED_STREAMS_S = 0.25
_PROGRESS = re.compile(r"^(?:\d+: )?(\d+) (\d+)$")  # srun --label puts "N: " in front


def short(said: str) -> str:
    """What a step said, for one error message: causes stand at its head, consequences last."""
    if len(said) > _HEAD + _TAIL:
        said = f"{said[:_HEAD].rstrip()} […] {said[-_TAIL:].lstrip()}"
    return said or "nothing"


def run_step(
    command: list[str],
    progress: Callable[[int, int], None],
    patience_s: float | None = None,
    *,
    counted: bool = True,
    stoppable: bool = True,
) -> tuple[list[dict[str, Any]], str, int]:
    """Run `command`; returns its JSON lines, what else it said, and its status.

    Raises StageError if it cannot be started or was silent for too long, LostNodeError if only some
    of its processes were, or did not start. `counted`: its processes know how many they are. If it
    is `stoppable`, it is ended by a signal that `brigade.interrupt` has noted.
    """
    return begin_step(command, progress, patience_s, counted=counted).finish(stoppable)


def begin_step(
    command: list[str],
    progress: Callable[[int, int], None],
    patience_s: float | None = None,
    *,
    counted: bool = True,
    told: bool = False,
) -> Step:
    """Start `command`, as `run_step`; whoever has it must `finish` it, or `end` it. If it is to be
    `told` anything, it has input."""
    name = command[0]
    if not shutil.which(name):
        raise StageError(f"cannot start {name}: No such file or directory")
    try:
        child = launcher.start(
            command,
            launcher.GIVE_UP,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            told=told,
            env=step_environment(),
        )
    except OSError as error:
        raise StageError(f"cannot start {name}: {error.strerror}") from error
    return Step(name, child, progress, Pulses(patience_s or patience(None), counted))


class Step:
    """A step that runs, with a thread for each of its streams."""

    def __init__(
        self,
        name: str,
        child: subprocess.Popen[str],
        progress: Callable[[int, int], None],
        pulses: Pulses,
    ) -> None:
        assert child.stdout and child.stderr
        self.name = name
        self.child = child
        self.results: list[dict[str, Any]] = []
        self.said: list[str] = []
        self._was_ended = False
        self._progress = progress
        self._pulses = pulses
        self._lock = threading.Lock()  # guards all of the above
        self._threads = [
            threading.Thread(target=self._listen, args=(stream,), daemon=True)
            for stream in (child.stdout, child.stderr)
        ]
        for thread in self._threads:
            thread.start()

    def tell(self, word: str) -> None:
        """Write to its input, and end that. A step that has ended meanwhile says so by itself."""
        assert self.child.stdin
        with suppress(OSError):
            self.child.stdin.write(word)
        with suppress(OSError):
            self.child.stdin.close()

    def finish(self, stoppable: bool = True) -> tuple[list[dict[str, Any]], str, int]:
        """Wait for its end; returns and raises what `run_step` does."""
        try:
            why = self.wait(stoppable)
        except BaseException:
            self.end()
            raise
        said = "; ".join(self.said)
        if why:
            kind = LostNodeError if self.had_begun else StageError
            raise kind(f"{self.name} was ended: {why}", hint=said or None)
        return self.results, said, self.child.returncode

    def wait(self, stoppable: bool) -> str | None:
        """Until the step has ended; returns why it was ended, if it was not by itself."""
        why, failed_s, before = None, 0.0, time.monotonic()
        while why is None:
            if _ends(self.child, _TICK_S):
                break
            if stoppable and interrupt.noted():
                self.end()
                break
            now = time.monotonic()
            passed, before = min(now - before, 2 * _TICK_S), now
            with self._lock:
                why = self._pulses.tick(passed)
                failed = any(result.get("ok") is False for result in self.results)
            failed_s += passed if failed else 0.0
            if why or failed_s > _SETTLE_S:
                self.end()
                break
        self._drain()
        return why

    def end(self) -> None:
        """End the step; its processes first undo what they did, if any has started."""
        with self._lock:
            undo = self._pulses.any_live
        launcher.end(self.child, undo=undo, settled=self._settled)
        self._was_ended = True

    @property
    def had_begun(self) -> bool:
        """Whether any of its processes was ever heard of."""
        with self._lock:
            return self._pulses.any_started

    def _settled(self) -> bool:
        with self._lock:
            return not self._pulses.any_heard

    def _drain(self) -> None:
        """Hear the rest. What a launcher has left of itself may hold the streams open for long."""
        limit_s = _ENDED_STREAMS_S if self._was_ended else _STREAMS_S
        for thread in self._threads:
            thread.join(timeout=limit_s)

    def _listen(self, stream: IO[str]) -> None:
        with stream:  # Python warns of one that nobody closes where the user has it warn
            for line in stream:
                with self._lock:
                    self._hear(line)

    def _hear(self, line: str) -> None:
        if self._pulses.hear(line):
            return
        match = _PROGRESS.match(line)
        if match:
            self._progress(int(match.group(1)), int(match.group(2)))
            return
        brace = line.find("{")
        try:
            self.results.append(json.loads(line[brace:] if brace >= 0 else ""))
        except ValueError:
            if line.strip():
                self.said.append(line.strip())


def _ends(child: subprocess.Popen[str], limit_s: float) -> bool:
    """Whether `child` ends within that time. The kernel wakes us: Popen's own wait looks from time
    to time, and the job would wait for its next look."""
    try:
        end = os.pidfd_open(child.pid)
    except (AttributeError, OSError):  # a kernel, or a C library, older than the call
        try:
            child.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return False
        return True
    try:
        poll = select.poll()
        poll.register(end, select.POLLIN)
        poll.poll(limit_s * 1000)
    finally:
        os.close(end)
    return child.poll() is not None
