"""A start-up as a network: a demand on a system, direct or under Brigade.

Requests are gathered into *streams*: as many customers as there are requests, divided by those of a
node's first rank, each going that many rounds. Where nothing is remembered a stream is a rank;
where everything is, a node. A round is one request and what lies between two: processor time, the
network, the node's link, its share of the data. Formulas: docs/explanation/model.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from brigade.model.demand import Demand
from brigade.model.network import DELAY, Network, Station
from brigade.model.system import System

PROCESSORS = "processors"
LATENCY = "network latency"
LINK = "link of a node"
METADATA = "metadata server"
DATA = "data servers"
STAGING = "staging"
READING, HANDING, UNPACKING = "reading", "handing on", "unpacking"

NOTHING = 1e-15  # seconds a round that are none, whatever a file says
SLICES = 100  # in which processors are shared, where there are no requests to divide the time


@dataclass(frozen=True)
class Phase:
    """What all ranks do at the same time, and what is before it."""

    network: Network
    streams: int
    rounds: int
    requests: float
    before_s: float  # launcher, staging
    before: dict[str, float]  # of what


def direct(demand: Demand, system: System, ranks: int, nodes: int) -> Phase:
    """Every rank at the shared file system."""
    requests = demand.requests(ranks, nodes)
    service = sum(n * system.service(kind) for kind, n in demand.by_kind(ranks, nodes).items())
    network, streams, rounds = _network(
        system, ranks, nodes, demand.first_requests, requests, service / (requests or 1),
        rank_cpu_s=demand.cpu_s, node_cpu_s=demand.node_cpu_s,
        node_bytes=demand.node_bytes, node_reads=demand.node_reads,
    )  # fmt: skip
    before = {"launcher": demand.fixed_s}
    return Phase(network, streams, rounds, requests, demand.fixed_s, before)


def brigade(demand: Demand, system: System, ranks: int, nodes: int) -> Phase:
    """The image read once, handed from node to node, then all ranks out of their node's memory."""
    requests = ranks * demand.misses
    cpu_s = demand.cpu_s if demand.brigade_cpu_s is None else demand.brigade_cpu_s
    network, streams, rounds = _network(
        system, ranks, nodes, demand.misses, requests, system.service_s,
        rank_cpu_s=cpu_s,
        node_cpu_s=demand.brigade_node_cpu_s, node_bytes=0.0, node_reads=0.0,
    )  # fmt: skip
    fixed_s = demand.fixed_s if demand.brigade_fixed_s is None else demand.brigade_fixed_s
    own = demand.brigade_requests * (system.round_trip_s + system.service_s)
    parts = staging(demand, system, nodes)
    longest = max(parts, key=lambda name: parts[name])
    before = {
        "launcher": fixed_s,
        "finding and checking the image": own,
        "staging step": system.stage_fixed_s,
        f"{STAGING}: {longest}": parts[longest],
    }
    everything = requests + demand.brigade_requests
    return Phase(network, streams, rounds, everything, sum(before.values()), before)


def staging(demand: Demand, system: System, nodes: int) -> dict[str, float]:
    """Seconds of the three things that go on at the same time; the longest counts."""
    segments = max(1, math.ceil(demand.image_bytes / system.segment_bytes))
    readers = max(1, min(system.readers, nodes, segments))
    lane = min(system.link_bandwidth, system.data_bandwidth)
    whole = system.data_servers * system.data_bandwidth
    steps = ring_steps(nodes, readers, segments)
    send = min(system.segment_bytes, demand.image_bytes) / system.network_bandwidth
    workers: float = system.decode_workers
    if system.shared_cores:
        workers = min(workers, system.cores / nodes)
    return {
        READING: demand.image_bytes / min(readers * lane, whole),
        HANDING: steps * send + max(0, steps - segments) * system.hop_s,
        UNPACKING: demand.unpacked_bytes / (system.decode_bandwidth * workers),
    }


def ring_steps(nodes: int, readers: int, segments: int) -> int:
    """Steps of the schedule of src/stream/plan.c until the last segment has reached the last node.

    Nodes stand in a ring; `readers` evenly spaced ones start every period-th segment; rests make
    the way round a multiple of the period.
    """
    if nodes < 2 or segments < 1:
        return 0
    readers = max(1, min(readers, nodes, segments, 64))
    everybody = readers == nodes
    period = max(1, nodes - 1) if everybody else readers
    rests = 0 if everybody else (period - nodes % period) % period

    def place(node: int) -> int:
        return node + node * rests // nodes

    last = 0
    for flow in range(readers):
        origin = flow * nodes // readers
        count = (segments - flow - 1) // readers + 1 if segments > flow else 0
        if not count:
            continue
        phase = 0 if everybody else (place(origin) + flow) % period
        sender = (origin + nodes - 2) % nodes  # the last to hand it on
        around = 0 if sender >= origin else nodes + rests
        last = max(last, period * (count - 1) + phase + place(sender) + around - place(origin) + 1)
    return last


def _network(
    system: System,
    ranks: int,
    nodes: int,
    first: float,
    requests: float,
    service_s: float,
    *,
    rank_cpu_s: float,
    node_cpu_s: float,
    node_bytes: float,
    node_reads: float,
) -> tuple[Network, int, int]:
    """The network of one phase, its streams, and the rounds of each."""
    if requests > 0 and first > 0:
        rounds = max(1, round(first))
        streams = max(1, math.ceil(requests / rounds))
    else:
        rounds, streams = SLICES, ranks
    turns = rounds * streams
    if system.shared_cores:
        work = ranks * rank_cpu_s + nodes * node_cpu_s + requests * system.request_cpu_s
        processors = Station(PROCESSORS, work / turns, system.cores, 0.5)
    else:
        crowd = max(1.0, ranks / nodes / system.cores)
        busy = rank_cpu_s * crowd + node_cpu_s + first * system.request_cpu_s
        processors = Station(PROCESSORS, busy / rounds, DELAY, 0.0)
    # The last stream has fewer requests than rounds: all ask a little less of the server, and are
    # as long on their way as if they asked all.
    asked = requests / turns
    away = system.round_trip_s + (1 - asked) * service_s if requests > 0 else 0.0
    waits = away + node_reads * system.round_trip_s / rounds
    each = nodes * node_bytes / turns / system.data_bandwidth
    stations = (
        processors,
        Station(LATENCY, waits, DELAY, 0.0),
        Station(LINK, node_bytes / system.link_bandwidth / rounds, DELAY, 0.0),
        Station(METADATA, asked * service_s, system.servers, system.service_cv),
        Station(DATA, each, system.data_servers),
    )
    return Network(tuple(one for one in stations if one.demand_s > NOTHING)), streams, rounds
