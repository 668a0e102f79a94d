"""Who writes windows that others fill goes on with its own parts in between, and nobody waits in a
circle."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi_world import MPIS, compile_mpi, run_mpi


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("hints", ["share=yes", "share=yes:writers=1", "share=no"])
def test_a_writer_that_has_few_bytes_keeps_nobody_waiting_where_ranks_take_turns(
    mpi: str, hints: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    program = compile_mpi(mpi, Path(__file__).with_name("serving.c"), tmp_path / "serving")
    monkeypatch.setenv("BRIGADE_IO", f"*:{hints}")
    done = run_mpi(mpi, 3, [str(program), str(tmp_path / "file")])
    assert done.stdout == "0\n", done.stdout + done.stderr
