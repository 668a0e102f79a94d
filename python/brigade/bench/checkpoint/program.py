"""The benchmark's program, compiled with the MPI's own compiler at first use, then found again.

Which peers it has depends on what the machine has: parallel HDF5 through pkg-config, ADIOS2 through
the wheel that a Python has installed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from brigade import paths
from brigade.bench.drivers.pynamic import MARK
from brigade.errors import BrigadeError

DRIVERS = Path(__file__).parents[1] / "drivers"
SOURCES = DRIVERS / "checkpoint"
#: of every program that compares when ranks of several nodes began and ended
CLOCK = [DRIVERS / "clock.c", DRIVERS / "clock.h"]
#: of every program that carries out a schedule
SHARED = [DRIVERS / name for name in ("exchange.c", "exchange.h", "companions.c", "companions.h")]


@dataclass(frozen=True)
class Peer:
    """A library that is there: words for the compiler; or why it is absent."""

    name: str
    words: tuple[str, ...] = ()
    absent: str = ""


@dataclass(frozen=True)
class Program:
    path: Path
    mpicc: str
    components: dict[str, str]  # "ompio" and "romio" as this Open MPI calls them
    absent: dict[str, str]  # back ends that are not there, and why


def prepare(base: Path, mpicc: str, python: str = sys.executable) -> Program:
    """Compile the program below `base` if it is not there; BrigadeError if it cannot be. `python`
    is the one whose ADIOS2 is measured."""
    opened = is_open_mpi(mpicc)
    peers = [parallel_hdf5(mpicc), _adios2(python)]
    here = [peer for peer in peers if not peer.absent]
    absent = {peer.name: peer.absent for peer in peers if peer.absent}
    components = mpiio_components(mpicc) if opened else {}
    for name in ("ompio", "romio"):
        if name not in components:
            absent[name] = (
                f"this Open MPI has no {name}" if opened else f"{mpicc} is not Open MPI's compiler"
            )
    path = compiled(base, "checkpoint", _words(mpicc, here), _sources())
    return Program(path, mpicc, components, absent)


def compiled(base: Path, name: str, words: list[str], sources: list[Path]) -> Path:
    """The program that this command makes of these sources, below `base`, made if need be. The same
    word may be another MPI's compiler tomorrow, where modules are loaded."""
    behind = [os.path.realpath(shutil.which(words[0]) or ""), says([words[0], "-show"])]
    text = "\0".join([*words, *behind, platform.machine(), *(s.read_text() for s in sources)])
    path = base / f"{name}-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}"
    if not path.exists():
        base.mkdir(parents=True, exist_ok=True)
        _compile(words, path)
    return path


def _sources() -> list[Path]:
    return [*sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")]), *CLOCK, *SHARED]


def _words(mpicc: str, peers: list[Peer]) -> list[str]:
    native = paths.native("libbrigade_io.so").parent
    words = [*shlex.split(mpicc), "-O2", "-w", f'-DMARK="{MARK}"']
    words += [f"-I{native}/include", f"-I{DRIVERS}"]
    words += [str(source) for source in _sources() if source.suffix == ".c"]
    words += [f"-L{native}", f"-Wl,-rpath,{native}", "-lbrigade_io", "-lbrigade_shmemio"]
    for peer in peers:
        words += [f"-DWITH_{peer.name.upper()}", *peer.words]
    return words


def _compile(words: list[str], path: Path) -> None:
    making = path.with_name(f".making-{os.getpid()}-{path.name}")
    command = [*words, "-o", str(making)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.splitlines()
            errors = [line for line in lines if "undefined" in line or "rror" in line]
            said = (errors or lines or [f"status {done.returncode}"])[0]
            raise BrigadeError(f"{words[0]} could not make the benchmark's program: {said}")
        making.rename(path)
    except OSError as error:
        raise BrigadeError(
            f"{words[0]}: {error.strerror}",
            hint="the benchmark is compiled with the MPI's compiler: load its module, or set MPICC",
        ) from error
    finally:
        making.unlink(missing_ok=True)


def says(command: list[str]) -> str:
    """What a command prints; "" if it cannot be had."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def open_mpi(mpicc: str) -> int:
    """Open MPI's major version, if this is its compiler or that of its OpenSHMEM; 0 if not."""
    said = says([*shlex.split(mpicc), "--showme:version"])
    version = re.search(r"Open (?:MPI|SHMEM):? v?(\d+)", said)
    return int(version[1]) if version else 0


def is_open_mpi(mpicc: str) -> bool:
    """Whether this is Open MPI's compiler, or that of its OpenSHMEM."""
    return open_mpi(mpicc) > 0


def mpiio_components(mpicc: str) -> dict[str, str]:
    """The components for MPI-IO of the Open MPI whose compiler this is: {"ompio": "ompio", "romio":
    "romio321"}."""
    compiler = shutil.which(shlex.split(mpicc)[0]) or ""
    beside = os.path.join(os.path.dirname(compiler), "ompi_info")
    info = beside if os.path.exists(beside) else "ompi_info"
    found = {}
    for line in says([info, "--parsable", "--param", "io", "all"]).splitlines():
        parts = line.split(":")
        if parts[:2] == ["mca", "io"] and len(parts) > 2:
            for name in ("ompio", "romio"):
                if parts[2].startswith(name):
                    found[name] = parts[2]
    return found


def parallel_hdf5(mpicc: str) -> Peer:
    """Debian has one for each MPI; elsewhere there is one, and it must be parallel. One of another
    MPI would bring that MPI into the process."""
    own, other = ("openmpi", "mpich") if is_open_mpi(mpicc) else ("mpich", "openmpi")
    for name in (f"hdf5-{own}", "hdf5"):
        said = says(["pkg-config", "--cflags", "--libs", name])
        words = shlex.split(said) if other not in said else []
        folders = [Path(word[2:]) for word in words if word.startswith("-I")]
        parallel = any(
            "#define H5_HAVE_PARALLEL 1" in header.read_text()
            for folder in folders
            for header in folder.glob("H5pubconf*.h")
        )
        if words and parallel:
            return Peer("hdf5", tuple(words))
    if not shutil.which("pkg-config"):
        return Peer("hdf5", absent="no pkg-config to find it")
    return Peer("hdf5", absent=f"no parallel HDF5 for {mpicc} (Debian: libhdf5-{own}-dev)")


def _adios2(python: str) -> Peer:
    """The C library inside the wheel."""
    find = (
        "import importlib.util as u; s = u.find_spec('adios2'); "
        "print(s.submodule_search_locations[0] if s else '')"
    )
    folder = says([python, "-c", find]).strip()
    if not folder or not (Path(folder) / "include/adios2_c.h").exists():
        return Peer("adios2", absent=f"{python} has no ADIOS2 (pip install adios2)")
    link = ["-Wl,--allow-shlib-undefined", f"-L{folder}", f"-Wl,-rpath,{folder}", "-ladios2_c"]
    return Peer("adios2", (f"-I{folder}/include", *link))
