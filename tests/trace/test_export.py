"""A trace for other tools: every event is there, in the shape that they demand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from tracing import traced

from brigade.trace import strace
from brigade.trace.events import Event, Mechanism, Trace, TracedProcess
from brigade.trace.export import COLUMNS, csv_text, write_perfetto
from brigade.trace.merge import merged

ODD = '/p, "q"\n\udcff'


def trace() -> Trace:
    """Two hosts with the same process numbers; one image replaced by exec."""
    events = [
        Event(1500, 250, 7, "openat", 2, -1, ODD, flags=524288),
        Event(2500, 1000, 8, "read", 0, 64, "/data", by_fd=True),
        Event(4000, 10, 7, "readlink", 0, 3, "/link", other="to"),
    ]
    first = TracedProcess("a", 7, 1, 0, 1000, "/bin/sh", ["sh", "-c"], end_ns=1200)
    second = TracedProcess("a", 7, 1, 0, 1200, "/bin/app", ["app"], entry_ns=2000, events=events)
    other = TracedProcess("b", 7, 1, None, 1000, "/bin/app", ["app"], end_ns=9000, status=-9)
    return Trace(10**18, Mechanism("seccomp"), [first, other, second])


def exported(what: Trace) -> dict:
    out = io.StringIO()
    write_perfetto(what, out)
    return json.loads(out.getvalue())


def is_valid(event: dict) -> bool:
    """The trace event format, of the two phases used: times in microseconds, nothing missing."""
    whole = isinstance(event["name"], str) and isinstance(event["pid"], int)
    whole &= isinstance(event["tid"], int) and isinstance(
        event["args"] if "args" in event else {}, dict
    )
    if event["ph"] == "M":
        return whole and event["name"] in ("process_name", "process_sort_index")
    return (
        whole
        and event["ph"] == "X"
        and event["ts"] >= 0
        and event["dur"] >= 0
        and event["cat"] != ""
    )


def test_every_event_is_a_slice_on_the_track_of_its_process() -> None:
    made = exported(trace())["traceEvents"]
    assert all(is_valid(event) for event in made)
    names = {e["pid"]: e["args"]["name"] for e in made if e["name"] == "process_name"}
    assert sorted(names.values()) == ["app (b, 7)", "rank 0: app (a, 7)"]
    on = {name: track for track, name in names.items()}["rank 0: app (a, 7)"]
    opened = next(e for e in made if e["name"] == "openat")
    assert (opened["pid"], opened["ts"], opened["dur"], opened["cat"]) == (on, 1.5, 0.25, "open")
    assert opened["args"] == {"path": '/p, "q"\n\N{REPLACEMENT CHARACTER}', "error": "ENOENT"}
    assert next(e for e in made if e["name"] == "read")["args"]["bytes"] == 64
    assert next(e for e in made if e["name"] == "readlink")["args"]["other"] == "to"
    assert {e["name"]: e["dur"] for e in made if e.get("cat") == "process"}["sh -c"] == 0.2
    assert sum(e.get("cat") in ("open", "read", "link") for e in made) == 3


def test_processes_of_several_straces_with_one_number_have_tracks_of_their_own(
    tmp_path: Path,
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text('7 1.000000 open("/x", O_RDONLY) = 3 <0.000100>\n')
    whole = merged([strace.load(tmp_path / name) for name in ("a", "b")])
    assert [process.host for process in whole.processes] == ["unknown", "unknown 1"]
    made = exported(whole)["traceEvents"]
    assert len({e["pid"] for e in made if e["name"] == "open"}) == 2


def test_slices_of_one_track_do_not_cut_each_other(tmp_path: Path) -> None:
    """Viewers drop what overlaps without lying inside."""
    what, _ = traced(tmp_path, "sh", "-c", "cat /etc/hostname | cat; ls /; true")
    made = exported(what)["traceEvents"]
    assert sum(1 for _ in what.events()) == sum(
        e["ph"] == "X" and e["cat"] not in ("process", "start") for e in made
    )
    for track in {(e["pid"], e["tid"]) for e in made}:
        ends: list[float] = []
        slices = [e for e in made if e["ph"] == "X" and (e["pid"], e["tid"]) == track]
        for one in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
            while ends and ends[-1] <= one["ts"] + 1e-6:
                ends.pop()
            end = one["ts"] + one["dur"]
            assert not ends or end <= ends[-1] + 1e-6, one
            ends.append(end)


def test_the_table_has_one_line_an_event_and_reads_back() -> None:
    what = trace()
    rows = list(csv.DictReader(io.StringIO(csv_text(what))))
    assert len(rows) == 3 and list(rows[0]) == list(COLUMNS)
    assert (rows[0]["path"], rows[0]["error"], rows[0]["kind"]) == (ODD, "ENOENT", "open")
    assert (rows[1]["bytes"], rows[1]["by_fd"], rows[1]["tid"], rows[1]["pid"]) == (
        "64",
        "1",
        "8",
        "7",
    )
    assert [row["other"] for row in rows] == ["", "", "to"]
