"""Run one of our own steps under the user's launcher: its JSON lines, its progress, its silence.

A launcher can hang where no program of ours runs yet (a node that does not answer, an MPI that
does not come up). A step from which nothing is heard for PATIENCE_S seconds is therefore ended:
the job is worth more than its image.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from brigade.errors import StageError

PATIENCE_S = 60.0
_GRACE_S = 5.0
_PROGRESS = re.compile(r"^(?:\d+: )?(\d+) (\d+)$")  # srun --label puts "N: " in front


def run_step(
    command: list[str], progress: Callable[[int, int], None], patience_s: float = PATIENCE_S
) -> tuple[list[dict[str, Any]], str, int]:
    """Run `command`; returns its JSON lines, what else it said, and its status.

    Raises StageError if it cannot be started, or if it was silent for `patience_s` seconds.
    """
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    except OSError as error:
        raise StageError(f"cannot start {command[0]}: {error.strerror}") from error
    step = _Step(child, progress)
    try:
        step.wait(patience_s)
    except BaseException:
        step.end()
        raise
    if step.gave_up:
        raise StageError(
            f"{command[0]} was silent for {patience_s:.0f} s and was ended",
            hint="; ".join(step.said),
        )
    return step.results, "; ".join(step.said), child.returncode


class _Step:
    """A step that runs, with a thread for each of its streams."""

    def __init__(self, child: subprocess.Popen[str], progress: Callable[[int, int], None]) -> None:
        assert child.stdout and child.stderr
        self.child = child
        self.results: list[dict[str, Any]] = []
        self.said: list[str] = []
        self.gave_up = False
        self._progress = progress
        self._heard = time.monotonic()
        self._threads = [
            threading.Thread(target=self._listen, args=(stream,), daemon=True)
            for stream in (child.stdout, child.stderr)
        ]
        for thread in self._threads:
            thread.start()

    def wait(self, patience_s: float) -> None:
        """Until the step has ended, or has been silent for too long."""
        while True:
            try:
                self.child.wait(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() - self._heard > patience_s:
                    self.gave_up = True
                    self.end()
                    break
        for thread in self._threads:
            thread.join(timeout=_GRACE_S)  # a stray child may hold the stream open

    def end(self) -> None:
        """Tell the launcher to end, and after a while make it."""
        self.child.terminate()
        try:
            self.child.wait(timeout=_GRACE_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def _listen(self, stream: IO[str]) -> None:
        for line in stream:
            self._heard = time.monotonic()
            match = _PROGRESS.match(line)
            if match:
                self._progress(int(match.group(1)), int(match.group(2)))
                continue
            brace = line.find("{")
            try:
                self.results.append(json.loads(line[brace:] if brace >= 0 else ""))
            except ValueError:
                if line.strip():
                    self.said.append(line.strip())
