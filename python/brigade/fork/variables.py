"""Which variables of the environment are not the same in all ranks of a node, or in any two jobs.

Launchers say with variables who a rank is. Their names are here because a trial may have had one
rank only, or one of each node.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

# patterns of names -> who sets them
OF_RANKS = {
    "PMIX_*": "PMIx",
    "PMI_*": "PMI",
    "PMI2_*": "PMI",
    "OMPI_COMM_WORLD_*": "Open MPI",
    "OMPI_UNIVERSE_*": "Open MPI",
    "OMPI_MCA_*ess*": "Open MPI",
    "OMPI_APP_CTX_NUM_PROCS": "Open MPI",
    "PRTE_*": "Open MPI",
    "MPI_LOCALRANKID": "MPICH",
    "HYDI_*": "MPICH",
    "MPIRUN_RANK": "MVAPICH",
    "MV2_COMM_WORLD_*": "MVAPICH",
    "SLURM_PROCID": "Slurm",
    "SLURM_LOCALID": "Slurm",
    "SLURM_NODEID": "Slurm",
    "SLURM_GTIDS": "Slurm",
    "SLURM_TASK_PID": "Slurm",
    "SLURM_CPU_BIND*": "Slurm",
    "SLURM_GPUS_*": "Slurm",
    "FLUX_TASK_*": "Flux",
    "PALS_*": "PALS",
    "ALPS_APP_PE": "ALPS",
    "PBS_VNODENUM": "PBS",
    "PBS_TASKNUM": "PBS",
    "LSF_PM_TASKID": "LSF",
    "JSM_NAMESPACE_*": "jsrun",
    "BRIGADE_RANK": "Brigade",
    "BRIGADE_SLOT": "Brigade",
}

# names that fit a pattern, and are the same for all ranks of a node
OF_ALL = frozenset(
    [
        "MPI_LOCALNRANKS",
        "MV2_COMM_WORLD_LOCAL_SIZE",
        "MV2_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_UNIVERSE_SIZE",
        "PMI_SIZE",
    ]
)


def of_ranks(name: str) -> str | None:
    """Who gives each rank a value of its own of variable `name`; None if nobody is known to."""
    if name in OF_ALL:
        return None
    return next((who for pattern, who in OF_RANKS.items() if fnmatchcase(name, pattern)), None)


# patterns of names that each job has values of its own of, which say where it runs
_OF_JOBS = (
    "SLURM*JOB*ID SLURM_STEP* SLURM*NODELIST SLURM*NODE_ALIASES SLURMD_* SLURM_LAUNCH_*"
    " SLURM_SRUN_* SLURM_TOPOLOGY* PBS_JOBID PBS_NODEFILE LSB_JOBID LSB_DJOB_* FLUX_* PALS_* PMI*"
    " PRTE* OMPI* TMP* OLDPWD HOSTNAME *_PORT *_PID SSH* XDG* TERM*"
).split()


def of_jobs(name: str) -> bool:
    """Whether no two jobs have the same value of a variable, as a rule: then only whether it is
    there is compared."""
    return any(fnmatchcase(name, pattern) for pattern in _OF_JOBS)
