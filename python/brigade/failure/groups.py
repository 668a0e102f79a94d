"""What our control group, and those above it, limit us to. Both versions of control groups."""

from __future__ import annotations

import os


def limits(controller: str, name: str, old_name: str) -> list[int]:
    """All limits of a controller that are in force, from our group up; `unlimited` is none. `name`:
    its file, `old_name`: in version 1."""
    found: list[int] = []
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as text:
            lines = [line.rstrip("\n").split(":", 2) for line in text]
    except OSError:
        return found
    for _, controllers, path in lines:
        if controllers and controller not in controllers.split(","):
            continue
        base = f"/sys/fs/cgroup/{controller}" if controllers else "/sys/fs/cgroup"
        while True:
            found += _number(f"{base}{path.rstrip('/')}/{old_name if controllers else name}")
            if path in ("/", ""):
                break
            path = os.path.dirname(path)
    return found


def _number(path: str) -> list[int]:
    try:
        with open(path, encoding="ascii") as text:
            return [int(text.read())]
    except (OSError, ValueError):  # "max"
        return []
