"""A calibration keeps to what the user allows; the clients' answers are computed here."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import time
from typing import Any

import pytest

from brigade.calibrate import client, measure, plan, report
from brigade.errors import UsageError


class Computed(measure._Calibration):
    """A calibration whose clients are answered by a formula: one server, `service_s` a request."""

    service_s = 1e-3
    ranks = 1
    asked: list[dict[str, Any]]

    def _started(self, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.asked += steps
        clients = [
            {"client": number, "step": step["name"], "found": self._answered(step, number)}
            for step in steps
            for number in range(step["clients"])
        ]
        first = {"rank": 0, "host": "n0", "answers": clients}
        others = [{"rank": i, "host": f"n{i}", "answers": []} for i in range(1, self.ranks)]
        return [first, *others]

    def _answered(self, step: dict[str, Any], client: int) -> dict[str, list[list[int]]]:
        each = self.service_s * step["clients"]
        gap_s = max(each, step.get("gap_s", 0.0))

        def some(number: int, took_s: float = self.service_s) -> list[list[int]]:
            return [[int(i * gap_s * 1e9), int(took_s * 1e9)] for i in range(number)]

        if step["do"] == "load":
            return {"absent": some(step["ops"], each), "busy": [[1, 10]]}
        if step["do"] == "bursts":
            sizes = [size for _, size in step["at"]]
            return {str(i): some(1) for i, size in enumerate(sizes) if client < size}
        if step["do"] == "kinds":
            kinds = {"stat": 40, "open": 40, "read": 40, "opendir": 20, "list": 20, "link": 20}
            return {kind: some(number) for kind, number in kinds.items()}
        if step["do"] == "memory":
            names = [f"{kind} {delay}" for kind in ("files", "absent") for delay in step["delays"]]
            return {name: some(plan.PROBES) for name in names}
        return {"bytes": [[begin, took, 1 << 20] for begin, took in some(8)]}


def computed(folder, limits: plan.Limits, ranks: int = 1) -> Computed:
    made = plan.plan(limits)
    launcher = ["launcher"] if ranks > 1 else []
    one = Computed(made, folder, launcher, lambda step: None)
    one.asked, one.ranks = [], ranks
    return one


def test_a_rate_that_is_reached_is_told_and_is_not_taken_for_the_servers(tmp_path):
    found = computed(tmp_path, plan.Limits(rate=700.0, read_bytes=1 << 20)).run()
    assert "allowed rate of 700" in found.stopped
    assert found.held_down and not found.fitted().reached and not found.bursts


def issued(one: Computed) -> int:
    """Requests that the steps may have caused, counted from what the clients do."""
    total = 0
    for step in one.asked:
        clients = step["clients"]
        ranks = min(one.ranks, clients) if one.ranks > 1 else 0
        total += 5 * clients + 13 * ranks  # a folder by its path; a file of answers
        if step["do"] == "load":
            total += clients * step["ops"]
        elif step["do"] == "bursts":
            total += sum(size for _, size in step["at"])
        elif step["do"] == "kinds":
            total += 5 * len(step["files"]) + 5 * len(step["folders"]) + 3 * len(step["links"])
        elif step["do"] == "memory":
            total += 2 * 2 * plan.PROBES * len(step["delays"])
        else:
            total += 3 * clients
    return total + 2 * plan.MADE * one._plan.made


@pytest.mark.parametrize("ranks", [1, 8, 500])
@pytest.mark.parametrize("clients", [1, 4, 64])
def test_no_more_is_asked_than_is_allowed(tmp_path, clients, ranks):
    refused = []
    for requests in range(2500, 10_000, 500):
        folder = tmp_path / str(requests)
        folder.mkdir()
        limits = plan.Limits(requests=requests, clients=clients, read_bytes=1 << 20, seconds=60)
        one = computed(folder, limits, ranks)
        one.service_s = 1e-5
        if one._plan.lacks:
            refused.append(requests)
            continue
        try:
            found = one.run()
        except UsageError:
            refused.append(requests)
            continue
        assert issued(one) <= found.requests <= requests
        kinds = [step["do"] for step in one.asked]
        assert {"load", "memory", "kinds", "reading"} <= set(kinds)
    assert refused == list(range(2500, 2500 + 500 * len(refused), 500))
    assert refused[-1:] < [8000]


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.time = self.monotonic = self.perf_counter = lambda: self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def monotonic_ns(self) -> int:
        return int(self.now * 1e9)


def test_files_are_made_and_removed_at_the_rate_that_is_allowed(tmp_path, monkeypatch):
    clock, rate = Clock(), 300.0
    monkeypatch.setattr(measure, "time", clock)
    done: list[float] = []
    for name in ("mkdir", "unlink", "rmdir", "symlink"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *w, r=real, **k: (done.append(clock.now), r(*w, **k)))
    one = computed(tmp_path, plan.Limits(rate=rate, read_bytes=1 << 20))
    one.run()
    assert list(tmp_path.iterdir()) == []
    assert len(done) > one._plan.made
    for number, at in enumerate(done):
        assert plan.MADE * number <= rate * (at - 1000.0) + 1e-3
    assert clock.now - 1000.0 <= one._plan.limits.seconds


def test_what_is_gone_or_held_when_all_is_removed_costs_no_calibration(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "time", Clock())
    one = computed(tmp_path, plan.Limits(rate=300.0, read_bytes=1 << 20))
    pace = one._pace

    def paced(requests: int) -> None:
        pace(requests)
        if (tmp_path / "bytes").exists():  # all is being removed
            (tmp_path / one._plan.files["files"][0]).unlink(missing_ok=True)
            (tmp_path / one._plan.files["folders"][0] / "held").touch()

    monkeypatch.setattr(one, "_pace", paced)
    assert one.run().points
    assert [path.name for path in tmp_path.iterdir()] == [one._plan.files["folders"][0]]


def test_answers_of_ranks_are_read_at_the_rate_that_is_allowed(tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(measure, "time", clock)
    one = computed(tmp_path, plan.Limits(rate=500.0, seconds=20))
    (tmp_path / "answer").write_text("{}")
    one._plan = dataclasses.replace(one._plan, ranks=8)
    apart_s = plan.ANSWER / 500.0
    for number in range(8):
        one._fetched(str(tmp_path / "answer"))
        assert clock.now - 1000.0 >= 0.999 * number * apart_s
    kept_s = one._left_s() - one._lead_s - 16 * one._opening_s
    assert one._fits(16, kept_s - 16 * apart_s - 0.01)
    assert not one._fits(16, kept_s - 16 * apart_s + 0.01), "8 are written, and read"


def test_ranks_write_their_answers_at_the_rate_that_is_allowed(tmp_path, monkeypatch, capfd):
    slept: list[float] = []
    monkeypatch.setattr(client.time, "sleep", slept.append)
    step = {"do": "kinds", "name": "0", "clients": 3, "begin": 0.0, "opening_s": 0.0}
    step |= {"pause_s": 0.0, "files": [], "folders": [], "links": []}
    script = {"folder": str(tmp_path), "ranks": 3, "steps": [step], "answer_s": 0.25}
    script["answers"] = str(tmp_path / "answers")
    word = base64.b64encode(json.dumps(script).encode()).decode()
    for number in range(3):
        monkeypatch.setenv("BRIGADE_RANK", str(number))
        client.main(word)
        assert slept.pop() == 0.25 * number
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"answers.{i}" for i in range(3)]
    assert capfd.readouterr().out.count(client.MARK) == 3


def timed(folder, monkeypatch, start_s: float, **limits) -> tuple[Computed, Clock]:
    """A calibration whose launcher takes `start_s`, on a clock of its own."""
    clock = Clock()
    monkeypatch.setattr(measure, "time", clock)
    one = computed(folder, plan.Limits(read_bytes=1 << 20, **limits), ranks=2)
    answer = one._started

    def started(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        clock.sleep(start_s)
        for step in steps:
            lasts = {"load": 1.0, "kinds": 0.4, "reading": step.get("seconds", 0.0)}
            lasts["memory"] = max(step.get("delays", [0.0]))
            lasts["bursts"] = step.get("at", [[0.0]])[-1][0]
            clock.now = max(clock.now, step["begin"]) + lasts[step["do"]]
        return answer(steps)

    monkeypatch.setattr(one, "_started", started)
    return one, clock


@pytest.mark.parametrize("seconds", [9.0, 10.0, 13.0, 17.0, 30.0, 60.0])
def test_nothing_is_begun_that_would_end_too_late(tmp_path, monkeypatch, seconds):
    one, clock = timed(tmp_path, monkeypatch, 3.0, seconds=seconds)
    found = one.run()
    assert found.points and clock.now - 1000.0 <= seconds
    kinds = {step["do"] for step in one.asked}
    assert seconds < 60 or kinds == {"load", "bursts", "memory", "kinds", "reading"}


def test_a_launcher_too_slow_for_one_step_is_said(tmp_path, monkeypatch):
    one, _ = timed(tmp_path, monkeypatch, 3.0, seconds=8.0)
    with pytest.raises(UsageError, match="--seconds 8 is too little: 3.0 s were"):
        one.run()


@pytest.mark.parametrize(("ranks", "nodes"), [(1, 1), (2, 2), (8, 4)])
def test_the_bandwidth_is_that_of_a_node(tmp_path, ranks, nodes):
    found = computed(tmp_path, plan.Limits(read_bytes=1 << 20, seconds=60), ranks).run()
    assert found.nodes == {1: 1, 4: nodes}
    found.read = {1: 1e9, 4: 3e9}
    machine = report.system(found, found.fitted(), "here")
    assert machine.link_bandwidth == max(1e9, 3e9 / nodes)


def test_reading_ends_when_its_time_is_over(tmp_path):
    (tmp_path / "bytes").write_bytes(b"b" * (4 << 20))
    folder = os.open(tmp_path, os.O_RDONLY)
    step = {"file": "bytes", "bytes": 4 << 20, "clients": 1, "client": 0, "begin": time.time()}
    whole = client.reading({**step, "seconds": 600.0}, folder)["bytes"]
    assert [n for _, _, n in whole] == 4 * [1 << 20]
    assert len(client.reading({**step, "seconds": -1.0}, folder)["bytes"]) == 1
    os.close(folder)


def test_only_processors_that_a_client_may_use_count_as_busy(tmp_path, monkeypatch):
    """Bound to one of 64, as by Slurm, it cannot see from all of them that its own is in use."""
    stat = tmp_path / "stat"
    stat.write_text(
        "cpu  70 0 0 630 0 0 0 0 0 0\n"
        "cpu0 0 0 0 100 0 0 0 0 0 0\ncpu1 60 0 10 20 10 0 0 0 5 5\nintr 1 2 3\n"
    )
    monkeypatch.setattr("builtins.open", lambda name, real=open: real(stat))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1})
    assert client._processors() == (70, 100)


@pytest.mark.parametrize("pause_s", [0.002, 0.0])
def test_clients_pace_what_they_ask_at_rest(tmp_path, pause_s):
    files = [f"f{i}" for i in range(8)]
    for name in files:
        (tmp_path / name).write_bytes(b"brigade")
    folder = os.open(tmp_path, os.O_RDONLY)
    step = {"begin": time.time(), "pause_s": pause_s, "files": files, "folders": [], "links": []}
    begins = [begin for begin, _ in client.kinds(step, folder)["stat"]]
    assert all(at > (step["begin"] + 0.99 * 5 * pause_s * n) * 1e9 for n, at in enumerate(begins))

    names = {"0.01": files[:4], "0.05": files[4:]}
    step |= {"begin": time.time(), "delays": [0.01, 0.05], "files": names, "absent": names}
    begin, found = time.time(), client.memory(step, folder)
    assert {label: len(asked) for label, asked in found.items()} == {
        f"{kind} {delay}": 4 for kind in ("files", "absent") for delay in (0.01, 0.05)
    }
    begins = sorted(at for asked in found.values() for at, _ in asked)
    assert all(at > (begin + 0.01 + 0.99 * pause_s * n) * 1e9 for n, at in enumerate(begins))
    assert min(at for at, _ in found["files 0.05"]) > (begin + 0.05) * 1e9
    os.close(folder)


def test_a_rate_that_leaves_no_room_is_refused():
    assert plan.plan(plan.Limits(rate=20.0)).lacks.startswith("--max-rate 20 for --seconds 20")
    assert plan.plan(plan.Limits(requests=1000)).lacks.startswith("--max-requests 1000")
    assert plan.plan(plan.Limits(rate=20.0, seconds=600)).lacks is None


def test_by_default_less_may_be_needed_than_is_allowed():
    assert plan.plan(plan.Limits()).requests < 20_000
