"""Records of a trial for --fork become what each rank's modules did, in order."""

from __future__ import annotations

from pathlib import Path

from made import INTERPRETER, process, record

from brigade.fork.trial_plan import of_trial
from brigade.trial.modules import Event, Execution, count_programs, differing, rank_modules
from brigade.trial.record import load

PYTHON = record("interpreter", "/v/bin/python", extra=INTERPRETER % ("/v", "/v"))
WATCH = record("watch")


def imported(name: str, order: int, by: str = "", at: int = 0) -> bytes:
    return record("imported", name, status=order, by=by, extra=f"/{name}.py", time_ns=at)


def event(what: str, detail: str = "", by: str = "", at: int = 0) -> bytes:
    return record("event", what, by=by, extra=detail, time_ns=at)


def test_executions_and_events_stand_in_the_order_in_which_they_happened(tmp_path: Path) -> None:
    records = [
        PYTHON, WATCH, imported("a", 1, at=5), event("getenv", "HOME", "a", 6),
        imported("b", 2, "a", 7), imported("c", 3, at=20), event("output", "1", at=10),
        record("imported", "b", by="c", time_ns=21),
    ]  # fmt: skip
    (rank,) = rank_modules(load(process(tmp_path, records).parent))
    assert rank.watched
    assert rank.executions == [
        Execution("a", "/a.py", ""),
        Execution("b", "/b.py", "a"),
        Execution("c", "/c.py", ""),
    ]
    assert rank.events == [Event("a", "getenv", "HOME", 1), Event("", "output", "1", 2)]
    assert {("c", "b"), ("a", "b"), ("", "a"), ("", "c")} == rank.asked


def test_an_object_is_loaded_in_the_execution_that_has_not_ended(tmp_path: Path) -> None:
    def ended(order: int, at: int) -> bytes:
        return record("executed", "x", status=order, time_ns=at)

    def loads(path: str, at: int) -> bytes:
        return record("load", path, time_ns=at)

    records = [
        PYTHON, WATCH, loads("/0", 1), imported("a", 1, at=2), loads("/a", 3),
        imported("b", 2, "a", 4), loads("/b", 5), ended(2, 6), loads("/a2", 7), ended(1, 8),
        loads("/1", 9), ended(7, 10),
    ]  # fmt: skip
    (rank,) = rank_modules(load(process(tmp_path, records).parent))
    assert rank.loaded == [("", "/0"), ("a", "/a"), ("b", "/b"), ("a", "/a2"), ("", "/1")]


def test_a_rank_is_the_program_behind_its_shell(tmp_path: Path) -> None:
    process(tmp_path, [], rank=1, pid=10, exe="/bin/sh")
    process(tmp_path, [PYTHON, WATCH, imported("main", 1)], rank=1, pid=11, parent=10)
    process(tmp_path, [PYTHON, WATCH, imported("child", 1)], rank=1, pid=12, parent=10)
    process(tmp_path, [PYTHON, WATCH, imported("main", 1)], rank=0, pid=13)
    process(tmp_path, [], rank=2, pid=14)
    trial = load(tmp_path)
    ranks = rank_modules(trial)
    assert [rank.rank for rank in ranks] == [0, 1]
    assert [[e.module for e in rank.executions] for rank in ranks] == [["main"], ["main"]]
    assert count_programs(trial) == 3
    plan = of_trial(trial)
    assert plan is not None and "not every rank" in plan.left["main"].why


def test_variables_differ_by_digest_or_by_being_there(tmp_path: Path) -> None:
    for pid, rank, value in ((1, 0, "1"), (2, 1, "2")):
        digests = [record("digest", "X", extra=value), record("digest", "SAME", extra="7")]
        digests += [record("digest", "ONE", extra="1")] * (rank == 0)
        process(tmp_path, [PYTHON, WATCH, *digests], rank=rank, pid=pid)
    assert differing(rank_modules(load(tmp_path))) == {"X", "ONE"}


def test_a_trial_that_did_not_watch_gives_no_plan(tmp_path: Path) -> None:
    assert of_trial(load(process(tmp_path, [PYTHON, imported("a", 1)]).parent)) is None
    assert of_trial(load(process(tmp_path / "w", [PYTHON, WATCH]).parent)) is not None
