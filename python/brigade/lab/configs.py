"""The configuration files of a lab's servers, as texts made from its plan."""

from __future__ import annotations

from brigade.lab.plan import CHUNK_PORTS, CPUS, HUB, MASTER_PORTS, LabPlan


def rsh_agent(plan: LabPlan) -> str:
    """The remote shell of mpirun and mpiexec: `rsh [options] HOST COMMAND...`.

    Root steps into the node's namespaces. Anybody else cannot, and lets Slurm start the command.
    """
    return f"""#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
        -l) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
host=$1
shift
if [ "$(id -u)" = 0 ]; then
    exec nsenter -t "$(cat {plan.state}/pid/"$host")" -n -u -i -m -- sh -c "$*"
fi
exec srun --overlap --mpi=none -Q -N1 -n1 -w "$host" sh -c "$*"
"""


def slurm(plan: LabPlan, switches: bool = True) -> str:
    """`switches`: whether Slurm is told of them."""
    addresses = "".join(
        f"NodeName={n} NodeAddr={plan.address(n)} CPUs={CPUS} State=UNKNOWN\n" for n in plan.nodes
    )
    return f"""ClusterName={plan.name}
SlurmctldHost={HUB}({plan.address(HUB)})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={plan.munge_socket}
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
{"TopologyPlugin=topology/tree" if switches else "# whole nodes: no switches"}
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=0
AccountingStorageType=accounting_storage/none
SelectType=select/linear
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
SwitchType=switch/none
KillWait=2
MessageTimeout=60
SlurmdTimeout=3600
StateSaveLocation={plan.state}/slurmctld
SlurmdSpoolDir={plan.state}/slurmd/%n
SlurmctldPidFile={plan.state}/slurmctld.pid
SlurmdPidFile={plan.state}/slurmd/%n.pid
SlurmctldLogFile={plan.log}/slurmctld.log
SlurmdLogFile={plan.log}/slurmd.%n.log
{addresses}PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def slurm_topology(plan: LabPlan) -> str:
    """Two nodes a leaf switch, so that tasks are told addresses as on a large machine."""
    pairs = [plan.nodes[at : at + 2] for at in range(0, plan.n_nodes, 2)]
    leaves = "".join(f"SwitchName=leaf{i} Nodes={','.join(p)}\n" for i, p in enumerate(pairs))
    names = ",".join(f"leaf{i}" for i in range(len(pairs)))
    return f"{leaves}SwitchName=top Switches={names}\n"


SLURM_CGROUP = "CgroupPlugin=cgroup/v1\nIgnoreSystemd=yes\n"


def mfs_master(plan: LabPlan) -> str:
    ports = "".join(
        f"{kind}_LISTEN_HOST = {plan.address(HUB)}\n{kind}_LISTEN_PORT = {port}\n"
        for kind, port in MASTER_PORTS.items()
    )
    return f"""WORKING_USER = root
WORKING_GROUP = root
SYSLOG_IDENT = mfsmaster-{plan.name}
DATA_PATH = {plan.data}/master
EXPORTS_FILENAME = {plan.etc}/mfsexports.cfg
TOPOLOGY_FILENAME = {plan.etc}/mfstopology.cfg
LOCK_MEMORY = 0
NICE_LEVEL = 0
DISABLE_OOM_KILLER = 0
{ports}"""


MFS_EXPORTS = "* / rw,alldirs,admin,maproot=0:0\n"


def mfs_chunkserver(plan: LabPlan, index: int) -> str:
    return f"""WORKING_USER = root
WORKING_GROUP = root
SYSLOG_IDENT = mfschunkserver{index}-{plan.name}
DATA_PATH = {plan.data}/chunkserver{index}
HDD_CONF_FILENAME = {plan.etc}/mfshdd{index}.cfg
HDD_LEAVE_SPACE_DEFAULT = 64MiB
HDD_FSYNC_BEFORE_CLOSE = 0
LOCK_MEMORY = 0
NICE_LEVEL = 0
DISABLE_OOM_KILLER = 0
MASTER_HOST = {plan.address(HUB)}
MASTER_PORT = {MASTER_PORTS["MATOCS"]}
MASTER_RECONNECTION_DELAY = 1
CSSERV_LISTEN_HOST = {plan.address(HUB)}
CSSERV_LISTEN_PORT = {CHUNK_PORTS[index]}
"""


def mfs_disks(plan: LabPlan, index: int) -> str:
    return f"{plan.data}/chunks{index}\n"


def all_files(plan: LabPlan, switches: bool = True) -> dict[str, str]:
    """Path below `plan.etc` -> content, for everything the lab writes before it starts. `switches`:
    whether Slurm knows of them."""
    files = {
        "hosts": plan.hosts(),
        "hosts.openmpi": plan.openmpi_hostfile(),
        "hosts.mpich": plan.mpich_hostfile(),
        "rsh": rsh_agent(plan),
        "slurm/slurm.conf": slurm(plan, switches),
        "slurm/cgroup.conf": SLURM_CGROUP,
    }
    if switches:
        files["slurm/topology.conf"] = slurm_topology(plan)
    if plan.fs.kind == "moosefs":
        files["mfsmaster.cfg"] = mfs_master(plan)
        files["mfsexports.cfg"] = MFS_EXPORTS
        files["mfstopology.cfg"] = ""
        for i in range(len(CHUNK_PORTS)):
            files[f"mfschunkserver{i}.cfg"] = mfs_chunkserver(plan, i)
            files[f"mfshdd{i}.cfg"] = mfs_disks(plan, i)
    return files
