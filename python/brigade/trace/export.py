"""A trace for other tools: the trace event format (ui.perfetto.dev, chrome://tracing), and CSV."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Any

from brigade.trace.events import Event, Trace, TracedProcess

COLUMNS = (
    *("host", "rank", "pid", "tid", "exe", "start_ns", "took_ns", "kind", "call", "error"),
    *("result", "bytes", "by_fd", "flags", "path", "other"),
)


def write_perfetto(trace: Trace, out: IO[str]) -> None:
    """JSON: a track a process, a slice a program image, a call, and its way to its entry point.

    Hosts may have the same process numbers, so tracks are numbered anew; a number's name says
    which it is.
    """
    tracks: dict[tuple[str, int], int] = {}
    for process in trace.processes:
        tracks.setdefault((process.host, process.pid), len(tracks) + 1)
    out.write('{"displayTimeUnit": "ns", "otherData": ')
    json.dump({"mechanism": trace.mechanism.name, "start_ns": str(trace.start_ns)}, out)
    out.write(', "traceEvents": [\n')
    for n, one in enumerate(chain(_names(trace, tracks), _slices(trace, tracks))):
        out.write(",\n" if n else "")
        json.dump(one, out)
    out.write("\n]}\n")


def _names(trace: Trace, tracks: dict[tuple[str, int], int]) -> Iterator[dict[str, Any]]:
    """What the tracks are called; of several images of a process, the last one's name."""
    last = {tracks[process.host, process.pid]: process for process in trace.processes}
    for track, process in last.items():
        rank = "" if process.rank is None else f"rank {process.rank}: "
        name = f"{rank}{os.path.basename(process.exe)} ({process.host}, {process.pid})"
        sort = 1 << 20 if process.rank is None else process.rank
        yield _meta("process_name", track, name=_text(name))
        yield _meta("process_sort_index", track, sort_index=sort)


def _meta(what: str, track: int, **args: object) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": track, "tid": track, "ts": 0, "args": args}


def _slices(trace: Trace, tracks: dict[tuple[str, int], int]) -> Iterator[dict[str, Any]]:
    for process in trace.processes:
        track = tracks[process.host, process.pid]
        yield _image(process, track)
        if process.entry_ns is not None:
            name, length = "until its entry point", process.entry_ns - process.start_ns
            yield _slice("start", name, track, track, process.start_ns, length)
        for event in process.events:
            tid = track if event.tid == process.pid else event.tid
            yield _call(event, track, tid)


def _image(process: TracedProcess, track: int) -> dict[str, Any]:
    last = max((e.time_ns + e.took_ns for e in process.events), default=process.start_ns)
    end_ns = process.end_ns if process.end_ns is not None else last
    name = _text(" ".join(process.argv)[:200] or process.exe or "?")
    made = _slice("process", name, track, track, process.start_ns, end_ns - process.start_ns)
    made["args"] = {"exe": _text(process.exe), "status": process.status, "cwd": _text(process.cwd)}
    return made


def _call(event: Event, track: int, tid: int) -> dict[str, Any]:
    made = _slice(event.kind, event.call, track, tid, event.time_ns, event.took_ns)
    args: dict[str, Any] = {"path": _text(event.path)}
    if event.error:
        args["error"] = errno.errorcode.get(event.error, str(event.error))
    if event.bytes:
        args["bytes"] = event.bytes
    if event.other:
        args["other"] = _text(event.other)
    made["args"] = args
    return made


def _slice(
    category: str, name: str, track: int, tid: int, at_ns: int, took_ns: int
) -> dict[str, Any]:
    times = {"ts": at_ns / 1000, "dur": max(0, took_ns) / 1000}
    return {"ph": "X", "cat": category, "name": name, "pid": track, "tid": tid, **times}


def _text(text: str) -> str:
    """For JSON: bytes of a path that are no UTF-8 become a sign that says so."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def write_csv(trace: Trace, out: IO[str]) -> None:
    """One line an event, the columns in the first."""
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows(_rows(trace))


def _rows(trace: Trace) -> Iterable[tuple[object, ...]]:
    for process, event in trace.events():
        rank = "" if process.rank is None else process.rank
        yield (
            *(process.host, rank, process.pid, event.tid, process.exe),
            *(event.time_ns, event.took_ns, event.kind, event.call),
            errno.errorcode.get(event.error, str(event.error)) if event.error else "",
            *(event.result, event.bytes, int(event.by_fd), event.flags, event.path, event.other),
        )


def csv_text(trace: Trace) -> str:
    """The CSV as a text."""
    out = io.StringIO()
    write_csv(trace, out)
    return out.getvalue()
