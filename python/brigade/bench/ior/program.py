"""brigade-ior, compiled with the MPI's own compiler at first use, then found again."""

from __future__ import annotations

import shlex
from pathlib import Path

from brigade import paths
from brigade.bench.checkpoint.program import CLOCK, DRIVERS, compiled, parallel_hdf5
from brigade.bench.drivers.pynamic import MARK
from brigade.bench.ior.options import SOURCES


def prepare(base: Path, mpicc: str, shmem: bool = False) -> Path:
    """The program below `base`, compiled if it is not there; BrigadeError if it cannot be. It has
    HDF5 where there is a parallel one for this MPI. shmem: it has OpenSHMEM too, and `mpicc` is
    OpenSHMEM's compiler."""
    sources = sorted(path for path in SOURCES.iterdir() if path.suffix in (".c", ".h", ".def"))
    sources += CLOCK
    native = paths.native("libbrigade_io.so").parent
    words = [*shlex.split(mpicc), "-std=gnu17", "-O2", "-w", f'-DMARK="{MARK}"']
    words += [f"-I{native}/include", f"-I{DRIVERS}"]
    words += [str(path) for path in sources if path.suffix == ".c"]
    words += [f"-L{native}", f"-Wl,-rpath,{native}", "-lbrigade_io"]
    words += ["-lbrigade_shmemio", "-lm", *(["-DWITH_SHMEM"] if shmem else [])]
    hdf5 = parallel_hdf5(mpicc)
    if not hdf5.absent:
        words += ["-DWITH_HDF5", *hdf5.words]
    return compiled(base, "brigade-ior", words, sources)
