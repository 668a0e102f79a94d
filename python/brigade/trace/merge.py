"""Several traces as one: each is a rank of the same job, as when every rank ran its own strace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brigade.trace.events import Mechanism, Trace, TracedProcess
from brigade.trace.strace import UNKNOWN


def merged(traces: Sequence[Trace]) -> Trace:
    """One trace; processes without a rank get the number of theirs. Times are those of the
    earliest trace. Where a host is not known and a process number comes again, it is another."""
    if len(traces) == 1:
        return traces[0]
    start_ns = min(trace.start_ns for trace in traces)
    mechanism = Mechanism(traces[0].mechanism.name)
    processes: list[TracedProcess] = []
    mountinfo: dict[str, str] = {}
    taken: set[tuple[str, int]] = set()
    for number, trace in enumerate(traces):
        later_ns = trace.start_ns - start_ns
        own = {(process.host, process.pid) for process in trace.processes}
        again = {host for host, _ in own & taken if host == UNKNOWN}
        for process in trace.processes:
            rank = number if process.rank is None else process.rank
            host = f"{process.host} {number}" if process.host in again else process.host
            taken.add((host, process.pid))
            processes.append(_shifted(replace(process, rank=rank, host=host), later_ns))
        mountinfo.update(trace.mountinfo)
        mechanism.seen += [one for one in trace.mechanism.seen if one not in mechanism.seen]
        mechanism.lost += [one for one in trace.mechanism.lost if one not in mechanism.lost]
        mechanism.complete &= trace.mechanism.complete
        mechanism.stops += trace.mechanism.stops
        mechanism.stopped_ns += trace.mechanism.stopped_ns
    processes.sort(key=lambda process: process.start_ns)
    return Trace(start_ns, mechanism, processes, mountinfo)


def _shifted(process: TracedProcess, later_ns: int) -> TracedProcess:
    def moved(time_ns: int | None) -> int | None:
        return None if time_ns is None else time_ns + later_ns

    return replace(
        process,
        start_ns=process.start_ns + later_ns,
        entry_ns=moved(process.entry_ns),
        end_ns=moved(process.end_ns),
        events=[event._replace(time_ns=event.time_ns + later_ns) for event in process.events],
    )
