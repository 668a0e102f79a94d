"""A program that syncs what it writes has it sent to the disk as it is written, once it has shown
that; one that does not has that left to the kernel."""

from __future__ import annotations

import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from mpi_world import EITHER_MPI, run_mpi

from brigade.paths import native

sys.path.append(str(Path(__file__).resolve().parents[1] / "io"))
from mpi_python import environment

MIB, RANKS = 1 << 20, 2
#: file by file: W writes 1 MiB of each rank, w 4 KiB, S syncs; and how many writes are sent
STEPS = [
    ("a", "W", 0),
    ("b", "WS", 0),
    ("c", "WWS", 2),
    ("d", "W", 1),  # and never synced
    ("e", "WSW", 1),  # nor is what is written last
    ("f", "WSWS", 1),
    ("g", "w", 0),  # too little to tell
    ("h", "W", 1),
]
PROGRAM = f"""
import sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
for name, steps, _ in {STEPS}:
    file = MPI.File.Open(comm, sys.argv[1] + name, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    at = 0
    for step in steps:
        if step == "S":
            file.Sync()
            continue
        n = {MIB} if step == "W" else 4096
        file.Write_at_all(at + comm.rank * n, bytes([65 + comm.rank]) * n)
        at += comm.size * n
    file.Close()
"""


@pytest.mark.parametrize("mpi", EITHER_MPI)
def test_bytes_are_sent_where_the_program_is_known_to_sync(mpi: str, tmp_path: Path) -> None:
    if not shutil.which("strace"):
        pytest.skip("needs Debian package strace")
    (tmp_path / "program.py").write_text(PROGRAM)
    trace = ["strace", "-ff", "-y", "-o", tmp_path / "log", "-e", "trace=sync_file_range"]
    preload = f"LD_PRELOAD={native('libbrigade_mpiio.so')}"
    words = [*trace, "env", preload, sys.executable, "-B", tmp_path / "program.py"]
    done = run_mpi(mpi, RANKS, [*words, tmp_path / "f."], **environment(mpi, tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    sent: Counter[str] = Counter()
    for log in tmp_path.glob("log.*"):
        for call in re.finditer(
            r"sync_file_range\(\d+<[^>]*/f\.(\w)>, \d+, (\d+)", log.read_text()
        ):
            sent[call[1]] += int(call[2])
    assert {name: sent[name] / (RANKS * MIB) for name, _, _ in STEPS} == {
        name: writes for name, _, writes in STEPS
    }
    for name, steps, _ in STEPS:
        n = MIB if "W" in steps else 4096
        call = b"A" * n + b"B" * n
        assert (tmp_path / f"f.{name}").read_bytes() == call * steps.upper().count("W")
