"""`brigade-stage clean` takes away what dead jobs left, and nothing that lives."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

from brigade.paths import native

from .conftest import Bench


def clean(bench: Bench, *extra: str) -> list[dict[str, Any]]:
    """What it says of each thing; the last line is checked and left out."""
    done = subprocess.run(
        [str(native("brigade-stage")), "clean", "--base", str(bench.base(0)), *extra],
        text=True, stdout=subprocess.PIPE, check=True, timeout=60,
    )  # fmt: skip
    *found, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last == {"host": os.uname().nodename, "done": True}
    return found


def state_of(bench: Bench, job: str = "job") -> str:
    return str(bench.staged(0) / "jobs" / job / "state")


def test_a_dead_job_goes_and_its_image_with_it(bench: Bench) -> None:
    bench.put(1, "none")
    (found,) = clean(bench, "--idle", "0")
    assert (found["what"], found["id"], found["job"]) == ("job", bench.id, "job")
    assert found["removed"] is True and found["bytes"] > 4_000_000 and found["why"] == ""
    assert bench.left_on(0) == []
    assert clean(bench) == []


def test_a_young_job_stays_because_its_ranks_may_not_have_started(bench: Bench) -> None:
    bench.put(1, "none")
    (found,) = clean(bench)
    assert found["removed"] is False and found["why"] == "younger than --idle"
    bench.check_same(0)


def test_a_job_that_the_caller_knows_stays(bench: Bench) -> None:
    for job in ("one", "two", "three"):
        bench.put(1, "none", job=job)
    found = {one["job"]: one for one in clean(bench, "--idle", "0", "--live", "three,one")}
    assert {job: one["removed"] for job, one in found.items()} == {
        "one": False, "two": True, "three": False,
    }  # fmt: skip
    assert sorted(os.listdir(bench.staged(0) / "jobs")) == ["one", "three"]
    bench.check_same(0)


def test_a_job_whose_state_a_process_has_mapped_stays(bench: Bench) -> None:
    bench.put(1, "none")
    program = (
        "import mmap, sys, time; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0);"
        "f.close(); print('mapped', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, state_of(bench)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stdout.readline() == b"mapped\n"
        (found,) = clean(bench, "--idle", "0")
        assert found["removed"] is False and found["why"] == f"process {process.pid} uses it"
        process.kill()
    assert clean(bench, "--idle", "0")[0]["removed"] is True


def test_a_static_program_that_maps_nothing_counts_by_its_slot(bench: Bench) -> None:
    """As the wrapper leaves it: number and start time; then the program maps nothing."""
    bench.put(1, "none")
    rank = bench.staged(0) / "root/.brigade/bin/brigade-rank"
    rank.parent.mkdir(parents=True)
    shutil.copy2(native("brigade-rank"), rank)
    with subprocess.Popen([rank, "--job", "job", "--view", "python", "--", "sleep", "60"]) as sleep:
        wait_for_exec(sleep.pid)
        (found,) = clean(bench, "--idle", "0")
        assert found["why"] == f"process {sleep.pid} uses it"
        sleep.kill()
    assert clean(bench, "--idle", "0")[0]["removed"] is True


def wait_for_exec(pid: int) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with open(f"/proc/{pid}/comm") as comm:
            if comm.read() == "sleep\n":
                return
        time.sleep(0.01)
    raise AssertionError("the program did not start")


def test_a_process_number_that_is_used_again_is_not_the_rank(bench: Bench) -> None:
    bench.put(1, "none")
    with open(state_of(bench), "r+b") as state:
        slots = int.from_bytes(state.read(40)[32:40], "little")
        state.seek(slots)
        state.write(os.getpid().to_bytes(4, "little") + bytes(4) + (10**18).to_bytes(8, "little"))
    assert clean(bench, "--idle", "0")[0]["removed"] is True


def test_a_dry_run_says_the_same_and_removes_nothing(bench: Bench) -> None:
    bench.put(1, "none")
    (found,) = clean(bench, "--idle", "0", "--dry-run")
    assert found["removed"] is False and found["why"] == "" and found["job"] == "job"
    bench.check_same(0)


def test_what_a_killed_staging_left_goes_and_a_running_one_stays(bench: Bench) -> None:
    killed = bench.start(1, "none", fault="stage.kill:9")
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL and len(bench.left_on(0)) == 1
    (dry,) = clean(bench, "--dry-run")
    assert dry["what"] == "unfinished" and dry["bytes"] > 0 and len(bench.left_on(0)) == 1
    assert clean(bench)[0]["removed"] is True
    assert bench.left_on(0) == []
    slow = bench.start(1, "none", fault="stage.slow:30000")
    until = time.monotonic() + 20
    while not bench.left_on(0) and time.monotonic() < until:
        time.sleep(0.01)
    assert clean(bench, "--idle", "0") == []
    slow.communicate(timeout=60)
    assert slow.returncode == 0
    bench.check_same(0)


def test_a_kept_image_goes_only_with_all(bench: Bench) -> None:
    bench.put(1, "none")
    bench.drop(0, "--keep")
    (kept,) = clean(bench, "--idle", "0")
    assert kept["what"] == "image" and kept["why"] == "kept for later jobs"
    bench.check_same(0)
    assert clean(bench, "--all", "--dry-run")[0]["removed"] is False
    bench.check_same(0)
    assert clean(bench, "--all")[0]["removed"] is True
    assert bench.left_on(0) == []


def test_where_nothing_was_ever_staged_there_is_nothing_to_clean(bench: Bench) -> None:
    bench.base(0).mkdir()
    assert clean(bench) == []
