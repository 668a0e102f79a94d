"""The engine for ADIOS2: programs get it as a plug-in, and steps are files that others read."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from mpi_world import INCLUDE, run_mpi

import brigade.io
from brigade.paths import native_dir

FOUND = importlib.util.find_spec("adios2")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples/adios2"

pytestmark = pytest.mark.skipif(
    FOUND is None or not shutil.which("c++"),
    reason="needs c++ and ADIOS2: pip install 'adios2>=2.12'",
)

# Rank 0 alone puts `once`; rank 1 puts two blocks. Rank 0 ends in a step that rank 1 has not begun.
STEPS = """
import sys
import adios2, numpy as np
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
io = adios2.Adios().declare_io("io")
io.set_engine("Plugin")
io.set_parameters({{"PluginName": "b", "PluginLibrary": {plugin!r}, "File": sys.argv[1],
                   "Ranks": "world"}})
"""
WRITE = (
    STEPS
    + """
u = io.define_variable("u", np.zeros(1), [6], [0], [1])
once = io.define_variable("once", np.zeros(1, np.int8), [2], [0], [2])
time = io.define_variable("time", 0)
never = io.define_variable("never", np.zeros(1), [6], [0], [1])
engine = io.open("x", adios2.bindings.Mode.Write)
for step in range(int(sys.argv[2])):
    engine.begin_step()
    engine.put(time, 40 + step)  # a temporary, gone when this returns
    others = [np.array([-1]) for _ in range(100)]
    for part in [[1.0, 2.0]] if rank == 0 else [[3.0, 4.0], [5.0, 6.0]]:
        u.set_selection([[int(part[0]) - 1], [2]])
        engine.put(u, np.array(part) + 10 * step, adios2.bindings.Mode.Sync)
    if rank == 0 and step == 1:
        seven = np.array([7, 8], np.int8)
        engine.put(once, seven)
        engine.perform_puts()
        seven[:] = 0  # it is the program's again
    engine.end_step()
if rank == 0:
    engine.begin_step()
    engine.put(u, np.array([9.0, 9.0]), adios2.bindings.Mode.Sync)
else:
    engine.close()
"""
)
READ = (
    STEPS
    + """
with adios2.Stream(io, "x", "r") as found:
    for _ in found.steps():
        names = sorted(found.available_variables())
        once = found.read("once").tolist() if "once" in names else []
        said = rank, found.current_step(), names, found.read("u").tolist(), int(found.read("time"))
        sys.stdout.write(" ".join(map(str, (*said, *once))) + "\\n")
"""
)

# Closed within a step, by the engine that is named.
CLOSED = (
    STEPS
    + """
if sys.argv[2] != "Plugin":
    io = adios2.Adios().declare_io("own")
    io.set_engine(sys.argv[2])
x = io.define_variable("x", np.zeros(1), [4], [0], [4])
right = np.arange(4.0) + 1  # where it is until Close
for mode in adios2.bindings.Mode.Write, adios2.bindings.Mode.Append:
    engine = io.open(sys.argv[1], mode)
    engine.begin_step()
    engine.put(x, right, adios2.bindings.Mode.Deferred)
    engine.close()
io.remove_all_variables()
engine = io.open(sys.argv[1], adios2.bindings.Mode.Read)
for ends in True, False:
    got = np.full(4, -1.0)
    print(engine.begin_step())
    engine.get(io.inquire_variable("x"), got, adios2.bindings.Mode.Deferred)
    engine.end_step() if ends else engine.close()
    print(got)
"""
)

# Every kind of number, and attributes; what was written goes on with Append.
KINDS = (
    STEPS
    + """
kinds = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64 complex64 complex128"
right = {{k: (np.arange(6).reshape(2, 3) * 2).astype(k) for k in kinds.split()}}
for mode in "wa":
    with adios2.Stream(io, "x", mode) as out:
        for _ in out.steps(2):
            for kind, values in right.items():
                out.write(kind, values, [2, 3], [0, 0], [2, 3])
            out.write_attribute("names", ["", "", "a", "bc", ""])
            out.write_attribute("dx", np.array([0.5, 0.25]))
with adios2.Stream(io, "x", "r") as found:
    for _ in found.steps():
        for kind, values in right.items():
            part = np.zeros((1, 2), kind)
            variable = found.inquire_variable(kind)
            variable.set_selection([[1, 1], [1, 2]])
            found._engine.get(variable, part, adios2.bindings.Mode.Sync)
            assert (part == values[1:, 1:]).all(), kind
        names, dx = found.read_attribute("names"), found.read_attribute("dx").tolist()
        print(found.current_step(), names, dx)
"""
)

# Names with slashes where an array's has none; the last one is put in the second step only.
NAMES = (
    STEPS
    + """
names = ["/data/0/fields/E/x", "a//b", "c/", "/late"]
for name in names:
    io.define_variable(name, np.zeros(1), [2], [0], [2])
with adios2.Stream(io, "x", "w") as out:
    for _ in out.steps(2):
        for i, name in enumerate(names[: 3 + out.current_step()]):
            out.write(name, np.array([i, out.current_step()], float))
with adios2.Stream(io, "x", "r") as found:
    for _ in found.steps():
        print({{name: found.read(name).tolist() for name in sorted(found.available_variables())}})
io.define_variable("late", np.zeros(1), [2], [0], [2])
with adios2.Stream(io, "x", "w") as out:
    out.begin_step()
    out.end_step()
"""
)


@pytest.fixture(scope="module")
def adios() -> Path:
    return Path(FOUND.origin).parent


@pytest.fixture(scope="module")
def plugin(adios: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plug-in, built as docs/how-to/adios2.md says."""
    path = tmp_path_factory.mktemp("plugin") / "libBrigadeEngine.so"
    words = [sys.executable, "-m", "brigade", "io-config"]
    environment = {**os.environ, "BRIGADE_NATIVE": str(native_dir().absolute())}
    asked = [
        subprocess.check_output([*words, word], env=environment, text=True).split()
        for word in ("--adios2", "--cflags", "--libs")
    ]
    flags = ["-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Werror"]
    link = [f"-L{adios}", "-ladios2_cxx", "-ladios2_core", f"-Wl,-rpath,{adios}"]
    compile_cpp(path, *flags, *sum(asked, []), f"-isystem{adios / 'include'}", *link)
    return path


@pytest.fixture(scope="module")
def driver(adios: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """adios2_driver.cpp"""
    if not shutil.which("mpicxx.openmpi"):
        pytest.skip("needs Debian package libopenmpi-dev: mpicxx.openmpi")
    path = tmp_path_factory.mktemp("driver") / "adios2_driver"
    source = str(Path(__file__).with_name("adios2_driver.cpp"))
    compile_cpp(path, "-std=c++17", source, *program_words(adios), compiler="mpicxx.openmpi")
    return path


def program_words(adios: Path) -> list[str]:
    """What a program of ADIOS2 is compiled with, behind its source."""
    words = [f"-isystem{adios / 'include'}", f"-L{adios}", f"-Wl,-rpath,{adios}"]
    return [*words, "-ladios2_cxx", "-ladios2_core", f"-Wl,-rpath-link,{adios}:{adios}.libs"]


def compile_cpp(target: Path, *words: str, compiler: str = "c++") -> None:
    done = subprocess.run([compiler, "-o", target, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def python(ranks: int, program: str | Path, *words: object, **variables: str):
    start = (
        [sys.executable, program] if isinstance(program, Path) else [sys.executable, "-c", program]
    )
    return run_mpi("openmpi", ranks, [*start, *map(str, words)], **variables)


def test_a_program_in_cpp_writes_and_reads_its_steps(adios, plugin, tmp_path):
    program = tmp_path / "waves"
    compile_cpp(program, "-std=c++17", str(EXAMPLES / "waves.cpp"), *program_words(adios))
    done = subprocess.run([program, plugin, tmp_path / "w"], capture_output=True, text=True)
    assert done.stdout == "0 0 metre\n1 0 metre\n2 0 metre\n", done.stderr


def test_ranks_of_a_python_program_share_a_file_although_its_adios_knows_no_mpi(plugin, tmp_path):
    done = python(3, EXAMPLES / "waves.py", plugin, tmp_path / "w")
    assert done.stdout == "0 True metre\n1 True metre\n2 True metre\n", done.stderr
    with brigade.io.open(None, tmp_path / "w.1") as file:
        right = numpy.sin(0.01 * numpy.arange(1000) + 1)
        assert numpy.array_equal(file.read_array("wave"), right)
        assert file.attrs["unit"] == "metre"


def test_what_ranks_put_may_differ_and_what_none_put_is_not_there(plugin, tmp_path):
    path = tmp_path / "w"
    done = python(2, WRITE.format(plugin=str(plugin)), path, 3)
    assert done.returncode == 0, done.stderr
    done = python(2, READ.format(plugin=str(plugin)), path)
    u = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    right = []
    for rank, step in itertools.product(range(2), range(3)):  # the fourth was not closed
        names, once = (["once", "time", "u"], " 7 8") if step == 1 else (["time", "u"], "")
        right += [f"{rank} {step} {names} {[v + 10 * step for v in u]} {40 + step}{once}"]
    assert sorted(done.stdout.splitlines()) == right, done.stderr


def test_numbers_of_every_kind_come_back_and_append_goes_on_behind_the_last_step(plugin, tmp_path):
    done = python(1, KINDS.format(plugin=str(plugin)), tmp_path / "w")
    right = [f"{step} ['', '', 'a', 'bc', ''] [0.5, 0.25]" for step in range(4)]
    assert done.stdout.splitlines() == right, done.stderr


def test_variables_have_their_names_and_arrays_such_as_a_file_may_have(plugin, tmp_path):
    done = python(1, NAMES.format(plugin=str(plugin)), tmp_path / "w")
    steps = [
        {"/data/0/fields/E/x": [0.0, s], "a//b": [1.0, s], "c/": [2.0, s], "/late": [3.0, s]}
        for s in (0.0, 1.0)
    ]
    del steps[0]["/late"]
    assert [ast.literal_eval(line) for line in done.stdout.splitlines()] == steps, done.stderr
    assert "variables /late and late would be one array: late" in done.stderr
    with brigade.io.open(None, tmp_path / "w.0") as file:
        assert list(file) == ["adios2.put", "data/0/fields/E/x", "late", "a/b", "c"]
        assert file["a/b"].attrs["adios2.name"] == "a//b"


def test_attributes_that_are_characters_come_back_as_such(driver, plugin, tmp_path):
    done = run_mpi("openmpi", 1, [driver, "chars", plugin, tmp_path / "w"])
    right = ["char char x", "chars char a b", "number int8_t"]
    assert done.stdout.splitlines() == right, done.stderr
    with brigade.io.open(None, tmp_path / "w.0") as file:
        assert file.attrs["chars"].tolist() == list(b"ab")


def test_texts_that_are_not_utf_8_come_back_as_they_were(driver, plugin, tmp_path):
    done = run_mpi("openmpi", 1, [driver, "texts", plugin, tmp_path / "w"])
    right = ["latin", "utf-8", "empty", "cut", "several", "uint8_t of 6"]
    assert done.stdout.splitlines() == right, done.stderr
    with brigade.io.open(None, tmp_path / "w.0") as file:
        assert file.attrs["utf-8"] == "\N{DEGREE SIGN}C"
        assert file.attrs["latin"].tolist() == list(b"\xb0C")
        assert file.attrs["adios2.bytes"] == "cut\0latin\0several"


def test_an_attribute_that_cannot_be_written_is_every_ranks_failure(driver, plugin, tmp_path):
    done = run_mpi("openmpi", 2, [driver, "long", plugin, tmp_path / "w"])
    assert done.returncode != 0
    assert "rank 0: Brigade: attribute precise: elements of type long double" in done.stderr
    assert "rank 1: Brigade: " in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_program_whose_arrays_lie_by_column_names_dimensions_from_the_other_end(
    driver, plugin, tmp_path
):
    done = run_mpi("openmpi", 2, [driver, "column", plugin, tmp_path / "w"])
    part = "10 20 11 21"
    assert done.stdout.splitlines() == [f"3 2 {part} {part}"] * 2, done.stderr
    with brigade.io.open(None, tmp_path / "w.0") as file:
        assert file.read_array("a").tolist() == [[0, 10, 20], [1, 11, 21]]


def test_a_parameter_that_is_none_of_its_words_is_refused(plugin, tmp_path):
    other = STEPS.replace('"world"', '"world", "Order": "diagonal"')
    program = other + "io.open('x', adios2.bindings.Mode.Write)"
    done = python(1, program.format(plugin=str(plugin)), tmp_path / "w")
    assert "parameter Order=diagonal: it is row or column" in done.stderr


def test_close_ends_a_step_and_gets_what_was_to_be_got_as_adios2_does(plugin, tmp_path):
    said = []
    for engine in ("BP5", "Plugin"):
        done = python(1, CLOSED.format(plugin=str(plugin)), tmp_path / engine, engine)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]
    assert said[0].count("[1. 2. 3. 4.]") == 2


def test_a_step_that_an_exception_leads_out_of_is_dropped(driver, plugin, tmp_path):
    done = run_mpi("openmpi", 2, [driver, "thrown", plugin, tmp_path / "w"])
    assert "rank 0: thrown" in done.stderr
    assert (tmp_path / "w.0").exists()
    assert not (tmp_path / "w.1").exists()


def test_steps_of_an_earlier_longer_run_are_not_read_as_this_ones(plugin, tmp_path):
    path = tmp_path / "w"
    for steps in (3, 2):
        assert python(1, WRITE.format(plugin=str(plugin)), path, steps).returncode == 0
    assert (tmp_path / "w.2").exists()
    done = python(1, READ.format(plugin=str(plugin)), path)
    assert len(done.stdout.splitlines()) == 2, done.stderr


def test_a_step_that_fails_says_so_on_every_rank_and_the_steps_before_stay(plugin, tmp_path):
    path = tmp_path / "w"
    assert python(2, WRITE.format(plugin=str(plugin)), path, 1).returncode == 0
    before = (tmp_path / "w.0").read_bytes()
    ended = "    engine.end_step()\n"
    closed = WRITE.replace(ended, f"    try:\n    {ended}    finally:\n        engine.close()\n")
    done = python(2, closed.format(plugin=str(plugin)), path, 1, BRIGADE_FAULT="io.fsync:0@0")
    assert done.returncode != 0
    assert done.stderr.count("RuntimeError: Brigade: ") == 2
    assert (tmp_path / "w.0").read_bytes() == before


def test_without_the_parameter_file_the_engine_says_what_is_missing(plugin, tmp_path):
    program = STEPS.replace('"File"', '"Fil"') + "io.open('x', adios2.bindings.Mode.Write)"
    done = python(1, program.format(plugin=str(plugin)), tmp_path / "w")
    assert "parameter File" in done.stderr


def test_the_engine_compiles_for_an_adios_with_mpi(adios, tmp_path):
    if not shutil.which("mpicxx.openmpi"):
        pytest.skip("needs Debian package libopenmpi-dev: mpicxx.openmpi")
    words = ["-std=c++17", "-fsyntax-only", "-DADIOS2_HAVE_MPI", "-DADIOS2_USE_MPI=1"]
    include = [f"-I{INCLUDE}", f"-isystem{adios / 'include'}"]
    source = INCLUDE / "brigade/brigade_adios2.cpp"
    done = subprocess.run(
        ["mpicxx.openmpi", *words, *include, source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
