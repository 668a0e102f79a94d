"""Taking a lab down: nothing may stay, whatever state it was in."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from brigade.errors import LabError
from brigade.lab import namespaces, state
from brigade.lab.plan import LabPlan, state_folder


def clear(name: str) -> bool:
    """Remove all of lab `name`; True if there was anything. The caller holds its lock.

    Order matters: processes are recognised by pinned namespaces, so pins go after the processes;
    files are only removed once no mount is left below them.
    """
    folder = state_folder(name)
    if not folder.exists():  # a restart of the machine leaves the data, which lies on its disk
        return _remove_data(LabPlan(name))
    state.require_outside(name)
    plan = state.load(name) or LabPlan(name)
    pins = folder / "ns"
    members = sorted(pins.iterdir()) if pins.is_dir() else []
    stubborn = namespaces.kill_all(members)
    if stubborn:
        who = ", ".join(f"{pid} ({namespaces.command_name(pid)})" for pid in stubborn)
        raise LabError(f"processes of lab '{name}' do not end: {who}", hint="try again")
    namespaces.unpin_all(folder)
    _remove(folder, plan)
    return True


def _remove(folder: Path, plan: LabPlan) -> None:
    left = namespaces.mounts_below(folder)
    if left:
        raise LabError(
            f"mounts are left: {', '.join(left)}", hint="unmount them, then go down again"
        )
    _remove_data(plan)
    shutil.rmtree(folder)


def _remove_data(plan: LabPlan) -> bool:
    """Remove the data if it is a lab's: anybody may make a folder of that name where it lies."""
    try:
        found = plan.data.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return False
    shutil.rmtree(plan.data)
    return True
