"""MooseFS as the lab's shared file system: one metadata server, two chunk servers, a client a node."""

from __future__ import annotations

import os
import time

from brigade.errors import LabError
from brigade.lab import nodes
from brigade.lab.plan import CHUNK_PORTS, HUB, MASTER_PORTS, SHARED, LabPlan

# what the metadata server is started from the very first time
_EMPTY_METADATA = b"MFSM NEW"


def start_servers(plan: LabPlan) -> None:
    """Start the metadata server and the chunk servers in the hub; they keep data in `plan.data`."""
    master = plan.data / "master"
    master.mkdir()
    (master / "metadata.mfs").write_bytes(_EMPTY_METADATA)
    nodes.run_in(plan, HUB, ["mfsmaster", "-c", str(plan.etc / "mfsmaster.cfg"), "start"], "mfsmaster")
    for i in range(len(CHUNK_PORTS)):
        (plan.data / f"chunkserver{i}").mkdir()
        (plan.data / f"chunks{i}").mkdir()
        config = str(plan.etc / f"mfschunkserver{i}.cfg")
        nodes.run_in(plan, HUB, ["mfschunkserver", "-c", config, "start"], "mfschunkserver")


def mount(plan: LabPlan, node: str) -> None:
    """Mount the file system on a node."""
    nodes.run_in(
        plan,
        node,
        [
            "mfsmount",
            SHARED,
            "-H", plan.address(HUB),
            "-P", str(MASTER_PORTS["MATOCL"]),
            # no special standing among the machine's processes, and no waiting for ever
            "-o", "mfsnice=0,mfsallowoomkiller,mfsioretries=10",
        ],
        "mfsmount",
    )  # fmt: skip


def prepare_root(plan: LabPlan) -> None:
    """Wait until the file system takes data, then make its root writable for everybody, one copy each."""
    first = plan.nodes[0]
    _wait_for_space(plan, first)
    nodes.run_in(plan, first, ["mfssetgoal", "1", SHARED], "mfssetgoal")
    nodes.run_in(plan, first, ["mfssettrashtime", "0", SHARED], "mfssettrashtime")
    nodes.run_in(plan, first, ["chmod", "1777", SHARED], "chmod")


def _wait_for_space(plan: LabPlan, node: str, limit_s: float = 30.0) -> None:
    pid = (plan.state / "pid" / node).read_text().strip()
    deadline = time.monotonic() + limit_s
    while os.statvfs(f"/proc/{pid}/root{SHARED}").f_bavail == 0:
        if time.monotonic() > deadline:
            raise LabError(
                f"MooseFS has no space after {limit_s:.0f} s: its chunk servers did not come up",
                hint=f"is there room below {plan.data}? see {plan.log} and the system log",
            )
        time.sleep(0.05)


