"""Munge and Slurm in a lab: one controller in the hub, one slurmd on each node."""

from __future__ import annotations

import os
import re
import subprocess
import time

from brigade.errors import LabError
from brigade.lab import nodes
from brigade.lab.debian import search_path
from brigade.lab.plan import HUB, LabPlan


def start(plan: LabPlan) -> None:
    """Start the daemons; does not wait until the nodes are idle (see `wait_idle`)."""
    for folder, mode in (("munge", 0o711), ("slurmctld", 0o700), ("slurmd", 0o755)):
        (plan.state / folder).mkdir(mode=mode)
        (plan.state / folder).chmod(mode)
    _start_munge(plan)
    env = plan.environment()
    config = env["SLURM_CONF"]
    nodes.run_in(plan, HUB, ["slurmctld", "-f", config], "slurmctld", env)
    for node in plan.nodes:
        nodes.run_in(plan, node, ["slurmd", "-N", node, "-f", config], "slurmd", env)


def has_switches() -> bool:
    """Whether this Slurm lets whole nodes be given (select/linear) where it knows of switches;
    24.11 refuses that."""
    env = {**os.environ, "PATH": search_path()}
    said = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, env=env).stdout
    version = re.search(r"(\d+)\.(\d+)", said)
    return not version or (int(version[1]), int(version[2])) < (24, 5)


def wait_idle(plan: LabPlan, limit_s: float = 30.0) -> None:
    """Wait until Slurm would start jobs on every node."""
    deadline = time.monotonic() + limit_s
    env = plan.environment()
    while True:
        said = nodes.run_in(
            plan, HUB, ["sh", "-c", "sinfo -h -N -o '%N %t' 2>&1 || true"], "sinfo", env
        )
        if sum(line.endswith(" idle") for line in said.splitlines()) == plan.n_nodes:
            return
        if time.monotonic() > deadline:
            raise LabError(
                f"Slurm's nodes are not idle after {limit_s:.0f} s: {said.strip()}",
                hint=f"see {plan.log}",
            )
        time.sleep(0.05)


def _start_munge(plan: LabPlan) -> None:
    """A munge daemon with a key of the lab's own, apart from any that the machine runs."""
    folder = plan.state / "munge"
    key = folder / "key"
    with open(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(os.urandom(128))
    nodes.run_in(
        plan,
        HUB,
        [
            "munged",
            f"--socket={plan.munge_socket}",
            f"--key-file={key}",
            f"--log-file={folder / 'log'}",
            f"--pid-file={folder / 'pid'}",
            f"--seed-file={folder / 'seed'}",
            "--force",
        ],
        "munged",
    )
