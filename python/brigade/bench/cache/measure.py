"""Does steps for real: the program of drivers/cache.c, and beside it the state of the memory."""

from __future__ import annotations

import json
import mmap
import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Optional

from brigade.bench.cache.memory import Room
from brigade.bench.checkpoint.program import compiled
from brigade.errors import BrigadeError, UsageError
from brigade.model.cache.workload import MOVES, Step

SOURCE = Path(__file__).parents[1] / "drivers/cache.c"
SAMPLES = 1024  # of a step; of more calls, several in a row share one
_EVERY_S = 0.05  # between two looks at the memory
Progress = Optional[Callable[[int, int], None]]


def program(base: Path) -> Path:
    """The compiled program, below `base`."""
    words = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if not shutil.which(words[0]):
        raise UsageError(
            f"{words[0]}: there is no such C compiler",
            hint="the benchmark compiles a small program: load a compiler's module, or set CC",
        )
    return compiled(base, "cache", [*words, "-O2", "-w", str(SOURCE)], [SOURCE])


def takes_direct(folder: Path) -> bool:
    """Whether files there can be written with O_DIRECT."""
    path = folder / "direct"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
    except OSError:
        return False
    try:
        with mmap.mmap(-1, mmap.PAGESIZE) as page:
            return os.write(fd, page) == mmap.PAGESIZE
    except OSError:
        return False
    finally:
        os.close(fd)
        path.unlink()


def line(step: Step) -> str:
    """A step as the program reads it."""
    numbers = (
        step.bytes, step.size, step.at, step.every, round(step.sleep * 1e9), step.fsync,
        int(step.direct), round(step.limit * 1e9), step.count,
    )  # fmt: skip
    return " ".join(map(str, (step.operation, step.file, *numbers)))


def run(
    made: Path, steps: Sequence[Step], folder: Path, room: Room, progress: Progress = None
) -> list[dict[str, Any]]:
    """What came of each step, in their order; BrigadeError if one failed."""
    if any(step.client for step in steps) or any(step.operation == "file" for step in steps):
        raise UsageError("the study has one client, which writes its own files")
    largest = max([1 << 20, *(step.size for step in steps if step.operation in MOVES)])
    command = [str(made), str(SAMPLES), str(largest), *([room.procs] if room.procs else [])]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=folder, text=True,
    )  # fmt: skip
    watch = _Watch(room)
    found = []
    try:
        assert child.stdin and child.stdout and child.stderr
        for number, step in enumerate(steps):
            try:
                child.stdin.write(line(step) + "\n")
                child.stdin.flush()
            except BrokenPipeError:
                pass  # why, its last words say
            answer = child.stdout.readline()
            if not answer.endswith("}\n"):
                raise BrigadeError(_why(child, step))
            found.append(result(step, json.loads(answer), watch.taken()))
            if progress:
                progress(number + 1, len(steps))
        child.stdin.close()
        child.wait()
        return found
    finally:
        watch.stop()
        if child.poll() is None:
            child.kill()
        child.wait()


def _why(child: subprocess.Popen[str], step: Step) -> str:
    assert child.stderr
    status = child.wait()
    said = child.stderr.read().strip()
    if status == -signal.SIGKILL:
        said = "killed: its memory is too small (a larger --memory?)"
    return f"{step.name}: {said or f'the program ended with status {status}'}"


def result(step: Step, said: dict[str, Any], state: list[list[float]]) -> dict[str, Any]:
    """A step's answer in seconds and bytes. `state`: [time, dirty, writeback, cached] meanwhile."""
    begin = said["begin_ns"] / 1e9
    found: dict[str, Any] = {"name": step.name, "operation": step.operation, "file": step.file}
    if "ns" in said:
        found["seconds"] = said["ns"] / 1e9
    if "bytes" in said:
        found["bytes"] = said["bytes"]
    if "close_ns" in said:
        found["close_s"] = said["close_ns"] / 1e9
    if "refused" in said:
        found["refused"] = said["refused"]
    for name in ("samples", "fsyncs"):
        if name in said:
            found[name] = [
                [round(b / 1e9, 7), round(s / 1e9, 9), calls, round(most / 1e9, 9)]
                for b, s, calls, most in said[name]
            ]
    for name in ("pages", "parts", "cachestat"):
        if name in said:
            found[name] = said[name]
    if step.operation in MOVES:
        found["size"] = step.size
        found["state"] = [[round(at - begin, 3), *rest] for at, *rest in state]
    return found


class _Watch:
    """Looks at the memory every now and then, from a thread."""

    def __init__(self, room: Room) -> None:
        self._room, self._seen = room, list[list[float]]()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._end.wait(_EVERY_S):
            self._seen.append([time.monotonic(), *self._room.state()])

    def taken(self) -> list[list[float]]:
        """What was seen since the last call."""
        seen, self._seen = self._seen, []
        return seen

    def stop(self) -> None:
        self._end.set()
        self._thread.join()
