"""Runs that nobody looks at or types to: commands of ours, and what is started meanwhile, with
other streams than this process's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from brigade import interrupt

LEAVE_S = 20.0  # what a run of ours gets to end in order


def aside(
    command: list[str],
    wait: Callable[[subprocess.Popen[bytes]], int] = subprocess.Popen.wait,
) -> int:
    """Run a command that sees no input and whose output is thrown away; its status, as `wait` gives
    it."""
    with muted():
        child = subprocess.Popen(command)
    with stopped_with_us(child):
        return wait(child)


@contextmanager
def stopped_with_us(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """A signal that stops us meanwhile is passed on, and the command given time to take away what
    it made."""
    try:
        with interrupt.promptly():
            yield
    except interrupt.Interrupted:
        child.terminate()
        try:
            child.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            child.kill()
        raise


@contextmanager
def muted() -> Iterator[None]:
    """What is started meanwhile has no input, and its output is thrown away."""
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        with redirected(dict.fromkeys(range(3), nothing)):
            yield
    finally:
        os.close(nothing)


@contextmanager
def redirected(targets: dict[int, int]) -> Iterator[None]:
    """Descriptors of this process, and of what is started meanwhile, are others."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {number: os.dup(number) for number in targets}
    try:
        for number, target in targets.items():
            os.dup2(target, number)
        yield
    finally:
        for number, own in kept.items():
            os.dup2(own, number)
            os.close(own)
