"""Ranks wait outside MPI; what the program has left under way there must not wait with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi_world import MPIS, compile_mpi, run_mpi

SOURCE = Path(__file__).with_name("under_way.c")


@pytest.mark.parametrize("mpi", MPIS)
def test_a_message_arrives_while_its_sender_waits_for_a_write(mpi: str, tmp_path: Path):
    program = compile_mpi(mpi, SOURCE, tmp_path / "under_way")
    # over TCP the sender has to do its part of a large message
    done = run_mpi(mpi, 3, [program, tmp_path / "file"], OMPI_MCA_btl="self,tcp",
                   OMPI_MCA_btl_tcp_if_include="lo")  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "file").stat().st_size == 300
