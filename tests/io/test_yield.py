"""Writing behind a program's back gives way to its collective calls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mpi_world import EITHER_MPI, MPIS, compile_mpi, run_mpi
from store_world import need_strace

import brigade.io
from brigade.paths import native_dir

CALLS = 16  # that are wrapped
MIB = 1 << 20
HINTS = "async=yes:buffer=256M:sync=no:uring=no:direct-io=no:transport=direct"


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def driver(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).with_name("yield_driver.c")
    return compile_mpi(mpi, source, tmp_path_factory.mktemp(mpi) / "driver", "-ldl")


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("slow") / "slow.so"
    source = Path(__file__).with_name("slow_barrier.c")
    command = ["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


def pmpi() -> str:
    return str(native_dir() / "libbrigade_pmpi.so")


@pytest.mark.parametrize("way", ["linked", "preloaded"])
def test_every_wrapped_call_does_what_it_did_and_is_seen(
    mpi: str, driver: Path, tmp_path: Path, way: str
) -> None:
    environment = {"LD_PRELOAD": pmpi()} if way == "preloaded" else {}
    if way == "linked":
        source = Path(__file__).with_name("yield_driver.c")
        words = [sys.executable, "-m", "brigade", "io-config", "--pmpi"]
        first = subprocess.run(words, text=True, capture_output=True, check=True).stdout.strip()
        driver = compile_mpi(mpi, source, tmp_path / "linked", first, "-ldl")
    done = run_mpi(mpi, 2, [driver, "calls"], **environment)
    assert done.returncode == 0, done.stderr
    lines = sorted(line.split() for line in done.stdout.splitlines())
    assert lines == [[str(rank), "0", str(10 * CALLS)] for rank in range(2)]


@pytest.mark.parametrize("flags", [[], ["-DF08"]], ids=["mpi", "mpi_f08"])
def test_calls_of_fortran_are_seen_too(mpi: str, tmp_path: Path, flags: list[str]) -> None:
    if not shutil.which(f"mpifort.{mpi}"):
        pytest.skip(f"needs Debian packages gfortran and lib{mpi}-dev")
    source, program = Path(__file__).with_name("yield_driver.F90"), tmp_path / "driver"
    command = [f"mpifort.{mpi}", *flags, "-o", program, source, pmpi()]
    built = subprocess.run(
        [*command, f"-Wl,-rpath,{native_dir()}"], cwd=tmp_path, text=True, capture_output=True
    )
    if built.returncode and "Cannot open module file" in built.stderr:
        pytest.skip(f"{mpi} has no module for this compiler")
    assert built.returncode == 0, built.stderr
    done = run_mpi(mpi, 2, [program])
    assert done.stdout.split() == ["30", "T"], done.stderr


def steps(
    mpi: str, driver: Path, preload: list[str], path: Path, hints: str, mib: int = 32
) -> list[float]:
    """Milliseconds of a barrier alone, and within; how many; MiB a second; how many suffered: of
    the worst rank."""
    command: list[str | Path] = [driver, "steps", path, HINTS + hints, str(mib * MIB)]
    done = run_mpi(mpi, 2, command, LD_PRELOAD=" ".join(preload))
    assert done.returncode == 0, done.stderr
    lines = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == [0, 0], done.stdout
    return max(lines, key=lambda line: line[2])[1:]


def test_barriers_that_suffer_slow_the_writing_down(
    mpi: str, driver: Path, slow: Path, tmp_path: Path
) -> None:
    if mpi == "mpich":
        pytest.skip("MPICH's barriers spin: on few cores they take what chance gives them")
    for _ in range(3):  # others on this machine slow barriers down as well
        watched = steps(mpi, driver, [pmpi(), str(slow)], tmp_path / "f", ":slowdown=1.5")
        alone = steps(mpi, driver, [str(slow)], tmp_path / "f", "")
        share, share_alone = (said[4] / said[2] for said in (watched, alone))
        within = watched[1] < 2.5 * watched[0]  # the factor, and what it takes to learn
        # counted, as times are those of a busy machine, too; unwatched, there is always a backlog
        if within and 0 < 2 * share < share_alone and share_alone > 0.8:
            break
    else:
        raise AssertionError(f"watched {watched}, not watched {alone}")
    assert (tmp_path / "f").stat().st_size == 64 * MIB


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
def test_a_cap_on_the_rate_holds(mpi: str, driver: Path, tmp_path: Path) -> None:
    capped = steps(mpi, driver, [], tmp_path / "f", ":rate=20M", 12)
    assert 10 < capped[3] < 22, "MiB a second, the first MiB of 12 at once"


def test_a_cap_holds_for_a_file_of_one_piece(tmp_path: Path) -> None:
    began = time.monotonic()
    f = brigade.io.open(None, tmp_path / "f", "w", async_=True, rate="1M", sync=False)
    f.write(0, bytes(MIB))
    request = f.commit(wait=False)
    assert request is not None
    while not request.test():
        time.sleep(0.01)
    f.close()
    assert time.monotonic() - began > 0.85, "all but the first eighth waits"


@pytest.mark.parametrize("mpi", EITHER_MPI, indirect=True)
def test_what_is_held_back_reaches_the_disk_as_it_goes(
    mpi: str, driver: Path, tmp_path: Path
) -> None:
    """And not all at the end, when nothing holds the kernel back."""
    need_strace()
    for hints, most in (":rate=40M:sync=yes", 2 * 8 - 4), (":rate=40M", 0), (":sync=yes", 0):
        trace = tmp_path / "trace"
        only = ["strace", "-f", "-o", trace, "-e", "trace=sync_file_range"]
        command = [*only, driver, "steps", tmp_path / "f", HINTS + hints, str(8 * MIB)]
        done = run_mpi(mpi, 1, command)
        assert done.returncode == 0, done.stderr
        stretches = [line for line in trace.read_text().splitlines() if f", {MIB}, SYNC" in line]
        assert len(stretches) == most, hints  # the checksums are one call, of everything


def test_calls_of_python_are_seen_too() -> None:
    pytest.importorskip("mpi4py")
    program = """
import ctypes
from mpi4py import MPI
class Sums(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("calls", "x", "b", "xx", "xb", "bb", "sorts")]
watch, sums = ctypes.CDLL(None), Sums()
for busy in (0, 1):
    watch.brg_pmpi_busy(busy)
    for _ in range(20):
        MPI.COMM_WORLD.Barrier()
watch.brg_pmpi_sums(ctypes.byref(sums))
print(int(sums.calls))
"""
    done = run_mpi("openmpi", 1, [sys.executable, "-c", program], LD_PRELOAD=pmpi())
    assert done.stdout == "20\n", done.stderr


def test_a_call_of_ours_is_no_gap_either() -> None:
    program = """
import ctypes, time
class Place(ctypes.Structure):
    _fields_ = [("inside", ctypes.c_int)] + [(n, ctypes.c_double) for n in ("since", "gap", "long")]
watch, place = ctypes.CDLL(None), Place()
for inside in (1, 0):
    time.sleep(0.1)
    watch.brg_pmpi_ours(inside)
    watch.brg_pmpi_place(ctypes.byref(place))
    print(place.inside, place.since < 0.1)
"""
    command = ["env", f"LD_PRELOAD={pmpi()}", sys.executable, "-c", program]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.stdout == "1 True\n0 True\n", done.stderr


SPY = "int calls, depth; void brg_pmpi_ours(int in) { calls += in; depth += in ? 1 : -1; }"


def test_asking_a_request_is_a_call_of_ours(tmp_path: Path) -> None:
    spy = tmp_path / "spy.so"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(spy)]
    subprocess.run(command, input=SPY, text=True, check=True)
    program = f"""
import ctypes, brigade.io
spy = ctypes.CDLL(None)
said = lambda name: ctypes.c_int.in_dll(spy, name).value
with brigade.io.open(None, {str(tmp_path / "file")!r}, "w", **{{"async": True}}) as f:
    f.write(0, bytes(100000))
    request = f.commit(wait=False)
    asked = 0
    while not request.test():
        asked += 1
    print(said("calls") - asked, said("depth"))
"""
    environment = {**os.environ, "LD_PRELOAD": str(spy)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, text=True, capture_output=True
    )
    assert done.stdout == "1 0\n", done.stderr
