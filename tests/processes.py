"""Processes that a test watches: what /proc says of them, and waiting until something is so."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T]) -> T:
    """What `condition` gives once it is something; the test fails after a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("it did not come to that")


def field(pid: int, name: str) -> str:
    """A line of a process's status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(name + ":"))
