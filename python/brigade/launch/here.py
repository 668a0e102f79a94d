"""Whether all ranks of a job start on this machine, beside the command that starts them.

Steps of our own then need no launcher and no MPI, and what lies on this machine's disk lies where
the ranks are. Launchers are told of other machines by options, variables, files of settings and
schedulers: only what is known to name none counts, and whatever is not known here may. Asks for
files, starts nothing. Should it be wrong: a rank on a machine that was not staged starts plainly
(`guard`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

# Variables of schedulers that begin so; of Slurm, those of an allocation.
_SCHEDULERS = (
    "ALPS_", "COBALT_", "FLUX_", "JSM_", "LOADL_", "LSB_", "OAR_", "PALS_", "PBS_", "PE_HOSTFILE",
    "PJM_",
)  # fmt: skip
_SLURM = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
_SELF = frozenset({"localhost", "127.0.0.1", "::1"})

# Components of Open MPI's whose parameters say how ranks talk, compute and write, not where.
_NOT_WHERE = frozenset({
    "btl", "coll", "common", "crs", "fbtl", "fcoll", "fs", "hwloc", "io", "memory", "mpi", "mpool",
    "mtl", "op", "osc", "part", "patcher", "pml", "psec", "pstat", "rcache", "sharedfp", "threads",
    "topo", "vprotocol",
})  # fmt: skip
_MCA_VARIABLES = ("OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_")
_MCA_FILES = (
    "openmpi-mca-params.conf", "prte-mca-params.conf", "pmix-mca-params.conf", "prte.conf",
)  # fmt: skip
_HOST_FILES = ("openmpi-default-hostfile", "prte-default-hostfile")
_HOME_FILES = (".openmpi/mca-params.conf", ".prte/mca-params.conf", ".pmix/mca-params.conf")
_PREFIXES = ("OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX")

_HYDRA_VARIABLES = ("HYDRA_", "I_MPI_HYDRA_")
_HYDRA_FILES = ("/etc/mpiexec.hydra.conf", "~/.mpiexec.hydra.conf")


def slurm_is_here(env: Mapping[str, str]) -> bool:
    """Whether Slurm has started us on the one node of its job, an ordinary one."""
    node = env.get("SLURMD_NODENAME")
    return (
        bool(node)
        and env.get("SLURM_JOB_NODELIST") == node
        and env.get("SLURM_JOB_NUM_NODES") == "1"
        and not env.get("SLURM_HET_SIZE")
    )


def no_scheduler_places(env: Mapping[str, str]) -> bool:
    """Whether no scheduler names machines to a launcher, or only this one."""
    if any(name.startswith(_SCHEDULERS) for name in env):
        return False
    return not any(env.get(name) for name in _SLURM) or slurm_is_here(env)


def names_others(hosts: Iterable[str]) -> bool:
    """Whether one of the hosts (`NAME[:SLOTS],…`) is another machine than this."""
    own = {*_SELF, os.uname().nodename}
    return any(name.partition(":")[0] not in own for one in hosts for name in one.split(","))


def is_program(executable: str) -> bool:
    """Whether a launcher is itself, and not a site's script around it, which may name hosts."""
    try:
        with open(executable, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def says_where(parameter: str) -> bool:
    """Whether a parameter of Open MPI's or its runtime's may have a say in where ranks start."""
    return parameter.partition("_")[0] not in _NOT_WHERE


def open_mpi_is_told(executable: str, env: Mapping[str, str]) -> bool:
    """Whether variables or files may tell this mpirun of other machines."""
    named = (
        name[len(prefix) :] for name in env for prefix in _MCA_VARIABLES if name.startswith(prefix)
    )
    if any(map(says_where, named)):
        return True
    folders = list(_settings_folders(executable, env))
    hosts = (os.path.join(folder, name) for folder in folders for name in _HOST_FILES)
    files = [os.path.join(folder, name) for folder in folders for name in _MCA_FILES]
    files += [os.path.join(env.get("HOME") or "/", name) for name in _HOME_FILES]
    keys = (line.partition("=")[0].strip() for path in files for line in _lines(path))
    return any(line for path in hosts for line in _lines(path)) or any(map(says_where, keys))


def _settings_folders(executable: str, env: Mapping[str, str]) -> Iterable[str]:
    """Where an Open MPI looks for its files: `etc` of its prefix, or what distributions take."""
    found = [os.path.abspath(executable), os.path.realpath(executable)]
    prefixes = {os.path.dirname(os.path.dirname(path)) for path in found}
    prefixes.update(filter(None, map(env.get, _PREFIXES)))
    for prefix in sorted(prefixes):
        yield os.path.join(prefix, "etc")
    with os.scandir("/etc") as entries:
        yield from sorted(one.path for one in entries if one.name.startswith("openmpi"))


def hydra_is_told(env: Mapping[str, str]) -> bool:
    """Whether variables or files may tell MPICH's mpiexec of other machines."""
    home = env.get("HOME") or "/"
    files = [path.replace("~", home, 1) for path in _HYDRA_FILES]
    return any(name.startswith(_HYDRA_VARIABLES) for name in env) or any(map(os.path.exists, files))


def _lines(path: str) -> list[str]:
    """The lines of a file of settings, without comments; none of one that is not there."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = (line.partition("#")[0].strip() for line in file)
            return [line for line in lines if line]
    except OSError:
        return []
