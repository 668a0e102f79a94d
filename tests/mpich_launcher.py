"""By which launcher the ranks of this machine's MPICH find one another.

Its own, `mpiexec.mpich`, unless the package is built for launchers that speak PMIx alone, as that
of Ubuntu 24.04 is (MPICH 4.2.0, https://bugs.launchpad.net/bugs/2072338): there each rank that
mpiexec starts is rank 0 of 1, and those of srun --mpi=pmix on several nodes wait for ever. Open
MPI's mpirun starts them.
"""

from __future__ import annotations

import functools
import glob
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OWN = ["mpiexec.mpich", "-n"]
OPEN_MPIS = ["mpirun.openmpi", "--oversubscribe", "-n"]
#: prints how many ranks there are; its number is MPI_COMM_WORLD in MPICH's binary interface
_SIZE = """\
import ctypes, sys
mpi, size = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL), ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_size(0x44000000, ctypes.byref(size))
mpi.MPI_Finalize()
print("ranks:", size.value)
"""


@functools.cache
def why_not_own() -> str:
    """Why MPICH's mpiexec does not start ranks of MPICH that find one another; "" if it does, or
    where there is none."""
    libraries = [Path(path) for path in glob.glob("/usr/lib/*/libmpich.so.12")]
    if not libraries or not shutil.which(OWN[0]):
        return ""
    if b"libpmix.so" not in libraries[0].read_bytes():  # then it needs no asking
        return ""
    command = [*OWN, "2", sys.executable, "-c", _SIZE, str(libraries[0])]
    done = subprocess.run(command, text=True, capture_output=True, timeout=60)
    return "" if "ranks: 2" in done.stdout else "each rank of this MPICH's mpiexec is rank 0 of 1"


def launcher() -> list[str]:
    """What starts ranks of MPICH; their number follows."""
    return OPEN_MPIS if why_not_own() else OWN


def need_own(*words: str) -> None:
    """Skip a test whose words name MPICH or its own launcher, where that is of no use."""
    if {"mpich", OWN[0]}.intersection(words) and why_not_own():
        pytest.skip(f"needs an MPICH whose mpiexec starts its ranks: {why_not_own()}")
