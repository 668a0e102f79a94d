"""`brigade calibrate`: it keeps to what it says, and leaves nothing behind."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from brigade.calibrate import measure, plan, report
from brigade.model import calibration, show, system
from brigade.model.demand import Demand
from brigade.model.predict import predict


def calibrate(*words: object, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "brigade", "calibrate", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_a_dry_run_says_what_it_would_do_and_does_nothing(tmp_path):
    done = calibrate("--at", tmp_path, "--dry-run", "--max-requests", 9000, "--max-rate", 500)
    assert done.returncode == 0, done.stderr
    assert "at most 9,000 metadata requests" in done.stdout
    assert "never more than 500 a second" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A calibration with all the time it wants, and one short look at what is remembered."""
    folder = tmp_path_factory.mktemp("calibrate")
    limits = plan.Limits(seconds=300, read_bytes=4 << 20, clients=4)
    made = dataclasses.replace(plan.plan(limits), delays=(0.05,))
    found = measure.measure(made, str(folder), [], lambda step: None)
    return folder, report.as_dict(found, found.fitted(), limits, str(folder), None, [])


def test_nothing_is_left_in_the_folder(whole):
    folder, _ = whole
    assert list(folder.iterdir()) == []


def test_requests_stay_within_the_allowance_and_the_load_rises(whole):
    _, data = whole
    assert 1000 < data["requests"] <= data["limits"]["requests"]
    assert [point["clients"] for point in data["points"]] in ([1, 2], [1, 2, 4])


def test_each_kind_was_measured(whole):
    _, data = whole
    assert set(data["kinds"]) >= {
        "mkdir",
        "create",
        "stat",
        "open",
        "read",
        "opendir",
        "list",
        "link",
    }
    assert set(data["bytes_per_second"]) == {1, 4}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrate")
    written = folder / "system.json"
    words = ["--at", folder, "--seconds", 12, "--read-mib", 4, "--max-clients", 4, "--json"]
    done = calibrate(*words, "-o", written)
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == [written]
    return folder, written, json.loads(done.stdout)


def test_what_is_written_is_a_system_for_predict(measured):
    _, written, data = measured
    machine = system.load(written)
    assert machine.service_s == data["fit"]["service_s"] > 0
    assert machine.servers == data["fit"]["servers"]
    assert "network_bandwidth" in machine.assumed
    assert ("service_s" in machine.assumed) == (not data["fit"]["reached"])


def test_predict_takes_it(measured):
    _, written, data = measured
    words = ["predict", "--system", written, "--lookups", 5000, "--ranks", 1000, "--json"]
    command = [sys.executable, "-m", "brigade", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert data["system"]["name"] in done.stdout


def test_the_service_of_a_kind_is_what_it_takes_beside_the_round_trip_and_looking_up():
    fitted = calibration.Fit(1.0, 2, 0.25, 2.0, 1.25, True)
    kinds = {"open": [3.5], "opendir": [1.0], "list": [1.5], "link": [1.5], "stat": [1.25]}
    found = report.by_kind(measure.Measured(kinds=kinds), fitted, names_known=False)
    assert found == {"lookup": 1.0, "open": 2.0, "readdir": 2.0}  # the link is as good as nothing
    assert report.by_kind(measure.Measured(kinds=kinds), fitted, names_known=True)["open"] == 3.25
    kinds["list"] = [0.125]  # the listing came with the opening
    assert report.by_kind(measure.Measured(kinds=kinds), fitted, False)["readdir"] == 0.75


def test_bounds_of_a_limit_that_was_not_reached_are_no_measurements():
    fitted = calibration.Fit(1e-3, 4, 0.0, 4000.0, 1e-3, reached=False)
    machine = system.from_json(system.to_json(report.system(measure.Measured(), fitted, "ours")))
    assert {"service_s", "servers", "round_trip_s"} <= set(machine.assumed)
    assert machine.spread_of("service_s") == system.ASSUMED_SPREAD
    said = show.notes(Demand(), machine, [predict(Demand(cpu_s=1.0), machine, 4, 2, draws=0)])
    assert any("direct is an upper bound" in line for line in said)
    reached = report.system(measure.Measured(), dataclasses.replace(fitted, reached=True), "ours")
    assert "service_s" not in reached.assumed and reached.spread_of("service_s") == 0.02
    said = show.notes(Demand(), reached, [predict(Demand(cpu_s=1.0), reached, 4, 2, draws=0)])
    assert not any("upper bound" in line for line in said)


def test_what_nodes_remember_is_assumed_where_there_was_no_time_to_find_out():
    fitted = calibration.Fit(1e-3, 4, 1e-3, 4000.0, 2e-3, reached=True)
    unknown = report.system(measure.Measured(), fitted, "ours")
    assert {"caches_names", "caches_absent", "cores"} <= set(unknown.assumed)
    found = measure.Measured(files_again={0.1: [2e-3]})
    known = report.system(found, fitted, "ours")
    assert "caches_names" not in known.assumed and not known.caches_names
    assert "caches_absent" in known.assumed


def test_a_local_disk_is_called_one(tmp_path):
    fit = {"servers": 1, "service_s": 1e-6, "round_trip_s": 0.0, "throughput": 1e6, "also": [],
           "reached": True, "rest_s": 1e-6, "misfit": 0.0}  # fmt: skip
    data = {"fit": fit, "busy": 0.1, "remembered": {}, "stopped": ""}
    local = {"point": "/", "fstype": "ext4", "source": "/dev/sda"}
    shared = {"point": "/home", "fstype": "nfs4", "source": "server:/home"}
    assert "not a file system that nodes share" in report.sentences({**data, "mount": local})[0]
    assert "not a file system" not in " ".join(report.sentences({**data, "mount": shared}))


def test_bursts_that_nothing_explains_are_told():
    fit = {"servers": 4, "service_s": 1e-6, "round_trip_s": 0.0, "throughput": 1e6, "also": [],
           "reached": True, "rest_s": 1e-6, "misfit": 0.75}  # fmt: skip
    data = {"fit": fit, "busy": 0.1, "remembered": {}, "stopped": "", "mount": None}
    (_, said) = report.sentences({**data, "hosts": ["n0", "n1"]})
    assert "off by 75%" in said and "clocks differ" in said and "from one node" in said
    assert "clocks" not in report.sentences({**data, "hosts": ["n0"]})[1]
    fit["misfit"] = 0.2
    assert len(report.sentences({**data, "hosts": ["n0", "n1"]})) == 1


def test_nodes_whose_clocks_differ_do_not_fit():
    """Two servers, bursts of two nodes, of which one is half a second late by its clock."""
    late = int(5e8)
    bursts = []
    for size in (2, 4, 8):
        done = calibration.answers([0.0] * size, 2, 1e-3, 1.1e-3)
        bursts.append([(late * (i % 2), int(1e9 * took)) for i, took in enumerate(done)])
    points = [calibration.Point(n, 1000, x, 2e-3, 1.1e-3) for n, x in ((1, 900), (4, 2000))]
    together = [[(0, took) for _, took in burst] for burst in bursts]
    assert calibration.fit(points, together).misfit < 0.01
    assert calibration.fit(points, bursts).misfit > report._FAR


def test_ctrl_c_ends_it_and_removes_what_it_made(tmp_path):
    command = [sys.executable, "-m", "brigade", "calibrate", "--at", str(tmp_path)]
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while not list(tmp_path.glob("*/c0063")) and time.monotonic() < until:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=30) == 128 + signal.SIGINT
    finally:
        child.kill()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--at", "/nowhere"], 2, "no such folder"),
        (["--at", "/proc"], 1, "name a folder"),
        (["--max-requests", "1000"], 2, "too little"),
        (["--", "/nowhere/srun"], 3, "is not in PATH"),
        (["--", "/nowhere/else"], 3, "cannot start"),
    ],
)
def test_what_cannot_be_is_one_clear_error(tmp_path, words, code, said):
    done = calibrate(*words, cwd=tmp_path)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_ranks_of_a_launcher_ask_too(tmp_path):
    """A launcher of two ranks, as plain as can be: their lines may come in any order."""
    script = tmp_path / "launch"
    script.write_text(
        '#!/bin/sh\nprintf "caf\\351\\n"\n'
        'SLURM_PROCID=1 "$@" & SLURM_PROCID=0 "$@"; status=$?; wait; exit $status\n'
    )
    script.chmod(0o755)
    at = tmp_path / "at"
    at.mkdir()
    words = ["--at", at, "--seconds", 12, "--read-mib", 0, "--max-clients", 2, "--json"]
    done = calibrate(*words, "--", script)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["hosts"] == [os.uname().nodename]
    assert data["ranks"] == 2
    assert data["points"][0]["requests"] > 100
    assert list(at.iterdir()) == []


def test_bursts_leave_the_server_time_to_rest():
    times = plan.burst_times([1, 8], throughput=1000.0, rest_s=0.002)
    gaps = [(b - a, size) for (a, size), (b, _) in zip(times, times[1:])]
    assert all(gap > size / 1000.0 + 0.002 for gap, size in gaps)
