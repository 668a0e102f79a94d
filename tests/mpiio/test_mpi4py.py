"""mpi4py's wheel, which looks for each form for large counts by itself, beneath libbrigade_mpiio:
an MPI that has no such forms must not lack them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from decimal_comma import decimal_comma
from mpi_world import MPIS, run_mpi

from brigade.paths import native

sys.path.append(str(Path(__file__).resolve().parents[1] / "io"))
from mpi_python import environment

PROGRAM = """
import sys
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size, n = comm.rank, comm.size, 500
mine = np.arange(n, dtype="i4") + 1000 * rank
said = []

def both(comm, name, write, read):
    file = MPI.File.Open(comm, sys.argv[1] + name, MPI.MODE_CREATE | MPI.MODE_RDWR)
    got = np.zeros(n, "i4")
    write(file, mine)
    file.Sync()
    comm.Barrier()
    file.Sync()
    file.Seek(0)
    read(file, got)
    file.Seek_shared(0)
    said.append([name, int(got.sum()), file.Get_size(), file.Get_type_extent(MPI.DOUBLE)])
    file.Close()

def at(r):
    return 4 * n * (r % size)

def split(file, how, *arguments):
    getattr(file, how + "_begin")(*arguments)
    getattr(file, how + "_end")(arguments[-1])

both(comm, "all", lambda f, b: (f.Seek(at(rank)), f.Write_all(b)),
     lambda f, b: (f.Seek(at(rank + 1)), f.Read_all(b)))
both(comm, "at_all", lambda f, b: f.Write_at_all(at(rank), b),
     lambda f, b: f.Read_at_all(at(rank + 1), b))
both(comm, "at", lambda f, b: f.Write_at(at(rank), b), lambda f, b: f.Read_at(at(rank + 1), b))
both(comm, "alone", lambda f, b: (f.Seek(at(rank)), f.Write(b)),
     lambda f, b: (f.Seek(at(rank + 1)), f.Read(b)))
both(comm, "split", lambda f, b: split(f, "Write_at_all", at(rank), b),
     lambda f, b: split(f, "Read_at_all", at(rank + 1), b))
both(comm, "i", lambda f, b: f.Iwrite_at(at(rank), b).Wait(),
     lambda f, b: f.Iread_at(at(rank + 1), b).Wait())
both(comm, "i_all", lambda f, b: f.Iwrite_at_all(at(rank), b).Wait(),
     lambda f, b: f.Iread_at_all(at(rank + 1), b).Wait())
both(comm, "ordered", lambda f, b: f.Write_ordered(b), lambda f, b: f.Read_at(at(rank + 1), b))
both(comm, "shared", lambda f, b: f.Write_shared(np.ones(n, "i4")),
     lambda f, b: f.Read_at(at(rank + 1), b))
half = comm.Split(rank % 2, rank)
both(half, f"half{rank % 2}", lambda f, b: f.Write_at_all(4 * n * half.rank, b),
     lambda f, b: f.Read_at_all(4 * n * half.rank, b))
print(f"rank {rank}:", MPI.Query_thread() == MPI.THREAD_MULTIPLE, said, flush=True)
"""


def said(
    mpi: str, folder: Path, name: str, *under: str, before: str = "", **more: str
) -> tuple[list[str], str]:
    program = folder / "program.py"
    program.write_text(before + PROGRAM)
    words = ["env", *under, sys.executable, "-B", str(program), str(folder / name)]
    done = run_mpi(mpi, 4, words, **environment(mpi, folder), **more)
    lines = sorted(re.findall(r"^rank \d:.*$", done.stdout, re.MULTILINE))
    assert done.returncode == 0 and len(lines) == 4, done.stdout + done.stderr
    return [line.replace(str(folder / name), "") for line in lines], done.stderr


@pytest.mark.parametrize("mpi", MPIS)
def test_a_python_program_sees_what_it_sees_without_it(mpi: str, tmp_path: Path) -> None:
    plain, _ = said(mpi, tmp_path, "plain")
    preload = f"LD_PRELOAD={native('libbrigade_mpiio.so')}"
    under, report = said(mpi, tmp_path, "under", preload, BRIGADE_MPIIO="verbose")
    assert under == plain
    assert all("True" in line for line in plain), "several threads may call MPI"
    found = re.search(r"writes: (\d+) calls taken over", report)
    assert found and int(found[1]) >= 5, report


def test_the_report_has_a_decimal_point_whatever_the_language_of_the_program(
    tmp_path: Path,
) -> None:
    told = {"BRIGADE_MPIIO": "verbose", **decimal_comma(tmp_path / "locales")}
    before = "import locale\nlocale.setlocale(locale.LC_ALL, '')\n"
    preload = f"LD_PRELOAD={native('libbrigade_mpiio.so')}"
    _, report = said("openmpi", tmp_path, "under", preload, before=before, **told)
    assert re.search(r"writes: \d+ calls taken over, \d+ bytes, \d+\.\d{6} s$", report, re.M)
