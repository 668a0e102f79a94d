"""`brigade-stage join`: a job on what stands already; and standing entries outlive their makers."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from typing import Any

from brigade.paths import native

from .conftest import Bench


def tool(bench: Bench, command: str, *extra: str, status: int = 0) -> list[dict[str, Any]]:
    done = subprocess.run(
        [str(native("brigade-stage")), command, "--base", str(bench.base(0)), *extra],
        text=True, stdout=subprocess.PIPE, timeout=60,
    )  # fmt: skip
    assert done.returncode == status
    return [json.loads(line) for line in done.stdout.splitlines()]


def join(bench: Bench, *extra: str, job: str = "step", status: int = 0) -> dict[str, Any]:
    (told,) = tool(bench, "join", "--image-id", bench.id, "--job", job, *extra, status=status)
    return told


def test_a_job_joins_what_stands_and_its_entries_found_changed_are_marked(bench: Bench) -> None:
    bench.put(1, "none", job="standing-here")
    assert join(bench, "--changed", "3,70") == {"host": os.uname().nodename, "found": True}
    state = (bench.staged(0) / "jobs/step/state").read_bytes()
    dirty_at = struct.unpack_from("<Q", state, 40)[0]
    assert struct.unpack_from("<2Q", state, dirty_at) == (1 << 3, 1 << 6)
    assert bench.drop(0, job="step")[0]["removed"] is False
    bench.check_same(0)
    assert bench.drop(0, job="standing-here")[0]["removed"] is True
    assert bench.left_on(0) == []


def test_where_nothing_stands_join_says_so_and_makes_nothing(bench: Bench) -> None:
    bench.base(0).mkdir()
    assert join(bench)["found"] is False
    assert list(bench.base(0).iterdir()) == []
    bench.put(1, "none")
    bench.drop(0)
    assert join(bench)["found"] is False
    assert bench.left_on(0) == []


def test_a_damaged_folder_is_not_joined_and_stays_as_it_was(bench: Bench) -> None:
    bench.put(1, "none", job="standing-here")
    index = bench.staged(0) / "index"
    index.chmod(0o600)
    index.write_bytes(b"no index")
    told = join(bench, status=3)
    assert told["found"] is False and "damaged" in told["reason"]
    assert os.listdir(bench.staged(0) / "jobs") == ["standing-here"]


def test_clean_leaves_a_standing_entry_until_its_allocation_is_known_to_be_over(
    bench: Bench,
) -> None:
    bench.put(1, "none", job="standing-slurm-7")
    found = tool(bench, "clean", "--idle", "0")[0]
    assert found["removed"] is False and found["why"] == "it stands until brigade unstage"
    found = tool(bench, "clean", "--idle", "0", "--over", "standing-slurm-77,standing-slurm")[0]
    assert found["removed"] is False
    found = tool(bench, "clean", "--idle", "0", "--over", "standing-slurm-8,standing-slurm-7")[0]
    assert found["removed"] is True and bench.left_on(0) == []


def test_clean_all_takes_standing_entries_too_but_not_from_under_a_job(bench: Bench) -> None:
    bench.put(1, "none", job="standing-here")
    join(bench)
    told = {one.get("job"): one for one in tool(bench, "clean", "--all")}
    assert told["standing-here"]["removed"] is True
    assert told["step"]["why"] == "younger than --idle"
    bench.check_same(0)
