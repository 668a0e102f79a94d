"""The clients' counters: each client's own text is read right, requests keep their number and
their time, and nothing that goes wrong reaches the job."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from brigade.profile import counters
from brigade.profile.clients import Client, Mounted, Reading, lab, lustre, moosefs, nfs
from brigade.profile.counters import Sampler

HERE = Path(__file__).parent / "clients"


class Clock:
    """A client whose readings are given, one after the other; the last one stays."""

    def __init__(self, *readings: Reading | Exception) -> None:
        self.readings = list(readings)
        self.asked = 0

    def __call__(self) -> Reading:
        self.asked += 1
        one = self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]
        if isinstance(one, Exception):
            raise one
        return one

    def client(self, source: str = "nfs") -> Client:
        return Client(source, "/sw", self, "/sw: as told.")


def sampled(*readings: tuple[float, dict[str, int]], step_s: float = 0.1) -> Sampler:
    """A sampler that has taken these readings at these seconds."""
    sampler = Sampler([Clock(*(Reading(kinds) for _, kinds in readings)).client()], step_s)
    sampler.start_ns = 5_000_000_000
    sampler._series = [counters._Series(client) for client in sampler.clients]
    for at, _ in readings:
        sampler._series[0].take(at)
    return sampler


def test_nfs_counts_operations_and_keeps_its_lease_apart():
    text = (HERE / "mountstats").read_text()
    sw = nfs.parse(text, "/sw")
    assert (sw.kinds["LOOKUP"], sw.kinds["READDIRPLUS"], sw.kinds["WRITE"]) == (21045, 470, 1)
    assert "CREATE" not in sw.kinds and sw.background == 1 + 2
    assert sw.bytes_read == 61_865_984
    home = nfs.parse(text, "/home/a user")
    assert (home.kinds["OPEN"], home.kinds["OPEN_NOATTR"], home.background) == (12, 4, 58)
    with pytest.raises(ValueError):
        nfs.parse(text, "/proc")


def test_two_mounts_of_one_export_are_counted_once():
    mounts = [Mounted(p, "nfs", "fs1:/sw", "0:52") for p in ("/sw", "/opt/sw")]
    mounts.append(Mounted("/home/a user", "nfs4", "fs1:/home", "0:53"))
    found = nfs.readers(mounts, str(HERE / "mountstats"))
    assert [client.mount for client in found] == ["/sw", "/home/a user"]
    assert [client.read().kinds["LOOKUP"] for client in found] == [21045, 55]


def test_lustre_counts_calls_of_its_own_file_system_and_pings_apart(tmp_path: Path):
    for name, page in (
        ("mdc/scratch-MDT0000-mdc-ffff88", "mdc_stats"),
        ("mdc/scratch-MDT0001-mdc-ffff88", "mdc_stats"),
        ("mdc/other-MDT0000-mdc-ffff88", "mdc_stats"),
        ("osc/scratch-OST0000-osc-ffff88", "osc_stats"),
    ):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "stats").write_bytes((HERE / page).read_bytes())
    mounts = [Mounted("/scratch", "lustre", "10.1.1.1@o2ib:10.1.1.2@o2ib:/scratch", "0:60")]
    (client,) = lustre.readers(mounts, ["/no/such", str(tmp_path)])
    reading = client.read()
    assert reading.kinds["ldlm_ibits_enqueue"] == 2 * 41210
    assert reading.background == 2 * (437 + 1) and reading.bytes_read == 61_865_984
    assert sum(reading.kinds.values()) + reading.background == 2 * 51240
    assert "calls to the servers" in client.note


def test_where_lustre_shows_only_operations_they_are_taken_and_said_to_be_that(tmp_path: Path):
    folder = tmp_path / "mdc/scratch-MDT0000-mdc-ffff88"
    folder.mkdir(parents=True)
    (folder / "md_stats").write_text("getattr 1425 samples [reqs]\nclose 873 samples [reqs]\n")
    mounts = [Mounted("/scratch", "lustre", "10.1.1.1@tcp:/scratch/sub", "0:60")]
    (client,) = lustre.readers(mounts, [str(tmp_path)])
    assert client.read() == Reading({"getattr": 1425, "close": 873})
    assert "operations" in client.note


def test_moosefs_tells_all_packets_and_of_the_kinds_what_it_knows_exactly():
    reading = moosefs.parse((HERE / "mfs_stats").read_text())
    assert reading.kinds == {"lookup": 9001, "readlink": 17, "other": 12409 - 9018}
    with pytest.raises(ValueError):
        moosefs.parse("hello")


def test_the_lab_is_read_on_all_nodes_with_background_apart(tmp_path: Path, monkeypatch):
    (tmp_path / "counters").mkdir()
    for node in ("n0", "n1"):
        kinds = struct.pack("<20sIQ", b"lookup", 0, 40) + struct.pack("<20sIQ", b"ping", 1, 3)
        page = struct.pack("<8sQQQ", b"BRGLABC1", 2, 500, 0) + kinds
        (tmp_path / "counters" / node).write_bytes(page)
    monkeypatch.setenv("BRIGADE_LAB_STATE", str(tmp_path))
    monkeypatch.setenv("BRIGADE_LAB_SHARED", "/mnt/lab")
    mounts = [Mounted("/mnt/lab", "fuse", "mfs#10.1.1.1:9421", "0:84")]
    (client,) = lab.readers(mounts)
    assert client.source == "moosefs" and client.read() == Reading({"lookup": 80}, 6, 1000)
    assert lab.readers([]) == []
    monkeypatch.delenv("BRIGADE_LAB_STATE")
    assert lab.readers(mounts) == []


def test_mounts_are_taken_from_mountinfo_with_their_names_plain(tmp_path: Path):
    (tmp_path / "info").write_text(
        "36 1 259:2 / / rw - ext4 /dev/vda rw\n"
        "37 1 0:52 / /home/a\\040user rw - nfs4 fs1:/home rw\n"
        "38 1 0:84 / /mnt/mfs rw - fuse mfs\\04310.203.0.1:9421 rw\n"
        "not a mount\n"
    )
    assert counters.mounted(str(tmp_path / "info")) == [
        Mounted("/home/a user", "nfs4", "fs1:/home", "0:52"),
        Mounted("/mnt/mfs", "fuse", "mfs#10.203.0.1:9421", "0:84"),
    ]
    assert counters.mounted("/no/such") == []
    assert counters.find("/no/such") == []


def test_every_request_is_in_one_step_and_none_is_lost():
    sampler = sampled(
        *((0.0, {"a": 7}), (0.13, {"a": 20, "b": 5}), (0.26, {"a": 21, "b": 5})),
        *((0.41, {"a": 100, "b": 6}), (1.05, {"a": 103, "b": 6})),
    )
    (line,) = sampler.timelines()
    assert {kind: sum(values) for kind, values in line.kinds.items()} == {"a": 96, "b": 6}
    assert len(line.kinds["a"]) == 11 and min(line.kinds["a"]) >= 0
    (count,) = sampler.counts("cold")
    assert (count.requests, count.kinds, count.state) == (102, {"a": 96, "b": 6}, "cold")
    assert count.bytes_read is None


def test_a_timeline_starts_where_the_trace_does():
    sampler = sampled((0.0, {"a": 0}), (0.1, {"a": 50}), (0.2, {"a": 50}))
    (line,) = sampler.timelines(zero_ns=4_700_000_000)
    assert line.kinds["a"][:3] == [0, 0, 0] and line.kinds["a"][3] == 50


def test_a_start_long_before_the_readings_makes_steps_longer_and_not_more():
    sampler = sampled((0.0, {"GETATTR": 0}), (0.4, {"GETATTR": 4}))
    sampler.start_ns = 1_800_000_000 * 10**9
    (line,) = sampler.timelines(zero_ns=0)
    assert line.kinds["GETATTR"][-1] == 4 and len(line.kinds["GETATTR"]) <= 2 * counters.MOST + 1


def test_a_counter_that_fell_has_not_grown():
    sampler = sampled((0.0, {"a": 900}), (0.1, {"a": 10}), (0.2, {"a": 12}))
    assert sampler.counts()[0].requests == 0 and sampler.timelines() == []


@pytest.mark.parametrize("error", [OSError("gone"), ValueError("odd"), RuntimeError("worse")])
def test_a_client_that_cannot_be_read_is_left_out_and_named(error):
    broken, good = Clock(error), Clock(Reading({"a": 1}), Reading({"a": 5}))
    with Sampler([broken.client(), good.client()], step_s=0.01) as sampler:
        pass
    assert broken.asked == 1
    assert [count.requests for count in sampler.counts()] == [4]
    assert sampler.notes == [
        f"/sw: its client's counters cannot be read: {error}",
        "/sw: as told.",
    ]


def test_an_error_of_the_job_passes_and_the_thread_ends():
    clock = Clock(Reading({"a": 1}))
    with pytest.raises(KeyboardInterrupt):
        with Sampler([clock.client()], step_s=0.001) as sampler:
            raise KeyboardInterrupt
    asked = clock.asked
    assert sampler._thread and not sampler._thread.is_alive()
    sampler.stop()
    assert clock.asked == asked


def test_readings_go_on_while_the_job_runs():
    clock = Clock(Reading({"a": 1}))
    with Sampler([clock.client()], step_s=0.001):
        deadline = time.monotonic() + 60
        while clock.asked < 20 and time.monotonic() < deadline:
            time.sleep(0.005)
    assert clock.asked >= 20


def test_a_long_job_has_fewer_readings_and_the_same_sum(monkeypatch):
    monkeypatch.setattr(counters, "MOST", 10)
    clock = Clock(*(Reading({"a": n}) for n in range(41)))
    sampler = Sampler([clock.client()], step_s=0.1)
    sampler._series = [counters._Series(client) for client in sampler.clients]
    sampler._zero = time.monotonic()
    for _ in range(41):
        sampler._read()
    assert len(sampler._series[0].readings) <= 11 and sampler.step_s > 0.1
    assert sampler.counts()[0].requests == 40


def test_readings_are_bounded_where_the_first_client_has_ended(monkeypatch):
    monkeypatch.setattr(counters, "MOST", 10)
    dead, alive = Clock(OSError("gone")), Clock(Reading({"a": 1}))
    sampler = Sampler([dead.client(), alive.client()], step_s=0.1)
    sampler._series = [counters._Series(client) for client in sampler.clients]
    sampler._zero = time.monotonic()
    for _ in range(100):
        sampler._read()
    assert len(sampler._series[1].readings) <= 11


def test_without_clients_nothing_runs_and_nothing_is_said():
    with Sampler([]) as sampler:
        assert sampler._thread is None
    assert (sampler.counts(), sampler.timelines(), sampler.notes) == ([], [], [])


def test_each_client_that_is_found_says_whose_counters_those_are(tmp_path):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "22 21 0:50 / /sw rw - nfs4 server:/sw rw\n"
        "23 21 0:51 / /data rw - fuse.mfs mfs#master:9421 rw\n"
    )
    found = counters.find(str(mounts))
    assert [(client.source, client.mount) for client in found] == [
        ("moosefs", "/data"), ("nfs", "/sw"),
    ]  # fmt: skip
    for client in found:
        assert client.note.startswith(f"{client.mount}: this node's client alone")
    assert all(client.note for client in counters.find())
