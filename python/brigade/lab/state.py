"""The state folder of a lab: what was asked for, how far it came, and who may change it now.

/run/brigade-lab/NAME.lock     held while a lab is brought up or taken down
/run/brigade-lab/NAME/
    plan.json                  the plan; written first
    ready                      written last: everything came up
    ns/MEMBER/{net,uts,ipc,mnt} pinned namespaces
    pid/MEMBER                 holder process of each member
    counters/NODE              pages that the file-system clients count in
    baseline.json              what the counters were at the last reset
    etc/ log/ munge/ slurmctld/ slurmd/
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from brigade.errors import LabError
from brigade.lab.plan import INSIDE, STATE_ROOT, FileSystem, LabPlan, state_folder


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the right to change lab `name`; waits while another process has it."""
    path = state_folder(name).with_suffix(".lock")
    require_root()
    while True:
        try:
            STATE_ROOT.mkdir(exist_ok=True)
            STATE_ROOT.chmod(0o755)  # of whoever takes a lab down, the umask may be another
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # the last lab went away, and the folder with it, in between
        with open(handle) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_still(path, lock.fileno()):
                continue  # its last holder removed it while we waited
            try:
                yield
            finally:
                path.unlink()
                with suppress(OSError):  # other labs are there
                    STATE_ROOT.rmdir()
            return


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def save(plan: LabPlan) -> None:
    """Write the plan into its (existing) state folder, at once or not at all."""
    values = asdict(plan)
    values["data_root"] = str(plan.data_root)
    write_whole(plan.state / "plan.json", json.dumps(values, indent=1) + "\n")


def load(name: str) -> LabPlan | None:
    """The plan of lab `name`, or None if there is none (or none that was written)."""
    try:
        values = json.loads((state_folder(name) / "plan.json").read_text())
    except FileNotFoundError:
        return None
    values["fs"] = FileSystem(**values["fs"])
    values["data_root"] = Path(values["data_root"])
    values["binds"] = tuple(values["binds"])
    return LabPlan(**values)


def find(name: str) -> LabPlan:
    """The plan of a lab that is up; LabError if there is no such lab."""
    plan = load(name)
    if plan is None or not (plan.state / "ready").exists():
        others = ", ".join(names())
        raise LabError(
            f"no lab named '{name}' is up" + (f" (but there are: {others})" if others else ""),
            hint=f"brigade lab up{'' if name == 'lab' else ' --name ' + name}",
        )
    return plan


def require_root() -> None:
    """Raise LabError unless this process may look at namespaces and processes of a lab."""
    if os.geteuid() != 0:
        raise LabError("the lab needs root: it makes namespaces and mounts", hint="use sudo")


def require_outside(name: str) -> None:
    """Raise LabError if this process is in a node of lab `name`, which cannot see the whole."""
    if (state_folder(name) / "ns" / INSIDE).exists():
        raise LabError(
            f"this is a node of lab '{name}': it cannot look at, or change, the lab as a whole",
            hint="run the command outside the lab",
        )


def names() -> list[str]:
    """The labs of which anything exists on this machine."""
    try:
        return sorted(entry.name for entry in STATE_ROOT.iterdir() if entry.is_dir())
    except FileNotFoundError:
        return []


def write_whole(path: Path, text: str) -> None:
    """Replace a file by one rename."""
    draft = path.with_name(path.name + ".new")
    draft.write_text(text)
    draft.rename(path)
