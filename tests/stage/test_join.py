"""`brigade-stage join`: a job on what stands already; and standing entries outlive their makers."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import stat
import struct
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from brigade.image.writer import ImageWriter
from brigade.paths import native
from brigade.trial import mounts

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


def test_a_job_is_told_what_this_node_calls_the_mounts_of_the_image(
    bench: Bench, tmp_path: Path
) -> None:
    here = os.stat(tmp_path).st_dev
    if here not in {mount.device for mount in mounts.read()}:
        pytest.skip(f"needs a file system whose files have its mount's number, and not {tmp_path}")
    image = bench.work / "other.brg"
    with ImageWriter(image) as writer:
        writer.add_root(str(tmp_path))
        writer.add(str(tmp_path), SimpleNamespace(st_mode=0o40755, st_dev=4711), mount_dev=True)
        other = dataclasses.replace(bench, image=image, id=writer.commit())
    other.put(1, "none", job="standing-here")
    join(other)
    for job in ("standing-here", "step"):
        state = (other.staged(0) / "jobs" / job / "state").read_bytes()
        assert struct.unpack_from("<I", state, 132) == (1,)
        assert struct.unpack_from("<2Q", state, 648) == (4711, here)


def test_a_state_that_another_is_just_making_is_no_error(bench: Bench) -> None:
    bench.put(1, "none", job="standing-here")
    state = bench.staged(0) / "jobs/step/state"
    state.parent.mkdir()
    state.touch()
    os.utime(state, (time.time() + 60,) * 2)  # not one of long ago, however slow this machine is
    assert join(bench, "--changed", "3") == {"host": os.uname().nodename, "found": True}
    assert state.stat().st_size == 0


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


LAND = "brigade-{}.land-carried"


def carry(bench: Bench) -> tuple[Path, Path]:
    """As sbcast does it: the program, then, where that made room, the image."""
    program = bench.base(0) / LAND.format(bench.uid)
    bench.base(0).mkdir(exist_ok=True)
    shutil.copy2(native("brigade-land"), program)
    done = subprocess.run(
        [program, "join", "--image-id", bench.id, "--job", "job", "--base", bench.base(0),
         "--incoming", "carried"], text=True, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["found"] is False
    incoming = bench.folder(0) / "incoming-carried"
    assert stat.S_IMODE(incoming.stat().st_mode) == 0o700
    shutil.copy2(bench.image, incoming / "image")
    return program, incoming


def land(program: Path, incoming: Path, *extra: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [program, "put", "--image", incoming / "image", "--job", "job", "--mpi", "none",
         "--base", program.parent, "--incoming", "carried", *extra],
        text=True, capture_output=True, timeout=60, env={**os.environ, **env},
    )  # fmt: skip


def test_what_was_carried_is_staged_from_there_and_goes(bench: Bench) -> None:
    program, incoming = carry(bench)
    done = land(program, incoming)
    assert done.returncode == 0, done.stderr
    bench.check_same(0)
    assert bench.left_on(0) == [bench.id] and not program.exists() and not incoming.exists()
    assert native("brigade-land").exists(), "only a carried program removes itself"


@pytest.mark.parametrize("fault", ["stage.read:1", "stage.write:5000", "stage.publish"])
def test_what_was_carried_goes_when_staging_fails_too(bench: Bench, fault: str) -> None:
    program, incoming = carry(bench)
    done = land(program, incoming, BRIGADE_FAULT=fault)
    assert done.returncode == 3 and json.loads(done.stdout)["ok"] is False
    assert bench.left_on(0) == [] and not program.exists()


def test_drop_takes_away_what_was_carried_and_not_staged(bench: Bench) -> None:
    program, incoming = carry(bench)
    subprocess.run(
        [program, "drop", "--image-id", bench.id, "--job", "job", "--base", bench.base(0),
         "--incoming", "carried"], check=True, stdout=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    assert bench.left_on(0) == [] and not program.exists()


def test_clean_takes_what_was_carried_when_it_is_old(bench: Bench) -> None:
    program, incoming = carry(bench)
    assert tool(bench, "clean") == [{"host": os.uname().nodename, "done": True}]
    assert program.exists() and (incoming / "image").exists()
    found = {one["id"]: one for one in tool(bench, "clean", "--idle", "0") if "what" in one}
    assert set(found) == {incoming.name, program.name}
    assert found[incoming.name]["bytes"] >= bench.image.stat().st_size
    assert bench.left_on(0) == [] and not program.exists()


def test_a_name_that_leads_elsewhere_is_refused(bench: Bench) -> None:
    bench.base(0).mkdir()
    for name in ("../out", "a/b", ".", ""):
        told = join(bench, "--incoming", name, status=3)
        assert "cannot name" in told["reason"]
    assert bench.left_on(0) == [] and len(list(bench.base(0).iterdir())) == 1


def test_the_program_that_is_carried_needs_nothing_on_its_node(bench: Bench) -> None:
    said = subprocess.run(
        ["readelf", "-lW", native("brigade-land")], capture_output=True, text=True, check=True
    )
    assert "INTERP" not in said.stdout and "DYNAMIC" not in said.stdout
    done = subprocess.run(
        [native("brigade-land"), "put", "--image", bench.image, "--job", "j"],
        text=True, capture_output=True, timeout=60,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert done.returncode == 3 and told["mpi"] is False and "no MPI" in told["reason"]


def test_drop_also_takes_the_jobs_of_that_image_that_are_named_alike(bench: Bench) -> None:
    for job in ("standing-a.a-1", "standing-a.a-2", "standing-a.b-3"):
        bench.put(1, "none", job=job)
    words = ("--image-id", bench.id, "--job", "standing-a.gone", "--also", "standing-a.a-")
    (told,) = tool(bench, "drop", *words)
    assert (told["found"], told["removed"]) == (True, False)
    assert os.listdir(bench.staged(0) / "jobs") == ["standing-a.b-3"]
    (told,) = tool(bench, "drop", *words)
    assert (told["found"], told["removed"]) == (False, False)
    tool(bench, "drop", *words[:-1], "", status=2)
    other = ("--image-id", "0" * 32, "--job", "x", "--also", "standing-")
    assert tool(bench, "drop", *other)[0]["found"] is False
    (told,) = tool(bench, "drop", *words[:-1], "standing-a.b-")
    assert (told["found"], told["removed"]) == (True, True) and bench.left_on(0) == []


def test_clean_leaves_a_standing_entry_until_its_allocation_is_known_to_be_over(
    bench: Bench,
) -> None:
    bench.put(1, "none", job="standing-slurm-7")
    found = tool(bench, "clean", "--idle", "0")[0]
    assert found["removed"] is False and "it stands until brigade unstage" in found["why"]
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
