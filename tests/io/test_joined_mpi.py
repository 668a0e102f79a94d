"""libbrigade_io joins the program's own MPI, whichever it is; where it cannot, it says why."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from mpi_world import INCLUDE, MPIS, compile_mpi, run_mpi
from world_of_c import compile_c, library

from brigade.paths import native_dir

# Each rank writes its number and reads the number of its opposite, through Fortran's handle too.
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
#include <brigade/io.h>

#ifndef TO_FORTRAN
#define TO_FORTRAN MPI_Comm_c2f
#endif

int main(int argc, char **argv)
{
    int rank, size, got = -1;
    struct brg_error err = {.text = "well"};
    brg_file *f;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!brg_file_open(MPI_COMM_WORLD, "m", BRG_WRITE | BRG_CREATE, NULL, &f, &err) &&
        !brg_file_write(f, 4 * rank, &rank, 4, &err) && !brg_file_commit(f, &err) &&
        !brg_file_close(f, &err) &&
        !brg_file_open_fortran(TO_FORTRAN(MPI_COMM_WORLD), "m", BRG_READ, NULL, &f, &err) &&
        !brg_file_read(f, 4 * (size - 1 - rank), &got, 4, &err))
        brg_file_close(f, &err);
    printf("%d %d %s\\n", rank, got, err.text);
    MPI_Finalize();
    return 0;
}
"""

# A tool between the program and MPI, which counts the duplicates that the program makes.
TOOL = """
#include <mpi.h>
#include <stdio.h>
static int seen;
int MPI_Comm_dup(MPI_Comm c, MPI_Comm *d) { seen++; return PMPI_Comm_dup(c, d); }
int MPI_Ibcast(void *b, int n, MPI_Datatype t, int r, MPI_Comm c, MPI_Request *q)
{ seen++; return PMPI_Ibcast(b, n, t, r, c, q); }
int MPI_Finalize(void) { printf("tool %d\\n", seen); fflush(stdout); return PMPI_Finalize(); }
"""

# What stands before MPI's own calls, and says how many communicators are copied.
COUNTER = """
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
static int copies;
int PMPI_Comm_idup(MPI_Comm c, MPI_Comm *d, MPI_Request *q)
{
    int (*real)(MPI_Comm, MPI_Comm *, MPI_Request *);
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Comm_idup");
    copies++;
    return real(c, d, q);
}
int MPI_Finalize(void) { printf("copies %d\\n", copies); fflush(stdout); return PMPI_Finalize(); }
"""

# A program that has no MPI, or a part of one, and says that a number is its communicator.
NO_MPI = """
#include <stdio.h>
#include <brigade/io.h>
int main(void)
{
    struct brg_error err = {0};
    brg_file *f;
    int rc = brg_file_open_handle(7, "m", BRG_WRITE | BRG_CREATE, NULL, &f, &err);
    printf("%d %s\\n", rc, err.text);
    return 0;
}
"""


def said_by(program: Path) -> str:
    done = subprocess.run([program], capture_output=True, text=True, cwd=program.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


def program_of(mpi: str, folder: Path) -> Path:
    (folder / "m.c").write_text(PROGRAM)
    return compile_mpi(mpi, folder / "m.c", folder / "program")


def lines_of(done: subprocess.CompletedProcess[str], folder: Path) -> list[str]:
    """What two ranks of PROGRAM and a tool have printed. The file is as they wrote it, and the next
    ones will have to make their own."""
    assert done.returncode == 0, done.stderr
    assert (folder / "m").read_bytes() == np.arange(2, dtype="=i4").tobytes(), done.stderr
    (folder / "m").unlink()
    return sorted(done.stdout.splitlines())


def linked() -> list[str]:
    native = native_dir()
    return [f"-I{INCLUDE}", f"-L{native}", "-lbrigade_io", f"-Wl,-rpath,{native}"]


WELL = ["0 1 well", "1 0 well"]


@pytest.mark.parametrize("mpi", MPIS)
def test_the_ranks_of_a_program_share_a_file_and_a_tool_sees_none_of_it(mpi, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = program_of(mpi, tmp_path)
    (tmp_path / "tool.c").write_text(TOOL)
    tool = compile_mpi(mpi, tmp_path / "tool.c", tmp_path / "tool.so", "-shared", "-fPIC")
    assert lines_of(run_mpi(mpi, 2, [program]), tmp_path) == WELL
    watched = run_mpi(mpi, 2, ["env", f"LD_PRELOAD={tool}", program])
    assert lines_of(watched, tmp_path) == [*WELL, "tool 0", "tool 0"]


@pytest.mark.parametrize("mpi", MPIS)
def test_ranks_of_one_node_copy_no_communicator(mpi, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = program_of(mpi, tmp_path)
    (tmp_path / "counter.c").write_text(COUNTER)
    options = ("-shared", "-fPIC", "-D_GNU_SOURCE")
    counter = compile_mpi(mpi, tmp_path / "counter.c", tmp_path / "counter.so", *options)
    for hints, copies in (("share=yes", 0), ("share=no", 1)):
        command = ["env", f"LD_PRELOAD={counter}", f"BRIGADE_IO=*:{hints}", program]
        lines = lines_of(run_mpi(mpi, 2, command), tmp_path)
        assert lines == [*WELL, *[f"copies {copies}"] * 2]


@pytest.mark.parametrize("mpi", MPIS)
def test_files_are_right_without_threads_and_with_a_thread_for_each(mpi, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = Path(__file__).with_name("threads_driver.c")
    program = compile_mpi(mpi, source, tmp_path / "program", "-lpthread")
    for level, name in (("0", "single"), ("3", "multiple")):
        done = run_mpi(mpi, 2, [program, level])
        assert done.stdout.split("\n") == [f"{name} 0", f"{name} 0", ""], done.stderr


def test_a_program_of_the_interface_that_mpi_5_fixes_is_joined(tmp_path):
    compiler = shutil.which("mpicc_abi")
    if not compiler:
        pytest.skip("needs an MPI with MPI 5.0's binary interface: mpicc_abi on PATH")
    (tmp_path / "m.c").write_text(PROGRAM)
    command = [compiler, "-DTO_FORTRAN=MPI_Comm_toint", tmp_path / "m.c", *linked()]
    subprocess.run([*command, "-o", tmp_path / "m"], check=True)
    launcher = Path(compiler).with_name("mpiexec")
    done = subprocess.run(
        [launcher, "-n", "2", tmp_path / "m"], cwd=tmp_path, capture_output=True, text=True
    )
    assert lines_of(done, tmp_path) == WELL


def test_a_program_without_mpi_that_passes_a_communicator_is_told_to_link_one(tmp_path):
    program = compile_c(NO_MPI, tmp_path / "program", *linked())
    assert "-22 there is no MPI in this process" in said_by(program)


def test_a_program_that_has_not_called_mpi_init_is_told_so(tmp_path):
    (tmp_path / "m.c").write_text(NO_MPI)
    program = compile_mpi("openmpi", tmp_path / "m.c", tmp_path / "program", "-Wl,--no-as-needed")
    assert "-22 MPI does not run in this process" in said_by(program)


def test_a_part_of_a_static_mpi_is_named_with_what_it_lacks(tmp_path):
    source = "int ompi_mpi_comm_world;\nint PMPI_Init(void);\nint PMPI_Init(void) { return 0; }\n"
    program = compile_c(source + NO_MPI, tmp_path / "program", "-rdynamic", *linked())
    said = said_by(program)
    assert f"{program} lacks PMPI_Init_thread" in said
    assert "static" in said


def test_a_library_that_calls_itself_mpi_and_is_none_is_an_error(tmp_path):
    fake = library(tmp_path / "libfake.so", source="int PMPI_Init(void) { return 0; }")
    rpath = f"-Wl,-rpath,{tmp_path}"
    program = compile_c(NO_MPI, tmp_path / "program", *linked(), rpath, needs=[fake])
    assert "neither Open MPI nor of MPICH's kin" in said_by(program)
