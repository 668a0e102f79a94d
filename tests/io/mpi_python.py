"""MPI programs in Python that use brigade.io, with both MPIs, on this machine.

mpi4py's wheel is loaded with the MPI that `MPI4PY_MPIABI` names."""

from __future__ import annotations

import glob
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mpi_world import LAUNCHERS, on_nodes, run_mpi

ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = """\
import json, os, sys, errno
import numpy
from mpi4py import MPI
import brigade.io
comm, rank, size = MPI.COMM_WORLD, MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
PATH, out = os.environ["TEST_PATH"], {{}}
def failure(error):
    return [error.errno, error.rank, error.offset, error.filename, error.strerror]
{body}
with open(os.path.join(os.environ["TEST_OUT"], str(rank)), "w") as file:
    json.dump(out, file)
"""


def environment(mpi: str, folder: Path) -> dict[str, str]:
    found = {"MPI4PY_MPIABI": mpi, "PYTHONPATH": str(ROOT / "python")}
    if mpi == "mpich":  # Debian's library has another name than the one wheels ask for
        link = folder / "mpich/libmpi.so.12"
        link.parent.mkdir(exist_ok=True)
        libraries = glob.glob("/usr/lib/*/libmpich.so.12")
        if libraries and not link.exists():
            link.symlink_to(libraries[0])
        found["LD_LIBRARY_PATH"] = str(link.parent)
    return found


def run(
    mpi: str,
    ranks: int,
    body: str,
    folder: Path,
    hints: str = "",
    nodes: int = 0,
    under: Sequence[str | Path] = (),
) -> list[dict[str, Any]]:
    """Runs `body` on each rank, as on so many nodes (0: on this one), each under a command that is
    given; `out` of each rank comes back, by rank. PATH is folder/f."""
    if not shutil.which(LAUNCHERS[mpi][0]):
        pytest.skip(f"{LAUNCHERS[mpi][0]} is not installed")
    said = folder / "said"
    shutil.rmtree(said, ignore_errors=True)
    said.mkdir()
    program = folder / "program.py"
    program.write_text(_PROGRAM.format(body=body))
    more = {"TEST_PATH": str(folder / "f"), "TEST_OUT": str(said), "BRIGADE_IO": hints}
    words = on_nodes(nodes, [*under, sys.executable, "-B", program])
    done = run_mpi(mpi, ranks, words, **environment(mpi, folder), **more)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(os.listdir(said)) == ranks, done.stdout + done.stderr
    return [json.loads((said / str(rank)).read_text()) for rank in range(ranks)]
