"""The machine of the model: a metadata server, data servers, node caches, processors, a network.

One flat value that JSON holds. `brigade calibrate` writes it, `brigade predict --system` reads it.
Seconds, bytes and bytes a second throughout.

What must stay true: a field that nobody measured stands in `assumed`, and every report says so;
`spread` is the relative standard error of a field, or how far an assumed one may be off.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from dataclasses import dataclass, field
from typing import Any

from brigade.errors import BrigadeError
from brigade.model import document

SCHEMA = 1
HINT = "write one with `brigade calibrate -o system.json`; docs/how-to/predict.md has the fields"

# How far off a value may be that nobody measured: one standard deviation of its logarithm.
ASSUMED_SPREAD = 0.5


@dataclass(frozen=True)
class System:
    """All that the model knows of a machine. The defaults are a typical one, assumed."""

    name: str = "a typical cluster"
    # the metadata server: `servers` threads, each `service_s` a request
    service_s: float = 100e-6
    service_by_kind: dict[str, float] = field(default_factory=dict)  # where it differs
    service_cv: float = 1.0  # standard deviation / mean of a service: 0 constant, 1 exponential
    servers: int = 4
    round_trip_s: float = 50e-6  # network and client, of a request that waits for nobody
    # what a node's client remembers
    caches_names: bool = True  # files that were found, for as long as attributes live
    caches_absent: bool = True  # names that were not there
    attribute_life_s: float = 60.0
    # data
    data_servers: int = 16
    data_bandwidth: float = 2e9  # of each
    link_bandwidth: float = 5e9  # of a node to the file system
    # processors
    cores: int = 64  # of a node; of the whole machine if `shared_cores`
    shared_cores: bool = False  # all nodes are one machine, as in the lab
    request_cpu_s: float = 0.0  # processor seconds of client and server on these cores
    # nodes handing on segments (LogGP: hop_s is L + o, network_bandwidth is 1/G)
    hop_s: float = 200e-6
    network_bandwidth: float = 5e9
    segment_bytes: int = 1 << 20
    readers: int = 4
    decode_bandwidth: float = 0.9e9  # unpacked bytes a second and worker
    decode_workers: int = 8  # of a node
    stage_fixed_s: float = 0.5  # starting the staging step: launcher, MPI_Init, agreements
    # honesty
    limit_reached: bool = True  # False: the server answers more than these values say
    assumed: tuple[str, ...] = ()  # fields that nobody measured
    spread: dict[str, float] = field(default_factory=dict)  # field -> relative standard error

    def service(self, kind: str) -> float:
        """Seconds of one server thread for a request of this kind."""
        return self.service_by_kind.get(kind, self.service_s)

    def spread_of(self, name: str) -> float:
        """Relative standard error of a field, 0 of one that is exact."""
        default = ASSUMED_SPREAD if name in self.assumed else 0.0
        return self.spread.get(name, default)


# Fields of a machine that cannot be known without looking.
MEASURABLE = (
    *("service_s", "round_trip_s", "data_bandwidth", "link_bandwidth", "hop_s"),
    *("network_bandwidth", "decode_bandwidth", "stage_fixed_s", "servers", "data_servers"),
    *("cores", "caches_names", "caches_absent"),
)

# What decides the shape of a job or of its requests is not drawn at random even if it was assumed.
DRAWN = tuple(one for one in MEASURABLE if one not in ("cores", "caches_names", "caches_absent"))
WHOLE = ("servers", "data_servers")  # drawn as whole numbers


def typical() -> System:
    """A stated guess, for want of a measurement: every field of it is assumed."""
    return dataclasses.replace(System(), assumed=MEASURABLE)


def to_json(system: System) -> dict[str, Any]:
    """The system as JSON holds it."""
    return {"schema": SCHEMA, "kind": "brigade system", **dataclasses.asdict(system)}


def from_json(data: dict[str, Any]) -> System:
    """The system that `to_json` gave; fields left out keep their defaults, and are assumed.

    Raises BrigadeError for what is not a system, or has impossible values.
    """
    given = document.fields(data, "a system", System, SCHEMA, HINT)
    assumed = {*given.pop("assumed", ()), *(name for name in MEASURABLE if name not in given)}
    names = [one.name for one in dataclasses.fields(System)]
    system = System(**given, assumed=tuple(name for name in names if name in assumed))
    check(system)
    return system


def check(system: System) -> None:
    """Raise BrigadeError if a value cannot be."""
    for one in dataclasses.fields(System):
        value = getattr(system, one.name)
        if one.type in ("float", "int") and not _is_number(value):
            raise BrigadeError(f"{one.name} of a system must be a number, not {value!r}", hint=HINT)
        if one.type == "int" and (value != int(value) or value < 1):
            raise BrigadeError(f"{one.name} must be a whole number from 1, not {value!r}")
        if one.type == "bool" and not isinstance(value, bool):
            raise BrigadeError(f"{one.name} must be true or false, not {value!r}")
        if one.type == "float" and value < 0:
            raise BrigadeError(f"{one.name} cannot be negative: {value!r}")
    for name in ("data_bandwidth", "link_bandwidth", "network_bandwidth", "decode_bandwidth"):
        if getattr(system, name) <= 0:
            raise BrigadeError(f"{name} must be more than 0 bytes a second")
    for name in ("spread", "service_by_kind"):
        table = getattr(system, name)
        if not isinstance(table, dict) or not all(
            _is_number(value) and value >= 0 for value in table.values()
        ):
            raise BrigadeError(f"{name} must hold numbers from 0, by name", hint=HINT)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def save(system: System, path: str | os.PathLike[str]) -> None:
    with open(path, "w", encoding="utf-8") as out:
        json.dump(to_json(system), out, indent=1)
        out.write("\n")


def load(path: str | os.PathLike[str]) -> System:
    """Read a system. Raises BrigadeError if there is none, or it is something else."""
    return document.load(path, "a system", from_json, HINT)
