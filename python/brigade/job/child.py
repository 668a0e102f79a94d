"""Start a launcher for a step of our own, and end it so that its processes can clean up.

The step has a process group of its own: a terminal's Ctrl-C reaches us alone, and we end it in
order. If we are killed, the kernel tells the launcher (`GIVE_UP`), and it its processes.

GIVE_UP is SIGUSR1, because that is what launchers pass on: srun turns SIGTERM into SIGKILL for its
tasks at once, mpirun after a second.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

GIVE_UP = signal.SIGUSR1
_UNDO_S = 2.5  # what `brigade-stage` needs at most after GIVE_UP, and what a launcher adds
_LEAVE_S = 1.0
_LOOK_S = 0.05
_PR_SET_PDEATHSIG = 1


def start(
    command: list[str],
    on_our_death: signal.Signals,
    *,
    stdout: int | IO[Any],
    stderr: int | IO[Any],
    text: bool = False,
    told: bool = False,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[Any]:
    """Start `command`, with input if it is to be `told` anything. Raises OSError if it is not
    there. `env`: its environment, if not ours."""
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE if told else subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=text,
        errors="replace" if text else None,  # what a launcher says may be in any encoding
        env=env,
        start_new_session=True,
        preexec_fn=_leash(on_our_death),
    )


def end(
    child: subprocess.Popen[Any], *, undo: bool, settled: Callable[[], bool] = lambda: False
) -> None:
    """End the step: with `undo` its processes are first asked to take away what they made, and
    waited for; no longer when they have `settled` that."""
    steps = [(signal.SIGTERM, _LEAVE_S), (signal.SIGKILL, None)]
    if undo and _gives_up(child, settled):
        _to_group(child, signal.SIGTERM)  # what the launcher has left of itself
        return
    for signum, wait_s in steps:
        if _is_over(child, signum, wait_s, lambda number: _to_group(child, number)):
            break
    _to_group(child, signal.SIGKILL)


def _gives_up(child: subprocess.Popen[Any], settled: Callable[[], bool]) -> bool:
    """Whether the launcher ended when it was told, which it may put off."""
    until = time.monotonic() + _UNDO_S
    if child.poll() is None:
        child.send_signal(GIVE_UP)
    while child.poll() is None and time.monotonic() < until and not settled():
        time.sleep(_LOOK_S)
    return child.poll() is not None


def _is_over(
    child: subprocess.Popen[Any],
    signum: signal.Signals,
    wait_s: float | None,
    send: Callable[[signal.Signals], None],
) -> bool:
    if child.poll() is None:
        send(signum)
    try:
        child.wait(timeout=wait_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _to_group(child: subprocess.Popen[Any], signum: signal.Signals) -> None:
    try:
        os.killpg(child.pid, signum)
    except (ProcessLookupError, PermissionError):
        pass


def _leash(signum: signal.Signals) -> Callable[[], None]:
    """For the new process, before it becomes the launcher: our death is its signal."""
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def leash() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return leash
