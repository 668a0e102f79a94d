"""Random programs of MPI-IO under libbrigade_mpiio: every call does what MPI says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_world import (
    AS_NODES,
    ENVIRONMENT,
    LAUNCHERS,
    MPIS,
    WHEELS,
    compile_mpi,
    needs_nodes,
    run_mpi,
)

from brigade.paths import native

BLOCKING, SPLIT, ALONE = 1, 2, 8
DRIVER = Path(__file__).with_name("calls_driver.c")


def make(
    mpi: str,
    folder: Path,
    ranks: int,
    first: int,
    cases: int,
    ways: int = BLOCKING | SPLIT,
    prefix: tuple[str, ...] = (),
    **environment: str,
) -> str:
    """What rank 0 reports, after the cases have passed: that they were not done by the MPI."""
    driver = folder / "driver"
    if not driver.exists():
        compile_mpi(mpi, DRIVER, driver, "-O1")
    words = [driver, folder / "file", folder / "shadow", first, cases, ways]
    done = run_mpi(
        mpi,
        ranks,
        [*prefix, "env", f"LD_PRELOAD={native('libbrigade_mpiio.so')}", *map(str, words)],
        BRIGADE_MPIIO="verbose",
        **environment,
    )
    assert done.returncode == 0 and "WRONG" not in done.stdout, done.stdout[:1500] + done.stderr
    report = done.stderr
    for what in ("reads",) if ways == ALONE else ("reads", "writes"):
        assert f"{what}: " in report and f"{what}: 0 calls taken over" not in report, report
    return report


@pytest.mark.parametrize("mpi", [*MPIS, *WHEELS])
def test_bytes_statuses_and_positions_are_as_mpi_says(mpi: str, tmp_path: Path) -> None:
    report = make(mpi, tmp_path, 2 if "mpich" in mpi else 3, 1, 20 if "mpich" in mpi else 60)
    assert "left to MPI" not in report


def test_independent_reads_with_gaps_are_taken_over_as_well(tmp_path: Path) -> None:
    make("openmpi", tmp_path, 3, 1, 40, ways=ALONE)


def test_they_are_with_the_simple_transport(tmp_path: Path) -> None:
    make("openmpi", tmp_path, 3, 400, 40, BRIGADE_IO="*:transport=simple")


@needs_nodes
def test_they_are_between_nodes(tmp_path: Path) -> None:
    wrapper = tmp_path / "as-nodes"
    wrapper.write_text("#!/bin/bash" + AS_NODES)
    wrapper.chmod(0o755)
    make("openmpi", tmp_path, 4, 300, 10, prefix=(str(wrapper), "2"))


def test_they_are_with_small_segments_and_ranks_that_share_no_memory(tmp_path: Path) -> None:
    hints = "*:segment=64K:stripe=64K:writers=2"
    make("openmpi", tmp_path, 4, 100, 10, BRIGADE_IO=hints)
    make("openmpi", tmp_path, 3, 200, 10, BRIGADE_IO=f"{hints}:share=no")


def test_the_command_reaches_the_program_behind_a_launcher(tmp_path: Path) -> None:
    driver = compile_mpi("openmpi", DRIVER, tmp_path / "driver", "-O1")
    words = [*LAUNCHERS["openmpi"], "2", driver, tmp_path / "file", tmp_path / "shadow", 1, 2, 1]
    command = [sys.executable, "-m", "brigade", "mpiio", "--report", "--", *map(str, words)]
    environment = {**os.environ, **ENVIRONMENT}
    done = subprocess.run(command, text=True, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "writes:" in done.stderr and " 0 calls taken over" not in done.stderr


@pytest.mark.all
@pytest.mark.parametrize("mpi", MPIS)
def test_they_are_in_many_more_programs(mpi: str, tmp_path: Path) -> None:
    make(mpi, tmp_path, 4 if mpi == "openmpi" else 3, 1000, 1000)
    if mpi == "openmpi":  # MPICH 4.0 gives wrong counts where it reads up to the end by itself
        make(mpi, tmp_path, 4, 3000, 1000, ways=ALONE | BLOCKING)
