"""Start a world under a launcher, and gather what its ranks say.

Each rank prints one line that starts with MARK; everything else that the job prints is passed on to
standard error. The phases of a rank are measured by its own monotonic clock; `launch`, from the
start of the command to main, needs clocks of nodes that agree.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

from brigade.bench import build
from brigade.bench.drivers.pynamic import MARK
from brigade.errors import BrigadeError, LauncherError
from brigade.report.summary import spread

PATIENCE_S = 10.0  # for a launcher that is asked to end
PHASES = {"pynamic": ("startup", "import", "visit"), "cload": ("startup", "load", "visit")}


def program(folder: Path, python: str) -> list[str]:
    """What the launcher is to start."""
    cload = folder / "bin/cload"
    return [str(cload)] if cload.exists() else [python, str(folder / "pynamic.py")]


def run(folder: Path, launcher: list[str], ranks: int | None, python: str) -> dict[str, Any]:
    """Run the world once; returns the report. BrigadeError if a rank is wrong, or none was heard;
    how many there should be only the launcher knows."""
    command = [*launcher, *program(folder, python)]
    if not launcher:
        from brigade.launch.local import LocalLaunch

        command = LocalLaunch(command, ranks or 1).job([])
    begin = time.time()
    said: list[dict[str, Any]] = []
    status = gather(command, said.append)
    seconds = time.time() - begin
    if status:
        raise BrigadeError(f"{command[0]} ended with status {status}")
    if not said:
        raise BrigadeError(
            f"{command[0]} ended well, but no rank has said anything",
            hint="its standard output must come back: `srun --output=FILE` keeps it away",
        )
    return summarize(build.read(folder), folder, command, said, begin, seconds)


def gather(
    command: list[str],
    heard: Callable[[dict[str, Any]], None],
    environment: dict[str, str] | None = None,
) -> int:
    """The exit status of a command, after heard(what a rank says) as it comes; what `heard` raises
    ends the command, and so does a signal that is raised. `environment` is added to this process's.
    Ctrl-C reaches the command through the terminal."""
    try:
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, **(environment or {})},
        )
    except OSError as error:
        raise LauncherError(f"{command[0]}: {error.strerror}") from error
    assert child.stdout
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for line in child.stdout:
            _, mark, text = line.partition(MARK)  # a launcher may write a rank's number before it
            try:
                said = json.loads(text) if mark else None
            except ValueError:
                said = None
            if said is None:
                sys.stderr.write(line)
            else:
                heard(said)
        return child.wait()
    except BaseException:
        end(child)
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def end(child: subprocess.Popen[str]) -> None:
    """Ask a launcher to end its ranks, and wait until it has; one that does not is killed."""
    child.terminate()
    try:
        child.communicate(timeout=PATIENCE_S)  # reads on: it may have to say something first
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def summarize(
    world: dict[str, Any],
    folder: Path,
    command: list[str],
    said: list[dict[str, Any]],
    begin: float,
    seconds: float,
) -> dict[str, Any]:
    """The report of one run; BrigadeError if a rank did not visit what was planned."""
    wrong = sorted(one["rank"] for one in said if one["checksum"] != world["checksum"])
    if wrong:
        raise BrigadeError(
            f"rank {wrong[0]}"
            + (f" and {len(wrong) - 1} more" if len(wrong) > 1 else "")
            + f" did not visit what was planned (checksum {world['checksum']})",
            hint=f"the world may be damaged: remove {folder}, and it is made again",
        )
    kind = world["settings"]["kind"]
    launch = [one["main_ns"] / 1e9 - begin for one in said]
    phases = {phase: spread([one[phase] for one in said]) for phase in PHASES[kind]}
    return {
        "benchmark": kind,
        "world": str(folder),
        "settings": world["settings"],
        "objects": world["objects"],
        "bytes": world["bytes"],
        "calls": world["calls"],
        "checksum": world["checksum"],
        "command": command,
        "hosts": len({one["host"] for one in said}),
        "seconds": seconds,
        "phases": {"launch": spread(launch), **phases},
        "ranks": sorted(said, key=lambda one: int(one["rank"])),
    }
