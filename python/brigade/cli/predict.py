"""`brigade predict`: seconds and requests of a start-up at any width, direct and under Brigade."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

import click

from brigade.cli.completing import FILE
from brigade.cli.duration import Duration
from brigade.cli.number import Number
from brigade.cli.size import Size
from brigade.errors import UsageError

EPILOG = """\b
Examples:
  brigade predict --ranks 40960 --nodes 1707              of the last profile in this folder
  brigade predict --profile app.json --system lustre.json --ranks 40960 --nodes 1707
  brigade predict --profile app.json --ranks 64,1024,40960 --figure start.png
  brigade predict --lookups 1343 --absent 3677 --opens 495 --bytes 200M --ranks 40960 --nodes 1707
  brigade predict --demand app-demand.json --service-time 80us --servers 1 --ranks 8000 --explain
"""
PROFILE = "profile.json"  # what `brigade profile` leaves beside its page
COUNTS = ("lookups", "absent", "opens", "reads", "bytes")


@click.command(epilog=EPILOG)
@click.option(
    "--profile", type=FILE, help="What `brigade profile` wrote.  [default: ./profile.json]"
)
@click.option("--demand", type=FILE, help="What the start-up asks, as JSON.")
@click.option("--lookups", type=Number(0), help="Names that a rank looks up and finds.")
@click.option("--absent", type=Number(0), help="Names that a rank looks up in vain.")
@click.option("--opens", type=Number(0), help="Files that a rank opens.")
@click.option("--reads", type=Number(0), help="Reads that a node needs of data servers.")
@click.option("--bytes", type=Size(), help="Bytes that a node reads.")
@click.option("--cpu", type=Duration(), help="Processor time of one rank's start-up.")
@click.option("--image", type=Size(), help="Size of the image.")
@click.option("--system", type=FILE, help="What `brigade calibrate -o FILE` wrote.")
@click.option("--service-time", type=Duration(), help="Of one request at the metadata server.")
@click.option("--servers", type=click.IntRange(1), help="Threads of the metadata server.")
@click.option("--round-trip", type=Duration(), help="Network and client, of one request.")
@click.option("--cores", type=click.IntRange(1), help="Processors of a node.")
@click.option("--node-cache/--no-node-cache", default=None, help="Do nodes remember names?")
@click.option("--ranks", required=True, metavar="LIST", help="Widths: 40960, or 64,1024,40960.")
@click.option("--nodes", type=click.IntRange(1), help="Nodes of the widest; others in proportion.")
@click.option("--figure", type=FILE, help="Draw it: .png, .svg or .pdf (needs Matplotlib).")
@click.option("--explain", is_flag=True, help="Every term with its value.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the simulation.")
def command(**given: Any) -> None:
    """Say how long a program's start-up takes on so many ranks, and how many requests it sends.

    The program: a profile, a demand, or counts of one rank. The machine: a calibrated system,
    single values, or neither; what nobody measured is taken of a typical cluster, and named.
    Nothing is started, and no file system is asked.
    """
    from brigade.model import show
    from brigade.model.predict import predict

    if given["figure"]:
        from brigade.model import figure

        figure.check(given["figure"])
    machine = _machine(given)
    wanted = _demand(given, machine)
    widths = _widths(given, machine.cores, machine.shared_cores)
    found = [predict(wanted, machine, ranks, nodes, given["seed"]) for ranks, nodes in widths]
    if given["figure"]:
        figure.draw(wanted, machine, found, given["figure"], given["seed"])
    if given["as_json"]:
        click.echo(json.dumps(show.as_json(wanted, machine, found), indent=1))
        return
    show.tables(wanted, machine, found, explain=given["explain"])
    if given["figure"]:
        click.echo(f"\nfigure: {given['figure']}")


def _machine(given: dict[str, Any]) -> Any:
    """The system of --system, or a typical one, with the values given on the command line."""
    from brigade.model import system

    machine = system.load(given["system"]) if given["system"] else system.typical()
    named = {
        "service_s": given["service_time"],
        "servers": given["servers"],
        "round_trip_s": given["round_trip"],
        "cores": given["cores"],
        "caches_names": given["node_cache"],
        "caches_absent": given["node_cache"],
    }
    values = {name: value for name, value in named.items() if value is not None}
    if "service_s" in values:
        values["service_by_kind"] = {}
    if "service_s" in values and "servers" in values:
        values["limit_reached"] = True
    spread = {name: value for name, value in machine.spread.items() if name not in values}
    assumed = tuple(name for name in machine.assumed if name not in values)
    return dataclasses.replace(machine, **values, assumed=assumed, spread=spread)


def _demand(given: dict[str, Any], machine: Any) -> Any:
    """The demand of exactly one of --profile, --demand, or counts; of none, the profile that
    `brigade profile` has left in this folder."""
    from brigade.model import demand

    counted = any(given[name] is not None for name in COUNTS)
    ways = [bool(given["profile"]), bool(given["demand"]), counted]
    if not any(ways) and os.path.exists(PROFILE):
        given["profile"] = PROFILE
        click.echo(f"brigade: the program is that of {PROFILE}, in this folder", err=True)
    elif sum(ways) != 1:
        raise UsageError(
            "say once what the program asks" if any(ways) else "what does the program ask?",
            hint=f"`brigade profile -- srun -n 2 …` leaves {PROFILE} here; or name one with "
            "--profile, or --demand FILE, or counts: --lookups, --absent, --opens, …",
        )
    if given["profile"]:
        from brigade.model.from_profile import from_profile
        from brigade.profile import profile

        wanted = from_profile(profile.load(given["profile"]), machine)
    elif given["demand"]:
        wanted = demand.load(given["demand"])
    else:
        counts: Any = {name: given[name] or 0 for name in COUNTS if name != "bytes"}
        return demand.from_counts(
            machine, **counts, node_bytes=given["bytes"] or 0, cpu_s=given["cpu"],
            image_bytes=given["image"],
        )  # fmt: skip
    named = {"cpu_s": given["cpu"], "image_bytes": given["image"]}
    values = {name: value for name, value in named.items() if value is not None}
    left = tuple(name for name in wanted.assumed if name not in values)
    spread = {name: value for name, value in wanted.spread.items() if name not in values}
    return dataclasses.replace(wanted, **values, assumed=left, spread=spread)


def _widths(given: dict[str, Any], cores: int, shared: bool) -> list[tuple[int, int]]:
    """(ranks, nodes) of each width; as many ranks a node at all of them."""
    from brigade.model.predict import nodes_of

    try:
        ranks = [int(word) for word in given["ranks"].replace(" ", "").split(",")]
    except ValueError:
        ranks = []
    if not ranks or min(ranks) < 1:
        raise UsageError(
            f"{given['ranks']!r} is no list of widths", hint="write it as 40960 or 64,1024,40960"
        )
    if given["nodes"] and given["nodes"] > max(ranks):
        raise UsageError(
            f"{max(ranks)} ranks on {given['nodes']} nodes cannot be",
            hint="every node has at least one rank",
        )
    nodes = given["nodes"] or (1 if shared else -(-max(ranks) // cores))
    return [(one, nodes_of(one, max(ranks), nodes)) for one in sorted(set(ranks))]
