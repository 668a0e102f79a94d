"""Which Debian packages a lab needs, and what is missing on this machine."""

from __future__ import annotations

import glob
import os
import shutil

from brigade.errors import LabError

# package -> a program of it that the lab starts, or a file (`*` stands for the machine's triplet)
_COMMON = {
    "iproute2": "ip",
    "util-linux": "nsenter",
    "bash": "bash",
    "munge": "munged",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "slurm-client": "srun",
    "libpmix-dev": "/usr/lib/*/libpmix.so",  # the name under which srun --mpi=pmix opens it
    "openmpi-bin": "mpirun",
    "mpich": "mpiexec.mpich",
}
_BY_FS = {
    "moosefs": {
        "moosefs-master": "mfsmaster",
        "moosefs-chunkserver": "mfschunkserver",
        "moosefs-client": "mfsmount",
    },
    "slow": {"fuse3": "fusermount3"},
}
# what `srun --mpi=pmix` loads; it comes with slurmd, but Ubuntu 22.04's is built without
_PMIX_PLUGIN = {"slurm-wlm-basic-plugins": "/usr/lib/*/slurm*/mpi_pmix.so"}
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def packages(fs_kind: str | None = None) -> list[str]:
    """The Debian packages a lab needs, with one file system or (by default) with any."""
    chosen = [_BY_FS[fs_kind]] if fs_kind else list(_BY_FS.values())
    return sorted(set(_COMMON).union(*chosen))


def search_path() -> str:
    """PATH with the folders of system programs, which ordinary users often lack."""
    path = os.environ.get("PATH", "/usr/bin:/bin").split(":")
    return ":".join(path + [folder for folder in _SBIN if folder not in path])


def missing_packages(fs_kind: str) -> list[str]:
    """Those of `packages(fs_kind)` that are not on this machine, or not with all that is needed."""
    needed = {**_COMMON, **_BY_FS[fs_kind], **_PMIX_PLUGIN}
    return sorted(package for package, part in needed.items() if not _is_there(part))


def _is_there(part: str) -> bool:
    if part.startswith("/"):
        return bool(glob.glob(part))
    return shutil.which(part, path=search_path()) is not None


def require(fs_kind: str) -> None:
    """Raise LabError unless this machine has what a lab consists of."""
    missing = missing_packages(fs_kind)
    if missing == list(_PMIX_PLUGIN):
        raise LabError(
            "this machine's Slurm is built without PMIx, through which srun starts ranks of MPI",
            hint="the packages of Debian 12 and Ubuntu 24.04 have it, those of Ubuntu 22.04 do not",
        )
    if missing:
        raise LabError(
            f"the lab's parts are not installed: {', '.join(missing)}",
            hint=f"apt-get install -y --no-install-recommends {' '.join(missing)}",
        )
