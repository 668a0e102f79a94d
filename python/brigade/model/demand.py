"""What a start-up asks: requests of a rank, bytes of a node, processor seconds, a launcher's time.

Ranks of a node share its caches, so the *first on a node* and each *further* one are kept apart.
From a profile (`from_profile`), counts on a command line (`from_counts`), a file (`load`), or
counters measured at some widths (`brigade.model.fit`).

What must stay true: a value that nobody measured stands in `assumed`; counts are those of a plain
run, of the metadata server, unless the name says Brigade.
"""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass, field
from typing import Any

from brigade.errors import BrigadeError
from brigade.model import document
from brigade.model.system import ASSUMED_SPREAD, System

SCHEMA = 1
HINT = "docs/how-to/predict.md has the fields of a demand"
PACKED = 0.3  # image to what is unpacked from it: a scientific Python stack's
READ_BYTES = 1 << 20  # one read request to a data server


@dataclass(frozen=True)
class Demand:
    """One program's start-up."""

    name: str = "a program"
    source: str = "given"
    # direct: requests to the metadata server, by kind
    first: dict[str, float] = field(default_factory=dict)  # a node's first rank
    further: dict[str, float] = field(default_factory=dict)  # each further rank of the node
    node_reads: float = 0.0  # requests to data servers, once a node
    node_bytes: float = 0.0  # from data servers, once a node
    cpu_s: float = 0.0  # processor seconds of a rank
    node_cpu_s: float = 0.0  # processor seconds once a node: client and page cache
    fixed_s: float = 0.0  # seconds that do not depend on the width
    # under Brigade
    image_bytes: float = 0.0
    unpacked_bytes: float = 0.0
    brigade_requests: float = 100.0  # of all nodes together: finding, checking, reading the image
    misses: float = 0.0  # requests of each rank that the image does not answer
    brigade_cpu_s: float | None = None  # processor seconds of a rank; None: as direct
    brigade_node_cpu_s: float = 0.0
    brigade_fixed_s: float | None = None  # None: as direct
    # honesty
    assumed: tuple[str, ...] = ()
    spread: dict[str, float] = field(default_factory=dict)  # field -> relative standard error

    @property
    def first_requests(self) -> float:
        return sum(self.first.values())

    @property
    def further_requests(self) -> float:
        return sum(self.further.values())

    def requests(self, ranks: int, nodes: int) -> float:
        """Requests to the metadata server of a direct start-up."""
        return nodes * self.first_requests + (ranks - nodes) * self.further_requests

    def by_kind(self, ranks: int, nodes: int) -> dict[str, float]:
        kinds = [*self.first, *(kind for kind in self.further if kind not in self.first)]
        return {
            kind: nodes * self.first.get(kind, 0.0) + (ranks - nodes) * self.further.get(kind, 0.0)
            for kind in kinds
        }

    def spread_of(self, name: str) -> float:
        """Relative standard error of a field, 0 of one that is exact."""
        default = ASSUMED_SPREAD if name in self.assumed else 0.0
        return self.spread.get(name, default)


# What may be off, and is drawn at random for a band; "requests" scales first and further.
DRAWN = (
    *("cpu_s", "node_cpu_s", "fixed_s", "node_bytes", "image_bytes", "unpacked_bytes"),
    *("brigade_cpu_s", "brigade_fixed_s", "brigade_node_cpu_s"),
    *("node_reads", "misses", "brigade_requests"),
)


def behind_caches(
    found: float, absent: float, opens: float, system: System, others: dict[str, float]
) -> tuple[dict[str, float], dict[str, float]]:
    """Requests of a node's first rank and of each further one, from what a rank asks.

    `found` and `absent` are names looked up, `opens` files opened; `others` (readdir, readlink) are
    remembered as names are. An open goes to the server from every rank. Ranks of a node run side by
    side, so what the first one asked is still known, if it is remembered at all.
    """
    remembers = system.attribute_life_s > 0
    names = 0.0 if remembers and system.caches_names else 1.0
    gone = 0.0 if remembers and system.caches_absent else 1.0
    first = {"lookup": found + absent, "open": opens, **others}
    further = {"lookup": found * names + absent * gone, "open": opens}
    further.update({kind: count * names for kind, count in others.items()})
    return _positive(first), _positive(further)


def from_counts(
    system: System,
    lookups: float = 0.0,
    absent: float = 0.0,
    opens: float = 0.0,
    reads: float = 0.0,
    node_bytes: float = 0.0,
    cpu_s: float | None = None,
    image_bytes: float | None = None,
    name: str = "a program",
) -> Demand:
    """What a command line says of one rank; what it leaves out is assumed."""
    first, further = behind_caches(lookups, absent, opens, system, {})
    assumed = []
    if cpu_s is None:
        cpu_s, assumed = 2.0, ["cpu_s"]
    if image_bytes is None:
        image_bytes = PACKED * node_bytes
        assumed.append("image_bytes")
    return Demand(
        name=name,
        source="counts given",
        first=first,
        further=further,
        node_reads=reads,
        node_bytes=node_bytes,
        cpu_s=cpu_s,
        image_bytes=image_bytes,
        unpacked_bytes=max(node_bytes, image_bytes),
        assumed=tuple(assumed),
    )


def to_json(demand: Demand) -> dict[str, Any]:
    return {"schema": SCHEMA, "kind": "brigade demand", **dataclasses.asdict(demand)}


def from_json(data: dict[str, Any]) -> Demand:
    """The demand that `to_json` gave; fields left out have their defaults. Raises BrigadeError."""
    given = document.fields(data, "a demand", Demand, SCHEMA, HINT)
    kinds = {one.name: str(one.type) for one in dataclasses.fields(Demand)}
    for name, value in given.items():
        _check(name, kinds[name], value)
    given["assumed"] = tuple(given.get("assumed", ()))
    return Demand(**given)


def _check(name: str, kind: str, value: Any) -> None:
    if kind.startswith("dict"):
        good = isinstance(value, dict) and all(_is_amount(one) for one in value.values())
    elif kind.startswith("float"):
        good = _is_amount(value) or (value is None and "None" in kind)
    else:
        good = isinstance(value, (str, list, tuple))
    if not good:
        raise BrigadeError(f"{name} of a demand cannot be {value!r}", hint=HINT)


def _is_amount(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0  # type: ignore[arg-type, operator]


def load(path: str | os.PathLike[str]) -> Demand:
    """Read a demand. Raises BrigadeError if there is none, or it is something else."""
    return document.load(path, "a demand", from_json, HINT)


def _positive(counts: dict[str, float]) -> dict[str, float]:
    return {kind: count for kind, count in counts.items() if count > 0}
