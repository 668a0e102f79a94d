"""A prediction for people and for machines."""

from __future__ import annotations

import dataclasses
from typing import Any

from brigade.model import startup
from brigade.model.demand import Demand
from brigade.model.predict import Outcome, Prediction
from brigade.model.system import System

PLAIN = {
    "service_s": "service time of a request",
    "servers": "threads of the metadata server",
    "data_servers": "number of data servers",
    "cores": "processors of a node",
    "caches_names": "that nodes remember names",
    "caches_absent": "that nodes remember absent names",
    "round_trip_s": "network round trip",
    "data_bandwidth": "bandwidth of a data server",
    "link_bandwidth": "bandwidth of a node to the file system",
    "hop_s": "latency between nodes",
    "network_bandwidth": "bandwidth between nodes",
    "decode_bandwidth": "speed of unpacking",
    "stage_fixed_s": "start of a staging step",
    "cpu_s": "processor time of a rank",
    "image_bytes": "size of the image",
    "requests": "requests, taken from system calls by the rules of caches",
}


def as_json(demand: Demand, system: System, found: list[Prediction]) -> dict[str, Any]:
    from brigade.model import demand as demands
    from brigade.model import system as systems

    return {
        "schema": 1,
        "demand": demands.to_json(demand),
        "system": systems.to_json(system),
        "assumed": assumed(demand, system),
        "predictions": [dataclasses.asdict(one) for one in found],
    }


def assumed(demand: Demand, system: System) -> list[str]:
    """What nobody measured, in words; of what is or is not, which was taken."""
    found = []
    for name in (*demand.assumed, *system.assumed):
        said = PLAIN.get(name, name)
        isnt = getattr(system, name, None) is False
        found.append(said.replace("nodes remember", "nodes do not remember") if isnt else said)
    return found


def seconds(value: float) -> str:
    """A length of time with about three digits: 0.31 s, 12.1 s, 721 s, 4.3 h."""
    if value < 10:
        return f"{value:.2f} s"
    if value < 100:
        return f"{value:.1f} s"
    if value < 7200:
        return f"{value:,.0f} s"
    return f"{value / 3600:.1f} h"


def between(outcome: Outcome) -> str:
    """Both ends of the band; the unit once where it is the same."""
    (low, unit), (high, last) = (seconds(value).split(" ") for value in (outcome.low, outcome.high))
    return f"{low} - {high} {unit}" if unit == last else f"{low} {unit} - {high} {last}"


def count(value: float) -> str:
    """How many, with five digits at least."""
    return f"{value:,.0f}" if value < 1e9 else f"{value / 1e6:,.0f} M"


def busy(outcome: Outcome) -> str:
    """Utilisation of the bottleneck; nothing where nobody waits."""
    if outcome.utilisation is None:
        return ""
    return f"{min(100.0, 100 * outcome.utilisation):.0f}%"


def tables(demand: Demand, system: System, found: list[Prediction], explain: bool = False) -> None:
    """Print a prediction."""
    from rich.table import Table

    from brigade.console import make_console

    console = make_console(highlight=False)
    console.print(f"{demand.name} ({demand.source}) on {system.name}", markup=False)
    table = Table(box=None, pad_edge=False)
    for name in ("ranks", "nodes", "", "requests", "takes", "9 of 10 within", "limited by", "busy"):
        left = name in ("", "limited by")
        wrap = name == "limited by"
        table.add_column(name, justify="left" if left else "right", no_wrap=not wrap)
    for one in found:
        for way, outcome in (("direct", one.direct), ("Brigade", one.brigade)):
            where = (f"{one.ranks:,}", f"{one.nodes:,}") if way == "direct" else ("", "")
            asked = count(outcome.requests)
            took = seconds(outcome.seconds)
            table.add_row(
                *where, way, asked, took, between(outcome), outcome.bottleneck, busy(outcome)
            )
    console.print(table)
    for text in notes(demand, system, found):
        console.print(text, markup=False)
    if explain:
        for one in found:
            for text in explained(one, system):
                console.print(text, markup=False)


def notes(demand: Demand, system: System, found: list[Prediction]) -> list[str]:
    """What would help at the widest, and what the figures rest on."""
    widest = found[-1]
    lines = [
        f"\nWhat would help at {widest.ranks:,} ranks: direct: {widest.direct.helps}; "
        f"under Brigade: {widest.brigade.helps}."
    ]
    guesses = assumed(demand, system)
    if guesses:
        lines.append(
            f"ASSUMED, not measured: {', '.join(guesses)}. `brigade calibrate` measures a file "
            "system, `brigade profile` a program; until then trust the order of magnitude only."
        )
    if not system.limit_reached:
        lines.append(
            "The calibration did not reach the metadata server's limit: direct is an upper bound."
        )
    if not demand.fixed_s:
        lines.append("The launcher's own time is not in it: nobody measured it.")
    return lines


def explained(one: Prediction, system: System) -> list[str]:
    """Every term of both ways at one width."""
    lines = [f"\n{one.ranks:,} ranks on {one.nodes:,} nodes"]
    for way, outcome in (("direct", one.direct), ("Brigade", one.brigade)):
        lines.append(f"  {way}: {outcome.streams:,} streams of {outcome.rounds:,} rounds each")
        for name, value in outcome.parts.items():
            lines.append(f"    {name:32} {value:12.4f} s of a stream that waits for nobody")
        for name, value in (
            ("least possible", outcome.bounds[0]),
            ("most possible", outcome.bounds[1]),
            ("steady state, exact", outcome.steady_s),
            ("simulated, slowest rank", outcome.seconds),
        ):
            lines.append(f"    {name:32} {value:12.4f} s")
    for name, value in one.staging.items():
        lines.append(f"    {startup.STAGING}: {name:23} {value:12.4f} s, the three go on at once")
    lines.append(
        f"  a request takes {1e6 * system.service_s:,.0f} us of one of {system.servers} threads: "
        f"at most {system.servers / max(system.service_s, 1e-12):,.0f} a second"
    )
    return lines
