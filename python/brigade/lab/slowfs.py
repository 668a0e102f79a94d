"""The slow file system: a pass-through on each node, one metadata queue for all of them.

It has the interface of `brigade.lab.moosefs`; `brigade-slowfs` (in `src/lab`) does the work.
"""

from __future__ import annotations

from brigade import paths
from brigade.lab import nodes
from brigade.lab.plan import SHARED, LabPlan

HUB_DAEMONS: dict[str, int] = {}
NODE_DAEMONS = {"brigade-slowfs": 1}


def start_servers(plan: LabPlan) -> None:
    """Make the backing folder, open to everybody; the server is a queue that the clients share."""
    backing = plan.data / "slow"
    backing.mkdir()
    backing.chmod(0o1777)


def mount(plan: LabPlan, node: str) -> None:
    """Mount the file system on a node, with a client that counts into the node's page."""
    argv = [
        str(paths.native("brigade-slowfs")),
        f"--queue={plan.state / 'queue'}",
        f"--counters={plan.counters(node)}",
        f"--service-us={plan.fs.service_us:g}",
        f"--servers={plan.fs.servers}",
        str(plan.data / "slow"),
        SHARED,
    ]
    # ranks that spin would add to the time that a request takes
    nodes.run_in(plan, node, argv, "brigade-slowfs", goes_first=True)


def prepare_root(plan: LabPlan) -> None:
    """Nothing is left to do once it is mounted."""
