"""What does the MPI-IO of a job, chosen as it starts: one of Open MPI's components, or Brigade's
library, preloaded."""

from __future__ import annotations

from collections.abc import Sequence

from brigade.launch.preload import preloaded

#: the component's name where `brigade mpiio` does an unmodified program's MPI-IO
PRELOADED = "preloaded"


def job(
    launcher: Sequence[str], program: Sequence[str], component: str
) -> tuple[list[str], dict[str, str]]:
    """The command that starts a program so, and what its environment has besides; component "":
    whatever the MPI takes."""
    if component != PRELOADED:
        return [*launcher, *program], {"OMPI_MCA_io": component} if component else {}
    # before the program, as `brigade mpiio` does: not every launcher passes its environment on
    preload = f"LD_PRELOAD={preloaded('libbrigade_mpiio.so')}"
    return [*launcher, "env", preload, *program], {}
