"""What of a process's environment a trace keeps: its rank, and what decides searches."""

from __future__ import annotations

from collections.abc import Mapping

# In the order in which the tracer and `brigade-rank` ask them.
RANK_NAMES = ("BRIGADE_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")

SEARCH_NAMES = (
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "PATH", "LANG", "LOCPATH"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONNOUSERSITE"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "VIRTUAL_ENV", "CONDA_PREFIX"),
)


def rank_of(environment: Mapping[str, str]) -> int | None:
    """The launcher's number of a process; None if it has none."""
    for name in RANK_NAMES:
        value = environment.get(name, "")
        if value.isdigit():
            return int(value)
    return None


def searching(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that decide where files are searched."""
    return {
        name: value
        for name, value in environment.items()
        if name in SEARCH_NAMES or name.startswith("LC_")
    }
