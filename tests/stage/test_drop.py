"""What `brigade-stage drop` tells of a job, and what it removes."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

from brigade.paths import native

from .conftest import Bench

ROOT = Path(__file__).parents[2]
STATE_H = (ROOT / "src/view/state.h").read_text().partition("enum brg_miss_cause")[0]
CAUSES = re.findall(r"^ +X\((\w+), ", STATE_H, re.MULTILINE)


class State:
    """A job's state file as src/view/state.h lays it out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        head = struct.unpack_from("<Q4I4Q2IQ", path.read_bytes())
        self.slots, self.dirty, self.misses = head[6:9]
        self.slot_bytes = (self.dirty - self.slots) // head[2]

    def write(self, offset: int, data: bytes) -> None:
        with self.path.open("r+b") as file:
            file.seek(offset)
            file.write(data)

    def slot(self, i: int, *, rank: int, hits: int, misses: dict[str, int]) -> dict[str, Any]:
        counts = [misses.get(cause, 0) for cause in CAUSES] + [0] * (8 - len(CAUSES))
        fields = struct.pack("<Ii4Q8Q2Q", 1000 + i, rank, 10, 20 + i, 0, hits, *counts, 3, 1)
        self.write(self.slots + i * self.slot_bytes, fields)
        return {
            "rank": rank, "pid": 1000 + i, "start_ns": 10, "last_load_ns": 20 + i, "ready_ns": 0,
            "hits": hits, "loads": 3, "processes": 1, "misses": misses,
        }  # fmt: skip

    def miss(self, i: int, op: bytes, cause: str, path: bytes) -> None:
        fields = struct.pack("<BBH12s240s", CAUSES.index(cause), 0, len(path), op, path)
        self.write(self.misses + i * len(fields), fields)

    def count_misses(self, n: int) -> None:
        self.write(60, struct.pack("<I", n))  # next_miss


def state_of(bench: Bench) -> State:
    return State(bench.staged(0) / "jobs/job/state")


def test_slots_and_misses_come_out_as_they_were_counted(bench: Bench) -> None:
    bench.put(1, "none")
    state = state_of(bench)
    want = [state.slot(i, rank=i, hits=100 * i, misses={"UNKNOWN": i + 1}) for i in range(3)]
    state.miss(0, b"open", "UNKNOWN", b"/sw/a")
    state.miss(1, b"stat", "UNKNOWN", b"/sw/a")
    state.miss(2, b"open", "WRITE", b'/sw/"q"\\\n')
    state.miss(3, b"open", "UNKNOWN", b"/sw/a")
    state.miss(4, b"open", "UNKNOWN", "/sw/ä".encode() + b"\xff")
    state.count_misses(5)
    lines = bench.drop(0)
    assert {line["host"] for line in lines} == {os.uname().nodename}
    assert [slot for line in lines for slot in line["slots"]] == want
    misses = {
        (m["op"], m["cause"], m["path"]): m["count"] for line in lines for m in line["misses"]
    }
    assert misses == {
        ("open", "UNKNOWN", "/sw/a"): 2,
        ("stat", "UNKNOWN", "/sw/a"): 1,
        ("open", "WRITE", '/sw/"q"\\\n'): 1,
        ("open", "UNKNOWN", "/sw/ä\udcff"): 1,
    }
    assert all(line["removed"] for line in lines)
    assert bench.left_on(0) == []


def test_programs_in_containers_are_told(bench: Bench) -> None:
    bench.put(1, "none")
    state_of(bench).write(128, struct.pack("<I", 12))  # away
    assert [line["away"] for line in bench.drop(0) if "away" in line] == [12]


def test_no_line_is_longer_than_a_launcher_forwards_whole(bench: Bench) -> None:
    bench.put(1, "none")
    state = state_of(bench)
    for i in range(64):
        state.slot(i, rank=i, hits=10**15, misses=dict.fromkeys(CAUSES, 10**12))
    for i in range(200):
        state.miss(i, b"open", "UNKNOWN", b"/sw/" + b"p%03d" % i * 50)
    state.count_misses(2**20)  # more than the ring holds
    done = subprocess.run(
        [native("brigade-stage"), "drop", "--image-id", bench.id, "--job", "job",
         "--base", bench.base(0)],
        stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    lines = done.stdout.splitlines(keepends=True)
    assert max(map(len, lines)) <= 1024
    objects = [json.loads(line) for line in lines]
    assert sum(len(o["slots"]) for o in objects) == 64
    assert sum(m["count"] for o in objects for m in o["misses"]) == 200


def test_a_damaged_state_is_no_obstacle(bench: Bench) -> None:
    for spoil in (b"", b"\0" * 100, os.urandom(2 << 20)):
        bench.put(1, "none")
        (bench.staged(0) / "jobs/job/state").write_bytes(spoil)
        assert bench.drop(0) == [
            {"host": os.uname().nodename, "slots": [], "misses": [], "found": True, "removed": True}
        ]


def test_keep_leaves_the_staged_folder_for_the_next_job(bench: Bench) -> None:
    bench.put(1, "none")
    assert bench.drop(0, "--keep")[0]["removed"] is False
    assert os.listdir(bench.staged(0) / "jobs") == []
    result = bench.put(1, "none", job="next")
    assert result["nodes"][0]["already"] is True
    assert bench.drop(0, job="next")[0]["removed"] is True


def test_several_drops_at_once_on_one_node_are_harmless(bench: Bench) -> None:
    bench.put(1, "none")
    state_of(bench).slot(0, rank=0, hits=1, misses={})
    command = [
        str(native("brigade-stage")), "drop", "--image-id", bench.id, "--job", "job",
        "--base", str(bench.base(0)),
    ]  # fmt: skip
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    objects = [json.loads(process.communicate(timeout=60)[0]) for process in running]
    assert all(process.returncode == 0 for process in running)
    assert sum(len(o["slots"]) for o in objects) == 1, "the counters are told once"
    assert sum(o["removed"] for o in objects) == 1
    assert bench.left_on(0) == []


def test_dropping_what_was_never_staged_says_so_and_succeeds(bench: Bench) -> None:
    bench.base(0).mkdir()
    assert bench.drop(0) == [
        {"host": os.uname().nodename, "slots": [], "misses": [], "found": False, "removed": False}
    ]
    assert not bench.folder(0).exists()
