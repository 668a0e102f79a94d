"""Collective writing and reading by put and get: random requests, as one process would do them.

The program (onesided.c) begins with files that hold something, so that what no rank wrote must be
as it was; windows are small, so that a call goes through many rounds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mpi_world import ENVIRONMENT, LAUNCHERS, needs_nodes
from pgas_world import LIBRARIES, Ground, program, run_on

SEED = os.environ.get("BRIGADE_TEST_SEED", "1")
MANY_ROUNDS = ("4096", "stripe=64K:writers=3")


def cases(
    ground: Ground, folder: Path, window: str, hints: str, n: int, most: int, **more: str
) -> str:
    words = [str(folder), hints, window, SEED, str(n), str(most)]
    return run_on(ground, "pgas_onesided", *words, **more)


@pytest.mark.parametrize(
    "ground",
    [
        Ground("single"),
        Ground("windows", "openmpi", 4),
        Ground("windows", "mpich", 2),
        Ground("shmem", "", 3),
        *(
            pytest.param(Ground(kind, mpi, ranks), marks=pytest.mark.all)
            for kind, mpi in (("windows", "openmpi"), ("shmem", ""))
            for ranks in (1, 2, 5, 8)
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("window", "hints"),
    [
        pytest.param(*MANY_ROUNDS, id="many-rounds"),
        pytest.param("1048576", "", id="one-round", marks=pytest.mark.all),
        pytest.param(
            *MANY_ROUNDS[:1],
            "stripe=64K:transport=simple",
            id="no-own-windows",
            marks=pytest.mark.all,
        ),
    ],
)
def test_what_nobody_wrote_stays_and_all_else_is_there(
    ground: Ground, tmp_path: Path, window: str, hints: str
):
    assert cases(ground, tmp_path, window, hints, 25, 700_000).startswith("ok")


@needs_nodes
@pytest.mark.parametrize(
    "ground",
    [
        Ground("windows", "openmpi", 4, 2),
        Ground("apart", "openmpi", 5),
        pytest.param(Ground("apart", "mpich", 2), marks=pytest.mark.all),
        pytest.param(Ground("windows", "mpich", 4, 2), marks=pytest.mark.all),
        pytest.param(Ground("windows", "openmpi", 8, 3), marks=pytest.mark.all),
    ],
    ids=str,
)
def test_ranks_out_of_reach_put_and_get(ground: Ground, tmp_path: Path):
    assert cases(ground, tmp_path, *MANY_ROUNDS, 12, 200_000).startswith("ok")


@pytest.mark.parametrize(
    ("ground", "fault", "code"),
    [
        (Ground("single"), "io.write:70000", 28),
        (Ground("windows", "openmpi", 4), "io.write:70000", 28),
        (Ground("windows", "openmpi", 4), "io.read:9000", 5),
        (Ground("shmem", "", 3), "io.eio:1", 5),
        *(
            pytest.param(ground, fault, code, marks=pytest.mark.all)
            for ground in (
                Ground("windows", "mpich", 3),
                Ground("apart", "openmpi", 3),
                Ground("shmem", "", 5),
            )
            for fault, code in (("io.write:70000", 28), ("io.eio:1", 5), ("io.read:9000", 5))
        ),
    ],
    ids=str,
)
def test_a_failure_is_the_same_on_every_rank(ground: Ground, tmp_path: Path, fault: str, code: int):
    """The last rank is one of the owners, and the only one that fails."""
    where = f"{fault}@{ground.ranks - 1}" if ground.ranks > 1 else fault
    hints = f"stripe=64K:transport=simple:writers={ground.ranks}"
    out = cases(ground, tmp_path, "4096", hints, 60, 700_000, BRIGADE_FAULT=where)
    told = [line for line in out.splitlines() if not line.startswith("ok")]
    assert len(told) == ground.ranks and len(set(told)) == 1, out
    assert re.fullmatch(rf"(write|read): -{code} rank {ground.ranks - 1} offset \d+ /file", told[0])


@pytest.mark.parametrize(
    "ground",
    [
        Ground("windows", "openmpi", 4),
        Ground("windows", "openmpi", 8),
        pytest.param(Ground("windows", "openmpi", 32), marks=pytest.mark.all),
        pytest.param(Ground("shmem", "", 4), marks=pytest.mark.all),
        pytest.param(Ground("apart", "openmpi", 4), marks=pytest.mark.all),
    ],
    ids=str,
)
def test_memory_is_the_windows_whatever_is_written_by_however_many(ground: Ground, tmp_path: Path):
    """A rank reaches the two windows of each of two owners, and has three for what is far: of 12
    MiB that it moves, the same bound at every width."""
    out = run_on(ground, "pgas_onesided_lean", str(tmp_path), str(256 << 10), "12")
    grown = [int(line) for line in out.splitlines() if not line.startswith("ok")]
    assert len(grown) == ground.ranks
    assert max(grown) < 7 * 256 + 1024
    assert max(grown) >= 256  # it went through windows


#: the launcher must not learn of a death before the living have
SURVIVE = '"$@" > "$0/told.$$" 2>&1; sleep 3; exit 0'


@pytest.mark.all
@pytest.mark.parametrize("fault", ["io.slot:5@1", "io.slot:30@0", "io.meet:20@2"])
def test_on_a_node_the_living_are_told_who_died(tmp_path: Path, fault: str):
    launcher = LAUNCHERS["mpich"]
    if not shutil.which(launcher[0]):
        pytest.skip(f"needs {launcher[0]}")
    words = ["stripe=64K:writers=3:transport=simple", "4096", "7", "40", "1000000"]
    command = [*launcher, "3", "sh", "-c", SURVIVE, tmp_path, program("pgas_onesided"), "windows"]
    subprocess.run(
        [*map(str, command), LIBRARIES["mpich"], str(tmp_path), *words],
        capture_output=True,
        timeout=60,
        env={**os.environ, **ENVIRONMENT, "BRIGADE_FAULT": fault, "UCX_RNDV_THRESH": "inf"},
    )
    told = [path.read_text() for path in tmp_path.glob("told.*")]
    dead = fault.rpartition("@")[2]
    assert sum(f"-130 rank {dead} offset -1 rank {dead} has died" in text for text in told) == 2
