"""Launchers that refuse, or that are another MPI's."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import mpich_launcher
from failing import Case, Made

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
NO_ROOT = dict.fromkeys(ROOT, "")
MPI = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Finalize();
    return size != atoi(argv[1]);
}
"""


def no_open_mpi() -> str:
    return "" if shutil.which("mpirun.openmpi") else "needs Debian package openmpi-bin"


def no_open_mpi_for_root() -> str:
    return no_open_mpi() or ("" if os.geteuid() == 0 else "needs root, whom Open MPI refuses")


def not_both() -> str:
    names = ("mpirun.openmpi", "mpiexec.mpich", "mpicc.openmpi", "mpicc.mpich")
    missing = [name for name in names if not shutil.which(name)]
    return f"needs {missing[0]}: Debian packages libopenmpi-dev, libmpich-dev" if missing else ""


def not_strangers() -> str:
    return not_both() or mpich_launcher.why_not_own()  # then mpirun is for MPICH's programs, too


def no_srun() -> str:
    if os.path.exists("/etc/slurm/slurm.conf") or "SLURM_CONF" in os.environ:
        return "needs a machine that is in no cluster of Slurm's"
    return "" if shutil.which("srun") else "needs Debian package slurm-client"


def as_root(base: Path) -> Made:
    return Made(["mpirun.openmpi", "-n", "2", "/bin/true"], NO_ROOT, launcher="mpirun", ranks=2)


def more_ranks_than_slots(base: Path) -> Made:
    ranks = 64 * (os.cpu_count() or 1)
    argv = ["mpirun.openmpi", "-n", str(ranks), "/bin/true"]
    return Made(argv, ROOT, launcher="mpirun", ranks=ranks)


def mpi_program(base: Path, mpi: str, argv: list[str], launcher: str) -> Made:
    app = base / "solver"
    command = [f"mpicc.{mpi}", "-x", "c", "-", "-o", app]
    subprocess.run(command, input=MPI, text=True, check=True)
    return Made([*argv, "-n", "2", str(app), "2"], ROOT, launcher=launcher, ranks=2, words=2)


def mpich_under_open_mpi(base: Path) -> Made:
    return mpi_program(base, "mpich", ["mpirun.openmpi", "--oversubscribe"], "mpirun")


def open_mpi_under_mpich(base: Path) -> Made:
    return mpi_program(base, "openmpi", ["mpiexec.mpich"], "mpiexec")


def controller_not_reached(base: Path) -> Made:
    return Made(["srun", "-n", "2", "/bin/true"], launcher="srun", ranks=2)


CASES = [
    Case("launcher-root", "Open MPI's mpirun, as root", as_root,
         ["does not start programs for root", "--allow-run-as-root"], needs=no_open_mpi_for_root),
    Case("launcher-slots", "more ranks than mpirun has slots", more_ranks_than_slots,
         ["has fewer slots than the", "--oversubscribe"], needs=no_open_mpi),
    Case("launcher-of-another-mpi", "MPICH's program under Open MPI's mpirun",
         mpich_under_open_mpi,
         ["{base}/solver was built with MPICH", "is Open MPI's: every rank is rank 0 of 1",
          "mpiexec.mpich -n 2"], needs=not_strangers),
    Case("launcher-of-another-mpi", "Open MPI's program under MPICH's mpiexec",
         open_mpi_under_mpich, ["was built with Open MPI", "mpirun.openmpi -n 2"], needs=not_both),
    Case("launcher-unreachable", "Slurm's controller is not reached", controller_not_reached,
         ["srun does not reach Slurm's controller", "SLURM_CONF"], needs=no_srun),
]  # fmt: skip
