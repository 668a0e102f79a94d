"""Which transport `auto` takes for one file after another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mpi_world import MPIS, compile_mpi, run_mpi


@pytest.mark.parametrize("mpi", MPIS)
def test_later_files_try_the_other_transport_and_then_stay_with_the_faster(
    mpi: str, tmp_path: Path
) -> None:
    program = compile_mpi(mpi, Path(__file__).with_name("learning.c"), tmp_path / "learning")
    done = run_mpi(mpi, 2, [program, tmp_path / "file"])
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.findall(r"^transport: (\w+) \((.*)", done.stdout, re.MULTILINE)
    assert [transport for transport, _ in said[:2]] == ["direct", "rotate"]
    assert said[0][1].startswith("runs are long") and "direct" in said[1][1]
    rates = dict(re.findall(r"(direct|rotate) (\d+) MB/s", said[2][1]))
    assert said[2][0] == max(rates, key=lambda name: int(rates[name])) or len(set(rates)) < 2
