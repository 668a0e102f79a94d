"""`use brigade_io`: files from Fortran, with both MPIs, compiled as a user would."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy
import pytest
from mpi_world import INCLUDE, MPIS, run_mpi

import brigade.io
from brigade.paths import native_dir

FLAGS = ["-g", "-Wall", "-fcheck=bounds,mem,pointer", "-std=f2018"]


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def compile_in(folder: Path, *command: object) -> None:
    words = [*map(str, command), *FLAGS]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled module, in which no MPI has a part."""
    if not shutil.which("gfortran"):
        pytest.skip("needs Debian package gfortran")
    folder = tmp_path_factory.mktemp("module")
    compile_in(folder, "gfortran", "-c", INCLUDE / "brigade/brigade_io.F90")
    return folder


@pytest.fixture(scope="module")
def driver(mpi: str, module: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = f"mpifort.{mpi}"
    if not shutil.which(compiler):
        pytest.skip(f"needs Debian package lib{mpi}-dev: {compiler}")
    folder = tmp_path_factory.mktemp(mpi)
    source = Path(__file__).with_name("fortran_driver.f90")
    objects = [f"-I{module}", source, module / "brigade_io.o"]
    link = [f"-L{native_dir()}", "-lbrigade_io", f"-Wl,-rpath,{native_dir()}"]
    compile_in(folder, compiler, "-o", "driver", *objects, *link)
    return folder / "driver"


@pytest.fixture
def written(mpi: str, driver: Path, tmp_path: Path) -> Path:
    path = tmp_path / "f"
    done = run_mpi(mpi, 3, [driver, "write", path])
    assert done.returncode == 0, done.stdout + done.stderr
    return path


def test_a_file_of_three_ranks_is_read_by_two_in_the_order_of_fortran(mpi, driver, written):
    done = run_mpi(mpi, 2, [driver, "read", written])
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_python_finds_the_same_arrays_with_dimensions_reversed(mpi, written):
    with brigade.io.open(None, written, "r") as file:
        j, i = numpy.mgrid[1:8, 1:6]
        assert numpy.array_equal(file.read_array("u"), 100.0 * i + j)
        for name in ("i1", "i2", "i4", "i8", "r4", "r8", "c4", "c8"):
            values = file.read_array(name)
            ranks = numpy.arange(3)
            assert values.dtype.kind + str(values.dtype.itemsize) == {
                "c4": "c8",
                "c8": "c16",
                "r4": "f4",
                "r8": "f8",
            }.get(name, name)
            assert numpy.array_equal(values, ranks - 1j * ranks if name[0] == "c" else ranks)


def test_a_failure_tells_every_rank_the_same_in_words(mpi, driver, written):
    done = run_mpi(mpi, 2, [driver, "fail", written])
    said = {rank: re.findall(rf"^{rank} (-\d+ .*)", done.stdout, re.MULTILINE) for rank in "01"}
    assert said["0"] == said["1"], done.stderr
    codes = [line.split()[0] for line in said["0"]]
    assert codes == ["-2", "-9", "-22", "-22", "-22", "-22", "-22", "-22"]
    words = [
        "f.not",
        "no file is open",
        "nonsense",
        "another type",
        "another type or length",
        "array u",
        "array u",
        "2 elements from -4 on",
    ]
    assert [word for word, line in zip(words, said["0"]) if word not in line] == []


WIDE = """
program wide
  use brigade_io
  use, intrinsic :: iso_fortran_env
  implicit none
  type(brg_file) :: file
  type(brg_error) :: err
  integer :: flags, back(3) = 0
  flags = ior(BRG_WRITE, BRG_CREATE)
  call brg_file_open_alone('f', flags, file, err)
  if (err%code == 0) call brg_file_write_array(file, 'n', [3_int64], [1_int64], [1, 2, 3], err)
  if (err%code == 0) call brg_file_commit(file, err)
  if (err%code /= 0) error stop 1
  call brg_file_close(file, err)
  call brg_file_open_alone('f', BRG_READ, file, err)
  if (err%code == 0) call brg_file_read_array(file, 'n', [1_int64], back, err)
  if (err%code /= 0 .or. any(back /= [1, 2, 3])) error stop 2
  call brg_file_close(file, err)
  ! communicators of either kind, though no MPI runs here
  call brg_file_open(1_int32, 'g', flags, file, err)
  if (err%code /= -22) error stop 3
  call brg_file_open(1_int64, 'g', flags, file, err)
  if (err%code /= -22) error stop 4
end program
"""


@pytest.mark.parametrize("kind", [[], ["-fdefault-integer-8"]])
def test_integers_may_have_eight_bytes_by_default(kind: list[str], tmp_path: Path) -> None:
    if not shutil.which("gfortran"):
        pytest.skip("needs Debian package gfortran")
    (tmp_path / "wide.f90").write_text(WIDE)
    sources = [INCLUDE / "brigade/brigade_io.F90", "wide.f90"]
    link = [f"-L{native_dir()}", "-lbrigade_io", f"-Wl,-rpath,{native_dir()}"]
    compile_in(tmp_path, "gfortran", *kind, "-o", "wide", *sources, *link)
    done = subprocess.run([tmp_path / "wide"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_constants_are_those_of_the_header():
    header = (INCLUDE / "brigade/io.h").read_text()
    module = (INCLUDE / "brigade/brigade_io.F90").read_text()
    flags = dict(re.findall(r"^    (BRG_\w+) = (\d+)", header, re.MULTILINE))
    types = re.search(r"typedef enum brg_type \{(.*?)\} brg_type;", header, re.DOTALL)
    assert types
    names = re.findall(r"\bBRG_\w+", types[1])
    flags |= {name: str(number) for number, name in enumerate(names, 1)}
    flags["BRG_MAX_DIMS"] = re.search(r"#define BRG_MAX_DIMS (\d+)", header)[1]
    told = dict(re.findall(r"\b(BRG_\w+) = (\d+)", module))
    assert len(told) == 19
    assert told == flags


def test_every_call_of_the_header_is_bound():
    header = (INCLUDE / "brigade/io.h").read_text()
    declared = set(re.findall(r"BRG_API [^;(]*?\b(brg_\w+)\(", header))
    bound = (INCLUDE / "brigade/brigade_io_c.inc").read_text()
    missing = declared - set(re.findall(r"name='(brg_\w+)'", bound))
    assert missing == {
        "brg_file_open_handle",  # for C
        "brg_file_open_world",
        "brg_file_on_progress",
        "brg_type_bytes",
    }


# Whether there is data, asked where the module itself asks it: memory that nobody touches.
LARGE = """
module large
#define ELEMENT integer(int8)
#define CODE BRG_INT8
#include "brigade/brigade_io_kind.inc"

  function is_there(buf) bind(c)
    integer(int8), contiguous, target, intent(in) :: buf(:)
    logical(c_bool) :: is_there
    is_there = c_associated(address(buf))
  end function
end module

program main
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env
  implicit none
  interface
    function is_there(buf) bind(c)
      import :: int8, c_bool
      integer(int8), contiguous, target, intent(in) :: buf(:)
      logical(c_bool) :: is_there
    end function
  end interface
  integer(int64), parameter :: sizes(3) = [0_int64, 1_int64, 2_int64**31 + 5]
  integer(int8), allocatable :: buf(:)
  integer :: i
  do i = 1, 3
    allocate(buf(sizes(i)))
    print '(l1)', is_there(buf)
    deallocate(buf)
  end do
end program
"""


def test_data_of_more_elements_than_an_integer_counts_is_data(module: Path, tmp_path: Path) -> None:
    (tmp_path / "large.F90").write_text(LARGE)
    link = [module / "brigade_io.o", f"-L{native_dir()}", "-lbrigade_io"]
    include = [f"-I{INCLUDE}", f"-I{module}", f"-Wl,-rpath,{native_dir()}"]
    compile_in(tmp_path, "gfortran", "-o", "large", *include, "large.F90", *link)
    done = subprocess.run([tmp_path / "large"], capture_output=True, text=True)
    assert done.stdout.split() == ["F", "T", "T"], done.stdout + done.stderr
