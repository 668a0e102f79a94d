"""What srun takes from its environment, as options: an allocation of our own is to be what the
user's srun would have made, and our own steps speak to us. Of "INPUT
ENVIRONMENT VARIABLES" in srun(1), Slurm 22.05; salloc has others. Pure: no process is started.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from brigade.launch.srun_options import OPTIONS

_BY_NAME = (
    "account acctg-freq clusters constraint core-spec cpus-per-gpu delay-boot dependency"
    " distribution exclusive gpu-bind gpu-freq gpus gpus-per-node gpus-per-task gres gres-flags"
    " hint immediate job-name mem-per-cpu mem-per-gpu network no-kill ntasks ntasks-per-core"
    " ntasks-per-gpu ntasks-per-node ntasks-per-socket overcommit partition power profile qos"
    " reservation resv-ports signal spread-job thread-spec threads-per-core tres-per-task"
    " use-min-nodes wckey"
).split()
# Of several variables for one option the first that is set counts.
_VARIABLES = {f"SLURM_{option.upper().replace('-', '_')}": option for option in _BY_NAME} | {
    "SLURM_BURST_BUFFER": "bb",
    "SLURM_CPU_FREQ_REQ": "cpu-freq",
    "SRUN_CPUS_PER_TASK": "cpus-per-task",
    "SLURM_MEM_PER_NODE": "mem",
    "SLURM_JOB_NUM_NODES": "nodes",
    "SLURM_NNODES": "nodes",
    "SLURM_NPROCS": "ntasks",
    "SLURM_REQ_SWITCH": "switches",
    "SLURM_TIMELIMIT": "time",
    "SLURM_WORKING_DIR": "chdir",
    "SLURM_REMOTE_CWD": "chdir",
}
# of the user's srun, where its ranks write: not for our own steps, whose words we read
_STREAMS = {"SLURM_STDOUTMODE": "output", "SLURM_STDERRMODE": "error"}


def for_allocation(environ: Mapping[str, str], named: Collection[str]) -> list[str]:
    """Options for salloc, besides those that are `named` on the command line."""
    found: dict[str, str] = {}
    for variable, option in _VARIABLES.items():
        if option not in named and variable in environ:
            found.setdefault(option, environ[variable])
    if "switches" in found and "SLURM_WAIT4SWITCH" in environ:
        found["switches"] += "@" + environ["SLURM_WAIT4SWITCH"]
    return [
        f"--{option}"
        if option in OPTIONS.long_flags and value in ("", "1", "yes")
        else f"--{option}={value}"
        for option, value in found.items()
        if value or option in OPTIONS.long_flags
    ]


def tasks(environ: Mapping[str, str]) -> int | None:
    """How many tasks srun starts without -n and -N, where the environment says it."""
    told = environ.get("SLURM_NTASKS") or environ.get("SLURM_NPROCS") or ""
    return int(told) if told.isdigit() else None


def own_streams(environ: Mapping[str, str]) -> list[str]:
    """Options with which a step's words come to us, whatever the user's srun is to do with its."""
    return [f"--{option}=all" for name, option in _STREAMS.items() if environ.get(name)]


def named(environ: Mapping[str, str]) -> set[str]:
    """Options that the environment gives, of those that concern what Brigade does at all."""
    variables = {"SLURM_BCAST": "bcast", "SRUN_CONTAINER": "container"}
    return {option for name, option in variables.items() if environ.get(name)}
