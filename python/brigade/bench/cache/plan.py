"""What the study does, as steps. Pure.

Sizes follow from the rates that were calibrated, so that a slow device takes a minute, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from brigade.model.cache.workload import Step

PATTERNS = {
    "back": "one write after another",
    "sleep": "a sleep between bursts",
    "fsync": "a timed fsync between bursts",
    "direct": "O_DIRECT",
}
MIB = 1 << 20
LEAST, MOST = 32 * MIB, 128 * MIB  # of the memory that it limits itself to
_CALL = 2 * MIB  # of calibration
_BEYOND = 1.5  # a write that shall meet the limit is so many times the memory
_SHARE = 0.25  # of the memory, that is read twice and then stands against a write of more


@dataclass(frozen=True)
class Rates:
    """What a device does by itself, in bytes a second; seconds of a call of 4 KiB."""

    write: float
    read: float


@dataclass(frozen=True)
class Sizes:
    memory: int
    series: int  # bytes of a series that shall meet the limit
    short: int  # of one that needs not
    burst: int


def calibration(direct: bool, seconds: float = 1.0) -> list[Step]:
    """Steps that tell what device and memory do by themselves; files of their own, no limit."""
    call: dict[str, Any] = {"size": _CALL, "limit": seconds, "direct": direct}
    small: dict[str, Any] = {
        "size": 4096,
        "bytes": 16 * MIB,
        "limit": seconds / 3,
        "direct": direct,
    }
    cached: dict[str, Any] = {"bytes": 16 * MIB, "file": "memory"}
    wait = 0 if direct else 1  # for fsync, where it cannot be had directly
    steps = [  # small calls first: large ones leave a limited device busy for a while
        Step("write", "small", label="call write", fsync=wait * 4096, **small),
        Step("drop", "small"),
        Step("read", "small", label="call read", **small),
        Step("remove", "small"),
        Step("write", "device", 1 << 30, fsync=wait * 8 * _CALL, label="device write", **call),
        Step("drop", "device"),
        Step("read", "device", 1 << 34, label="device read", **call),
        Step("remove", "device"),
    ]  # fmt: skip
    for size, name in ((MIB, "large"), (4096, "small")):
        steps += [
            Step("write", size=size, label=f"memory write {name}", **cached),
            Step("read", size=size, label=f"memory read {name}", **cached),
            Step("fsync", "memory"),
            Step("remove", "memory"),
        ]
    return steps


def sizes(rates: Rates, seconds: float, series: int, memory: int | None = None) -> Sizes:
    """How much is written so that about `seconds` pass; `series`: how many write sizes there are.

    Of the time a third goes to each of: back-to-back series, shorter ones, and what stays cached.
    """
    if memory is None:
        # what stays: 2 x written and read, 1.5 x and a share written, the share read
        each = (2 + _BEYOND + _SHARE) / rates.write + 3 / rates.read
        whole = seconds / 3 / max(each, series * _BEYOND / rates.write)
        memory = min(MOST, max(LEAST, int(whole) // MIB * MIB))
    short = int(seconds / 3 / max(1, 3 * series) * rates.write)
    short = min(memory // 2, max(8 * MIB, short // MIB * MIB))
    return Sizes(memory, int(memory * _BEYOND), short, max(MIB, short // 8))


def study(
    made: Sizes, write_sizes: Sequence[int], patterns: Sequence[str], sleep: float, limit: float
) -> list[Step]:
    """All steps: each pattern with each size of writes, then what stays cached."""
    steps: list[Step] = []
    for pattern in patterns:
        for size in write_sizes:
            steps += _series(made, pattern, size, sleep, limit)
    return steps + stays(made)


def _series(made: Sizes, pattern: str, size: int, sleep: float, limit: float) -> list[Step]:
    name = f"{pattern}-{size}"
    whole = made.series if pattern == "back" else made.short
    step = Step(
        "write",
        name,
        max(size, whole // size * size),
        size,
        every=max(size, made.burst) if pattern == "sleep" else 0,
        sleep=sleep if pattern == "sleep" else 0.0,
        fsync=max(size, made.burst) if pattern == "fsync" else 0,
        direct=pattern == "direct",
        limit=limit if pattern == "direct" else 0.0,
        label=name,
    )
    return [step, Step("fsync", name, label=f"{name} fsync"), Step("remove", name)]


def stays(made: Sizes) -> list[Step]:
    """A file of twice the memory, written and read; then a small one that is read twice, and
    another write of more than the memory: is the small one still there?"""
    large, share = 2 * made.memory, int(made.memory * _SHARE) // MIB * MIB
    return [
        Step("write", "large", large, label="large write"),
        Step("look", "large", label="large after write"),
        Step("probe", "large", count=128, label="large pages"),
        Step("fsync", "large", label="large fsync"),
        Step("read", "large", large, label="large read"),
        Step("look", "large", label="large after read"),
        Step("remove", "large"),
        Step("write", "twice", share, label="small write"),
        Step("fsync", "twice", label="small fsync"),
        Step("drop", "twice"),
        Step("read", "twice", share, label="small read"),
        Step("read", "twice", share, label="small read again"),
        Step("write", "other", made.series // MIB * MIB, label="other write"),
        Step("look", "twice", label="small after other"),
        Step("look", "other", label="other after write"),
        Step("fsync", "other", label="other fsync"),
        Step("read", "twice", share, label="small read at last"),
        Step("remove", "twice"),
        Step("remove", "other"),
    ]
