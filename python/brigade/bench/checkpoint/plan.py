"""What the checkpoint benchmark writes, and through what. Pure.

A cell is a pattern, a record size and a number of ranks: every rank's bytes of one file. A variant
is a way of writing them: a back end of the program, hints, and for MPI-IO a component of Open MPI.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from brigade.bench.component import PRELOADED
from brigade.errors import UsageError

PATTERNS = {
    "contiguous": "each call writes one record of every rank, one after another",
    "strided": "one call; each rank has every n-th record of the file",
    "4d": "one call; each rank has a block of a 4-D lattice of 192-byte sites in C order",
}
RECORDS = (1 << 10, 64 << 10, 1 << 20, 16 << 20)
SITE = 192  # bytes: a spinor of a lattice code, 12 complex doubles
EXTENTS = (8, 16)  # of a rank's part of the lattice in each dimension
_RANK_BYTES = 1 << 20  # what a rank writes of small strided records
_DIMS = 4

BACK_ENDS = {
    "brigade": "libbrigade_io; with hints: brigade:transport=rotate:checksums=no",
    "onesided": "libbrigade_shmemio over the MPI's ranks",
    "preloaded": "MPI-IO beneath `brigade mpiio`",
    "ompio": "MPI-IO of Open MPI, its own component",
    "romio": "MPI-IO of Open MPI, the ROMIO component",
    "mpiio": "MPI-IO, whatever the MPI has (MPICH and its kin: ROMIO)",
    "posix-shared": "every rank writes its pieces into the shared file",
    "posix-fpp": "every rank writes its bytes, as one, into a file of its own",
    "hdf5": "parallel HDF5, collective",
    "adios2": "ADIOS2's BP5 without MPI, a file for each rank",
}


@dataclass(frozen=True)
class Cell:
    """One file: `calls` arrays of grid * count elements; or, with `header`, per rank a header and
    then count[0] bytes."""

    pattern: str
    record: int
    ranks: int
    element: int
    grid: tuple[int, ...]
    count: tuple[int, ...]
    calls: int = 1
    header: int = 0

    @property
    def bytes(self) -> int:
        """Of the whole file."""
        block = self.element * math.prod(self.count)
        return self.ranks * (self.header + self.calls * block)

    @property
    def name(self) -> str:
        return f"{self.pattern} {size_name(self.record)}"


@dataclass(frozen=True)
class Variant:
    """A way of writing. `component` is what does a job's MPI-IO, or "": see
    python/brigade/bench/component.py."""

    name: str
    back_end: str
    hints: str = ""
    component: str = ""


def size_name(size: int) -> str:
    """`64 KiB`."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def grid(ranks: int, dims: int) -> tuple[int, ...]:
    """`ranks` as a product of `dims` numbers that are as equal as can be, the largest last: so the
    dimension that lies together in the file is cut first, and runs are short at every width."""
    best = [1] * dims
    for prime in _primes(ranks):
        best[best.index(min(best))] *= prime
    return tuple(sorted(best))


def _primes(number: int) -> list[int]:
    """The prime factors, the largest first."""
    found, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found[::-1]


def cells(patterns: Iterable[str], records: Iterable[int], ranks: int) -> list[Cell]:
    """The cells of one number of ranks. Of `4d` there is one for each size of a rank's part."""
    records = list(records)
    wrong = [record for record in records if record < 8 or record % 8]
    if wrong:
        raise UsageError(f"a record of {wrong[0]} bytes: sizes are multiples of 8")
    made = []
    for pattern in patterns:
        if pattern == "4d":
            made += [_lattice(extent, ranks) for extent in EXTENTS]
        else:
            of = {"contiguous": _contiguous, "strided": _strided}[pattern]
            made += [of(record, ranks) for record in records]
    return made


def _contiguous(record: int, ranks: int) -> Cell:
    calls = max(1, min(8, _RANK_BYTES // record))
    return Cell("contiguous", record, ranks, 1, (ranks,), (record,), calls)


def _strided(record: int, ranks: int) -> Cell:
    rows = max(2, _RANK_BYTES // record)
    return Cell("strided", record, ranks, 1, (1, ranks), (rows, record))


def _lattice(extent: int, ranks: int) -> Cell:
    """The record is a rank's run of bytes: one line of its part of the lattice."""
    return Cell("4d", extent * SITE, ranks, SITE, grid(ranks, _DIMS), (extent,) * _DIMS)


def variant(text: str, components: dict[str, str]) -> Variant:
    """A variant of a word of the user's, NAME or NAME:HINTS; `components` has Open MPI's names of
    `ompio` and `romio`, as far as it has them."""
    name, _, hints = text.partition(":")
    if name not in BACK_ENDS:
        raise UsageError(f"no back end '{name}'", hint=f"there are {', '.join(BACK_ENDS)}")
    if name in ("ompio", "romio"):
        return Variant(text, "mpiio", hints, components.get(name, ""))
    if name == PRELOADED:
        return Variant(text, "mpiio", hints, PRELOADED)
    return Variant(text, name, hints)


def line(number: int, cell: Cell, way: Variant, **settings: int) -> str:
    """A line of the program's schedule."""
    words = {
        "id": number,
        "back": way.back_end,
        "element": cell.element,
        "grid": ",".join(map(str, cell.grid)),
        "count": ",".join(map(str, cell.count)),
        "calls": cell.calls,
        "header": cell.header,
        **settings,
    }
    if way.hints:
        words["hints"] = way.hints
    return " ".join(f"{key}={value}" for key, value in words.items())
