"""What a lab consists of, as plain data: names, addresses, folders, configuration texts.

Nothing here touches the machine, so that every decision can be tested by looking at it. The rest
of `brigade.lab` carries the plan out. Each lab has a network of its own that the host does not see
(the bridge lies in the lab's *hub* namespace), so all labs use the same addresses and ports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from brigade.errors import UsageError

STATE_ROOT = Path("/run/brigade-lab")
SHARED = "/mnt/brigade-lab"  # the shared file system, on every node
LOCAL = "/mnt/brigade-local"  # a folder of each node's own, on the host's disk
PRIVATE = ("/tmp", "/dev/shm")  # each node has its own
HUB = "hub"  # the namespace that holds the bridge and the servers
INSIDE = "inside"  # what a node finds in place of the lab's pinned namespaces
CPUS = 16  # what Slurm believes each node has
MAX_NODES = 64
MAX_SERVERS = 128  # SLOW_MAX_SERVERS of src/lab/slowfs.h

MASTER_PORTS = {"MATOML": 9419, "MATOCS": 9420, "MATOCL": 9421}
CHUNK_PORTS = (9422, 9423)

_NAME = re.compile(r"[a-z][a-z0-9-]{0,23}")
_SERVICE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s)")
_SERVICE_US = {"us": 1.0, "ms": 1e3, "s": 1e6}


def state_folder(name: str) -> Path:
    """The state folder of lab `name`. There is no other way from a name to a path, as root makes
    and removes what is there: UsageError if it cannot name a lab."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot name a lab",
            hint="use a letter, then at most 23 letters, digits and dashes, all lower case",
        )
    return STATE_ROOT / name


@dataclass(frozen=True)
class FileSystem:
    """The shared file system: `moosefs`, or `slow` with a service time per metadata request."""

    kind: str
    service_us: float = 0.0
    servers: int = 1

    @classmethod
    def parse(cls, text: str) -> FileSystem:
        """Read `moosefs`, `slow:0.5ms` or `slow:0.5ms,servers=2`."""
        if text == "moosefs":
            return cls("moosefs")
        kind, _, rest = text.partition(":")
        service, _, option = rest.partition(",")
        time = _SERVICE.fullmatch(service)
        servers = re.fullmatch(r"servers=([1-9][0-9]{0,2})", option or "servers=1")
        few = servers and int(servers[1]) <= MAX_SERVERS
        if kind != "slow" or not time or not servers or not few:
            raise UsageError(
                f"--fs {text} is not a file system the lab knows",
                hint="use moosefs, slow:0.5ms, or slow:0.5ms,servers=2 (units us, ms, s; "
                f"{MAX_SERVERS} servers at most)",
            )
        return cls("slow", float(time[1]) * _SERVICE_US[time[2]], int(servers[1]))

    def __str__(self) -> str:
        if self.kind == "moosefs":
            return "moosefs"
        more = f",servers={self.servers}" if self.servers != 1 else ""
        service = f"{self.service_us:.3f}".rstrip("0").rstrip(".")
        return f"slow:{service}us{more}"


@dataclass(frozen=True)
class LabPlan:
    """Everything about one lab that follows from its name, size and file system.

    `binds` are host folders below /tmp or /dev/shm that stay visible inside the nodes, whose own
    /tmp and /dev/shm are fresh.
    """

    name: str = "lab"
    n_nodes: int = 4
    fs: FileSystem = field(default_factory=lambda: FileSystem("moosefs"))
    data_root: Path = Path("/var/tmp")
    binds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        state_folder(self.name)
        if not 1 <= self.n_nodes <= MAX_NODES:
            raise UsageError(f"a lab has 1 to {MAX_NODES} nodes, not {self.n_nodes}")

    @property
    def state(self) -> Path:
        return state_folder(self.name)

    @property
    def data(self) -> Path:
        """Where the file servers keep what is written to the shared file system."""
        return self.data_root / f"brigade-lab-{self.name}"

    @property
    def etc(self) -> Path:
        return self.state / "etc"

    @property
    def log(self) -> Path:
        return self.state / "log"

    @property
    def nodes(self) -> list[str]:
        return [f"n{i}" for i in range(self.n_nodes)]

    @property
    def members(self) -> list[str]:
        """The hub, then the nodes: all that have namespaces of their own."""
        return [HUB, *self.nodes]

    @property
    def munge_socket(self) -> Path:
        return self.state / "munge" / "socket"

    def pins(self, member: str) -> Path:
        """The folder whose files hold the namespaces of `member`."""
        return self.state / "ns" / member

    def address(self, member: str) -> str:
        return f"10.203.0.{1 + self.members.index(member)}"

    def counters(self, node: str) -> Path:
        """The page in which the node's file-system client counts."""
        return self.state / "counters" / node

    def hosts(self) -> str:
        names = "".join(f"{self.address(m)} {m}\n" for m in self.members)
        return f"127.0.0.1 localhost\n::1 localhost ip6-localhost\n{names}"

    def openmpi_hostfile(self) -> str:
        return "".join(f"{node} slots={CPUS}\n" for node in self.nodes)

    def mpich_hostfile(self) -> str:
        return "".join(f"{node}:1\n" for node in self.nodes)

    def environment(self) -> dict[str, str]:
        """What makes every launcher work, and spread over the nodes, without further options."""
        agent = str(self.etc / "rsh")
        return {
            "BRIGADE_LAB": self.name,
            "BRIGADE_LAB_SHARED": SHARED,
            "BRIGADE_LAB_LOCAL": LOCAL,
            "BRIGADE_LAB_STATE": str(self.state),
            "SLURM_CONF": str(self.etc / "slurm" / "slurm.conf"),
            # Slurm 22.05's other algorithms let ranks out of a data-less fence before all are in
            "SLURM_PMIX_FENCE": "ring",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_plm_rsh_agent": agent,
            "OMPI_MCA_orte_default_hostfile": str(self.etc / "hosts.openmpi"),
            # the agent's processes must end with the agent: Slurm may be what runs them
            "OMPI_MCA_orte_leave_session_attached": "1",
            "OMPI_MCA_oob_tcp_if_include": "eth0",
            "OMPI_MCA_btl_tcp_if_include": "eth0",
            "OMPI_MCA_rmaps_base_mapping_policy": "node:OVERSUBSCRIBE",
            "OMPI_MCA_hwloc_base_binding_policy": "none",
            # the same for Open MPI 5
            "PRTE_ALLOW_RUN_AS_ROOT": "1",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_plm_ssh_agent": agent,
            "PRTE_MCA_prte_default_hostfile": str(self.etc / "hosts.openmpi"),
            "PRTE_MCA_prte_if_include": "eth0",
            "PRTE_MCA_rmaps_default_mapping_policy": "node:OVERSUBSCRIBE",
            "PRTE_MCA_hwloc_default_binding_policy": "none",
            "HYDRA_LAUNCHER": "rsh",
            "HYDRA_LAUNCHER_EXEC": agent,
            "HYDRA_LAUNCHER_AUTOFORK": "0",
            "HYDRA_HOST_FILE": str(self.etc / "hosts.mpich"),
            "HYDRA_IFACE": "eth0",
        }
