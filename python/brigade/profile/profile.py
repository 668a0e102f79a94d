"""The profile: what `brigade profile` finds out, as plain values that JSON holds.

Made from a `brigade.trace.events.Trace` by `brigade.profile.build`; read by the page, the terminal
report, `brigade explain`, `brigade budget` and the model. Every total is a sum over `cells`, so
that no two reports can disagree.

All seconds are floats since the job's start or lengths, all sizes bytes. A value that was not
measured is None, never 0.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from brigade.errors import BrigadeError
from brigade.load_json import load_json

SCHEMA = 1

# Where a mount's answers come from.
SHARED, LOCAL, MEMORY, KERNEL = "shared", "local", "memory", "kernel"

# In the order in which a start-up passes through them. `launch`: what a rank's wrapper processes
# (shells, env) do before the program; `user`: from the first file of the user's own on.
PHASES = ("launch", "ld.so", "interpreter", "imports", "mpi", "user")

# What decided that a place was searched, strongest statement first.
CAUSES = (
    *("RPATH", "RUNPATH", "LD_LIBRARY_PATH", "ld.so.cache", "default path", "sys.path"),
    *("package path", "PATH", "locale", "other"),
)


class Cell(NamedTuple):
    """Calls of one rank that are alike. `rank` -1: a process that belongs to no rank."""

    rank: int
    phase: str  # of PHASES
    mount: str  # mount point
    kind: str  # of brigade.trace.events.KINDS
    failed: bool
    by_path: bool  # False: asked about a descriptor
    before_main: bool
    calls: int
    seconds: float  # in the calls, tracing included
    bytes: int


@dataclass
class MountUse:
    point: str
    fstype: str
    source: str
    kind: str  # SHARED, LOCAL, MEMORY or KERNEL


@dataclass
class RankTimes:
    """When a rank was where; None: it never was there."""

    rank: int
    host: str
    processes: int
    program: str
    start_s: float
    main_s: float | None  # ld.so was done
    ready_s: float | None  # its last start-up look-up
    mpi_s: tuple[float, float] | None
    end_s: float | None
    status: int | None


@dataclass
class SearchEntry:
    """One place that was searched, and what was wasted on it. Counts are those of one rank (the
    median over ranks, processes of a rank together)."""

    cause: str  # of CAUSES
    place: str  # the directory
    hwcaps: bool  # a glibc-hwcaps (or older) subdirectory of the place: kept apart
    owner: str  # who made it a place: the object with the RPATH, the variable, pyvenv.cfg, "ld.so"
    mount: str
    calls: int
    wasted: int  # calls that found nothing there
    found: int  # libraries or modules that were found there
    seconds_wasted: float
    names: dict[str, int] = field(default_factory=dict)  # what was sought in vain -> calls
    relative: bool = False  # an empty or relative entry of a variable: another folder elsewhere


@dataclass
class Node:
    """One file that was loaded, and who asked for it. `loader` is an index into the list, or -1."""

    kind: str  # "program", "library", "extension", "module", "process"
    name: str
    path: str
    loader: int
    asked: str  # how: "DT_NEEDED", "dlopen", "import", "exec", "script"
    certain: bool  # False: inferred from the order and the sources
    calls: int  # of its search and its reading, on one rank
    wasted: int
    seconds: float
    import_us: int | None = None  # its own time, from -X importtime


@dataclass
class Identical:
    """What all ranks ask alike: what a broadcast can take off the file system."""

    calls: int  # by path on shared mounts, all ranks
    alike: int  # of them, those that every rank makes with the same answer
    paths: int  # different paths among those
    only_some: dict[str, int] = field(default_factory=dict)  # path -> calls; the most frequent


@dataclass
class ServerCount:
    """What the clients' own counters say reached the servers while the job ran."""

    source: str  # "moosefs", "slowfs", "nfs", "lustre"
    mount: str
    state: str  # "as found", "cold" or "warm"
    requests: int
    bytes_read: int | None
    kinds: dict[str, int] = field(default_factory=dict)


@dataclass
class Timeline:
    """Operations in equal steps of time; `of` says whose: "calls" on shared mounts (the trace's),
    or the `source` of a ServerCount."""

    of: str
    step_s: float
    kinds: dict[str, list[int]] = field(default_factory=dict)


@dataclass
class Overhead:
    """What tracing cost: seconds of the same start-up traced and plain, where both were run."""

    stops: int
    stopped_s: float
    traced_s: float | None = None
    plain_s: float | None = None


@dataclass
class Insight:
    """One finding, in the shape severity, insight, recommendation, command."""

    severity: str  # "critical", "warning", "info" or "good"
    title: str
    detail: str
    recommendation: str = ""
    command: str = ""


@dataclass
class Profile:
    brigade: str  # version
    made: str  # ISO 8601
    command: list[str]
    program: list[str]
    launcher: str | None
    mechanism: str
    seen: list[str]
    lost: list[str]
    overhead: Overhead
    ranks: list[RankTimes]
    mounts: list[MountUse]
    cells: list[Cell]
    searches: list[SearchEntry] = field(default_factory=list)
    tree: list[Node] = field(default_factory=list)
    identical: Identical | None = None
    server: list[ServerCount] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    insights: list[Insight] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)  # read or mapped, shared mounts -> size
    after: Profile | None = None  # the same job under Brigade
    complete: bool = True  # False: counts are lower bounds; `lost` says why
    schema: int = SCHEMA

    def total(self, **wanted: Any) -> int:
        """Calls of all cells whose fields have the wanted values: total(kind="open", failed=True).

        `place` stands for the kind of the cell's mount: total(place=SHARED).
        """
        place = wanted.pop("place", None)
        kinds = {mount.point: mount.kind for mount in self.mounts}
        return sum(
            cell.calls
            for cell in self.cells
            if (place is None or kinds.get(cell.mount) == place)
            and all(getattr(cell, name) == value for name, value in wanted.items())
        )


def as_dict(profile: Profile) -> dict[str, Any]:
    """For JSON: cells as lists in the order of Cell's fields, named once in `cell_fields`."""
    found = {f.name: getattr(profile, f.name) for f in dataclasses.fields(profile)}
    for name, value in found.items():
        if name == "after":
            found[name] = as_dict(value) if value else None
        elif name == "cells":
            found[name] = [list(cell) for cell in value]
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            found[name] = dataclasses.asdict(value)
        elif isinstance(value, list) and value and dataclasses.is_dataclass(value[0]):
            found[name] = [dataclasses.asdict(one) for one in value]
    return {"schema": found.pop("schema"), "cell_fields": list(Cell._fields), **found}


def from_dict(data: dict[str, Any]) -> Profile:
    """The profile that `as_dict` gave. Raises KeyError or TypeError for anything else."""
    values = dict(data)
    if values.pop("schema") != SCHEMA or values.pop("cell_fields") != list(Cell._fields):
        raise TypeError("another schema")
    values["cells"] = [Cell(*cell) for cell in values["cells"]]
    values["overhead"] = Overhead(**values["overhead"])
    for name, kind in _LISTS.items():
        values[name] = [kind(**one) for one in values[name]]
    for one in values["ranks"]:
        one.mpi_s = tuple(one.mpi_s) if one.mpi_s else None
    values["identical"] = Identical(**values["identical"]) if values["identical"] else None
    values["after"] = from_dict(values["after"]) if values["after"] else None
    return Profile(**values)


_LISTS: dict[str, Any] = {
    "ranks": RankTimes,
    "mounts": MountUse,
    "searches": SearchEntry,
    "tree": Node,
    "server": ServerCount,
    "timelines": Timeline,
    "insights": Insight,
}


def save(profile: Profile, path: str | os.PathLike[str]) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as out:
        json.dump(as_dict(profile), out)
        out.write("\n")


def load(path: str | os.PathLike[str]) -> Profile:
    """Read a profile. Raises BrigadeError if there is none, or it is something else."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as text:
            return from_dict(load_json(text.read()))
    except OSError as error:
        raise BrigadeError(
            f"{os.fspath(path)}: {error.strerror}",
            hint="make one with `brigade profile --json FILE -- srun -n 2 …`",
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrigadeError(
            f"{os.fspath(path)} is not a profile of this version ({error})",
            hint="make one with `brigade profile --json FILE -- srun -n 2 …`",
        ) from error
