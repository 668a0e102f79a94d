"""Making a lab cold: neither a client nor the kernel remembers the shared file system."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from brigade.errors import LabError
from brigade.lab import namespaces, nodes
from brigade.lab.plan import SHARED, LabPlan

_DROP = Path("/proc/sys/vm/drop_caches")


def drop(plan: LabPlan, mount: Callable[[LabPlan, str], None]) -> None:
    """Mount the clients anew, and drop the kernel's caches of the whole machine.

    A new client is the only one that is surely cold: MooseFS' keeps attributes, directories,
    symbolic links and data by itself. Counters go on. LabError if a node still uses
    the file system.
    """
    for node in plan.nodes:
        if _is_mounted(plan, node):  # or this was ended before it was mounted anew
            _unmount(plan, node)
        mount(plan, node)
    os.sync()
    _DROP.write_text("3\n")


def _is_mounted(plan: LabPlan, node: str) -> bool:
    holder = (plan.state / "pid" / node).read_text().strip()
    with open(f"/proc/{holder}/mountinfo") as table:
        return any(line.split()[4] == SHARED for line in table)


def _unmount(plan: LabPlan, node: str) -> None:
    try:
        nodes.run_in(plan, node, ["umount", SHARED], "umount")
    except LabError as error:
        users = ", ".join(_users(plan, node))
        if users:
            raise LabError(
                f"node {node} still uses {SHARED}: {users}",
                hint="caches can be dropped when these processes have ended or moved elsewhere",
            ) from None
        raise error


def _users(plan: LabPlan, node: str) -> list[str]:
    """The processes on a node that run from, are in, have open or map the shared file system."""
    found = []
    for pid in sorted(namespaces.processes([plan.pins(node)])):
        if any(_is_shared(link) for link in _links(pid)):
            found.append(f"{pid} ({namespaces.command_name(pid)})")
    return found


def _is_shared(path: str) -> bool:
    return path == SHARED or path.startswith(SHARED + "/")


def _links(pid: int) -> list[str]:
    base = Path(f"/proc/{pid}")
    links = [base / "cwd", base / "exe"]
    found = []
    try:
        links += list((base / "fd").iterdir())
        found += [line.split(None, 5)[-1].strip() for line in open(base / "maps")]
        found += [os.readlink(link) for link in links]
    except OSError:
        pass  # it ended meanwhile
    return found
