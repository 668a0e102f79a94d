"""Asking nodes: `brigade-rank --probe` tries each thing once, here or on each node of a launcher.

The launcher starts one process a node, as staging does. Nothing is left on any node.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import nullcontext
from typing import Any

from brigade import interrupt
from brigade.errors import LauncherError
from brigade.job.stage import node_base
from brigade.job.step import run_step
from brigade.launch import parse_bare
from brigade.paths import native

# Programs that start jobs, and the option that makes them say their version.
_LAUNCHERS = {
    "srun": "--version",
    "sbcast": "--version",
    "mpirun": "--version",
    "mpiexec": "--version",
    "mpiexec.hydra": "--version",
}
_VERSION_S = 20


def nodes(words: list[str]) -> tuple[list[dict[str, Any]], str | None]:
    """What each node answers, this one or those of the launcher `words`; and, if not all of them
    do, that in words. Raises UsageError if that is no launcher, LauncherError if none does.
    """
    tool = [str(native("brigade-rank")), "--probe", node_base()]
    launch = parse_bare(words, "brigade doctor") if words else None
    with launch.session() if launch else nullcontext():  # may wait for nodes: no silence of a step
        command = launch.launched_per_node(tool) if launch else tool
        wanted = launch.nodes if launch else 1
        results, said, status = run_step(command, lambda done, total: None)
    interrupt.check()
    found = [result for result in results if "kernel" in result]
    why = f"(status {status}): {said or 'nothing was said'}"
    if not found:
        raise LauncherError(
            f"no node answered {why}",
            hint="is the launcher's command right? `brigade doctor` alone asks this node",
        )
    if len(found) < wanted:
        return found, f"only {len(found)} of {wanted} nodes answered {why}"
    if status != 0:
        return found, f"some nodes may not have answered {why}"
    return found, None


def launchers() -> dict[str, str]:
    """Launchers that are in PATH: name -> the first line of what each says of its version."""
    found = {}
    for name, option in _LAUNCHERS.items():
        path = shutil.which(name)
        if path is not None:
            found[name] = _version([path, option])
    return found


def _version(command: list[str]) -> str:
    try:
        said = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_S,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start: {error}"
    lines = [line.strip() for line in (said.stdout + said.stderr).splitlines() if line.strip()]
    for line in lines:
        if line.lower().startswith("version:"):  # MPICH: the second line
            return f"MPICH {line.split()[-1]}"
    if said.returncode != 0:
        return f"is there, but says: {lines[0] if lines else f'status {said.returncode}'}"
    return lines[0] if lines else "says nothing of its version"
