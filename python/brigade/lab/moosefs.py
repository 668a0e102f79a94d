"""MooseFS as the shared file system: a metadata server, two chunk servers, a client per node."""

from __future__ import annotations

import os
import time

from brigade import paths
from brigade.errors import LabError
from brigade.lab import nodes
from brigade.lab.plan import CHUNK_PORTS, HUB, MASTER_PORTS, SHARED, LabPlan

# what a metadata server is started from the very first time
_EMPTY_METADATA = b"MFSM NEW"

HUB_DAEMONS = {"mfsmaster": 1, "mfschunkserver": len(CHUNK_PORTS)}
NODE_DAEMONS = {"mfsmount": 1}


def start_servers(plan: LabPlan) -> None:
    """Start the metadata server and the chunk servers in the hub; they keep data in `plan.data`."""
    master = plan.data / "master"
    master.mkdir()
    (master / "metadata.mfs").write_bytes(_EMPTY_METADATA)
    config = str(plan.etc / "mfsmaster.cfg")
    nodes.run_in(plan, HUB, ["mfsmaster", "-c", config, "start"], "mfsmaster", goes_first=True)
    for i in range(len(CHUNK_PORTS)):
        (plan.data / f"chunkserver{i}").mkdir()
        (plan.data / f"chunks{i}").mkdir()
        config = str(plan.etc / f"mfschunkserver{i}.cfg")
        command = ["mfschunkserver", "-c", config, "start"]
        nodes.run_in(plan, HUB, command, "mfschunkserver", goes_first=True)


def mount(plan: LabPlan, node: str) -> None:
    """Mount the file system on a node, with a client that counts into the node's page."""
    port = str(MASTER_PORTS["MATOCL"])
    # how it stands among the machine's processes is said below; and no waiting for ever
    options = "mfsnice=0,mfsallowoomkiller,mfsioretries=10"
    nodes.run_in(
        plan,
        node,
        ["mfsmount", SHARED, "-H", plan.address(HUB), "-P", port, "-o", options],
        "mfsmount",
        {
            "LD_PRELOAD": str(paths.native("libbrigade-lab-mfs.so")),
            "BRIGADE_LAB_COUNTERS": str(plan.counters(node)),
            "BRIGADE_LAB_MASTER_PORT": port,
        },
        goes_first=True,  # two ranks that spin in MPI can keep it from running for a minute
    )


# MooseFS 3 has goals, which are numbers of copies; 4 has classes, none of them with one copy
_ONE_COPY = f"""\
mfssetgoal 1 {SHARED} 2>/dev/null || {{
    mfscreatesclass -M {SHARED} -K '*' one && mfssetsclass one {SHARED}
}}"""


def prepare_root(plan: LabPlan) -> None:
    """Wait until data can be stored, then open the root to everybody; one copy of each file."""
    first = plan.nodes[0]
    _wait_for_space(plan, first)
    nodes.run_in(plan, first, ["sh", "-c", _ONE_COPY], "mfssetsclass")
    nodes.run_in(plan, first, ["mfssettrashtime", "0", SHARED], "mfssettrashtime")
    nodes.run_in(plan, first, ["chmod", "1777", SHARED], "chmod")


def _wait_for_space(plan: LabPlan, node: str, limit_s: float = 30.0) -> None:
    pid = (plan.state / "pid" / node).read_text().strip()
    deadline = time.monotonic() + limit_s
    while os.statvfs(f"/proc/{pid}/root{SHARED}").f_bavail == 0:
        if time.monotonic() > deadline:
            raise LabError(
                f"MooseFS has no space after {limit_s:.0f} s: its chunk servers did not come up",
                hint=f"is there room below {plan.data}? see the system's log",
            )
        time.sleep(0.05)
