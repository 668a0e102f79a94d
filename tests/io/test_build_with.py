"""Programs are built with libbrigade_io from where it was installed: by the words of
`brigade io-config`, by pkg-config, by CMake."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import brigade
from brigade.paths import native_dir

ROOT = Path(__file__).resolve().parents[2]
WHEEL = Path(brigade.__file__).parent / "_native"
BUILD = native_dir().parent

HELLO = """
#include <stdio.h>
#include <brigade/io.h>

int main(void)
{
    struct brg_error err;
    brg_file *f;
    char text[6] = "";
    if (brg_file_open_alone("hello", BRG_WRITE | BRG_CREATE, NULL, &f, &err) ||
        brg_file_write(f, 0, "hello", 5, &err) || brg_file_commit(f, &err) ||
        brg_file_close(f, &err) || brg_file_open_alone("hello", BRG_READ, NULL, &f, &err) ||
        brg_file_read(f, 0, text, 5, &err) || brg_file_close(f, &err))
        return fprintf(stderr, "%s\\n", err.text), 1;
    return puts(text) < 0;
}
"""

CMAKE_PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(app LANGUAGES C)
find_package(brigade 0.1 REQUIRED)
add_executable(app hello.c)
target_link_libraries(app brigade::io)
install(TARGETS app DESTINATION bin)
"""


FORTRAN_PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(app LANGUAGES C Fortran)
find_package(brigade REQUIRED)
add_executable(app hello.f90)
target_link_libraries(app brigade::io_fortran)
"""

FORTRAN = """
program hello
  use brigade_io
  type(brg_file) :: file
  type(brg_error) :: err
  call brg_file_open_alone('none', BRG_READ, file, err)
  print '(i0)', err%code
end program
"""


def run(*words: object, cwd: Path, **variables: str) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def io_config(*words: str, native: Path) -> list[str]:
    command = [sys.executable, "-m", "brigade", "io-config", *words]
    return run(*command, cwd=ROOT, BRIGADE_NATIVE=str(native)).split()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "hello.c"
    path.write_text(HELLO)
    return path


@pytest.fixture(scope="session")
def prefix(tmp_path_factory) -> Path:
    """A copy that `cmake --install` made and that somebody moved."""
    if not (BUILD / "CMakeCache.txt").exists():
        pytest.skip("needs a build tree of CMake (`make native`)")
    folder = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--prefix", folder / "before", cwd=folder)
    return (folder / "before").rename(folder / "moved here")


def natives() -> list[object]:
    wheel = pytest.mark.skipif(
        not WHEEL.is_dir(), reason="needs Brigade installed from its wheel (`make build`)"
    )
    return [pytest.param(native_dir(), id="build"), pytest.param(WHEEL, id="wheel", marks=wheel)]


@pytest.mark.parametrize("native", natives())
def test_io_config_builds_a_program_that_finds_its_library(native, source):
    words = io_config("--cflags", "--libs", native=native)
    run("cc", "-Wall", "-Werror", "-o", "app", source, *words, cwd=source.parent)
    assert run("./app", cwd=source.parent) == "hello\n"


def test_io_config_that_is_asked_for_nothing_says_what_to_ask():
    done = subprocess.run(
        [sys.executable, "-m", "brigade", "io-config"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "--cflags --libs" in done.stderr


def test_pkg_config_builds_a_program_from_a_copy_that_was_moved(prefix, source):
    found = list(prefix.rglob("brigade-io.pc"))
    assert len(found) == 1
    command = "cc -o app hello.c $(pkg-config --cflags --libs brigade-io | sed 's/%20/ /g')"
    folder = source.parent / "prefix"  # pkg-config escapes blanks for make; a link has none
    folder.symlink_to(prefix)
    where = folder / found[0].parent.relative_to(prefix)
    run("sh", "-c", command, cwd=source.parent, PKG_CONFIG_PATH=str(where))
    assert run("./app", cwd=source.parent) == "hello\n"


def test_cmake_builds_a_program_from_a_copy_that_was_moved(prefix, source):
    (source.parent / "CMakeLists.txt").write_text(CMAKE_PROJECT)
    run("cmake", "-B", "b", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=source.parent)
    run("cmake", "--build", "b", cwd=source.parent)
    assert run("b/app", cwd=source.parent) == "hello\n"
    run("cmake", "--install", "b", "--prefix", "installed", cwd=source.parent)
    assert run("installed/bin/app", cwd=source.parent) == "hello\n"


def test_cmake_builds_a_program_with_the_folder_that_io_config_names(source):
    (source.parent / "CMakeLists.txt").write_text(CMAKE_PROJECT)
    folder = io_config("--cmake", native=native_dir())
    run("cmake", "-B", "b", f"-Dbrigade_DIR={folder[0]}", cwd=source.parent)
    run("cmake", "--build", "b", cwd=source.parent)
    assert run("b/app", cwd=source.parent) == "hello\n"
    run("cmake", "--install", "b", "--prefix", "installed", cwd=source.parent)
    assert run("installed/bin/app", cwd=source.parent) == "hello\n"


@pytest.mark.skipif(not shutil.which("gfortran"), reason="needs Debian package gfortran")
def test_cmake_compiles_the_fortran_module_with_the_compiler_of_the_project(source):
    (source.parent / "CMakeLists.txt").write_text(FORTRAN_PROJECT)
    (source.parent / "hello.f90").write_text(FORTRAN)
    folder = io_config("--cmake", native=native_dir())
    run("cmake", "-B", "b", f"-Dbrigade_DIR={folder[0]}", cwd=source.parent)
    run("cmake", "--build", "b", cwd=source.parent)
    assert run("b/app", cwd=source.parent) == "-2\n"


COMPILERS = {
    "C99": ["cc", "-std=c99", "-xc"],
    "C17": ["cc", "-std=c17", "-xc"],
    "C++17": ["c++", "-std=c++17", "-xc++"],
}


@pytest.mark.parametrize("language", COMPILERS)
@pytest.mark.parametrize("mpi", ["", "openmpi", "mpich"])
def test_the_headers_compile_without_a_warning(language, mpi, tmp_path):
    text = "".join(f"#include <brigade/{name}.h>\n" for name in ("io", "image", "shmemio"))
    text += "int f(brg_file *);\n"
    compiler, *flags = COMPILERS[language]
    if mpi:
        compiler = f"mpicc.{mpi}" if compiler == "cc" else f"mpicxx.{mpi}"
        if not shutil.which(compiler):
            pytest.skip(f"needs {compiler}")
        text = (
            "#include <mpi.h>\n" + text + "int g(brg_file **f);\nint g(brg_file **f)\n"
            '{ return brg_file_open(MPI_COMM_WORLD, "x", BRG_READ, NULL, f, NULL); }\n'
        )
    (tmp_path / "t").write_text(text)
    warn = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    system = ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
    include = f"-I{ROOT / 'include'}"
    run(compiler, *flags, *warn, *system, include, "-c", "-o", "t.o", "t", cwd=tmp_path)


def exported(library: Path) -> set[str]:
    said = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    )
    symbols = [line.split() for line in said.stdout.splitlines()]
    return {words[-1].split("@")[0] for words in symbols if words[1] != "A"}


@pytest.mark.parametrize(
    ("name", "prefix", "one"),
    [("io", "brg", "brg_file_write_block"), ("shmemio", "SHMEM", "SHMEM_File_write_at_all")],
)
def test_a_library_exports_what_its_header_declares_and_nothing_else(name, prefix, one):
    header = (ROOT / f"include/brigade/{name}.h").read_text()
    declared = set(re.findall(rf"BRG_API [^;(]*?\b({prefix}_\w+)\(", header))
    assert one in declared
    assert exported(native_dir() / f"libbrigade_{name}.so") == declared
