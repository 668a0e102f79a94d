"""`brigade stage` and `brigade unstage` on one machine."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from project import Site

from brigade.job import ahead
from brigade.job.course import Settings
from brigade.job.standing import job_name, slurm_job_of


def brigade(
    site: Site, *words: str, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "BRIGADE_CACHE": str(site.base / "cache"),
        "BRIGADE_NODE_DIR": str(site.nodes),
        **variables,
    }
    return subprocess.run(
        [sys.executable, "-m", "brigade", *words],
        env=environment, cwd=cwd, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def stage(site: Site, *options: str) -> dict:
    done = brigade(site, "stage", "--json", *options, "--", str(site.python), str(site.app))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def left(site: Site) -> list[str]:
    return sorted(path.name for path in site.nodes.glob("brigade-*/[0-9a-f]*"))


@pytest.fixture
def standing(made: Site):
    yield stage(made)
    brigade(made, "unstage", "--all")
    assert left(made) == []


def test_an_entry_tells_the_slurm_job_in_whose_allocation_it_stands() -> None:
    assert slurm_job_of(job_name("slurm-17")) == slurm_job_of("standing-slurm-17") == "17"
    assert slurm_job_of(job_name("node.of-a.site")) is None


def test_what_stands_is_joined_by_later_runs_which_read_nothing(made: Site, standing: dict) -> None:
    assert standing["read_bytes"] > 0 and left(made) == [standing["staged_id"]]
    for _ in range(2):
        under = made.brigade("a")
        assert under.returncode == 0 and under.stdout == made.plain("a").stdout
        staging = made.report()["staging"]
        assert staging["transport"] == "standing" and staging["read_bytes"] == 0
        assert made.report()["operations"]["answered_per_rank"]["min"] > 10
        assert left(made) == [standing["staged_id"]], "a run takes away only what is its own"
        (entry,) = os.listdir(os.path.join(standing["folder"], "jobs"))
        assert entry.startswith(f"standing-{standing['allocation']}.")


def test_it_stays_until_unstage_and_then_runs_stage_for_themselves(
    made: Site, standing: dict
) -> None:
    assert "stays: it stands until brigade unstage" in brigade(made, "clean", "--idle", "0").stdout
    assert left(made) == [standing["staged_id"]]
    done = brigade(made, "unstage", "--json")
    assert json.loads(done.stdout)["unstaged"][0]["nodes"] == [
        {"host": os.uname().nodename, "found": True, "removed": True}
    ]
    assert left(made) == []
    made.brigade()
    assert made.report()["staging"]["transport"] == "alone"
    assert brigade(made, "unstage").stdout == "nothing stands here\n"


def test_a_staging_that_fails_takes_away_its_own_image_alone(made: Site, standing: dict) -> None:
    other = made.base / "other.py"
    other.write_text("import json\n")
    words = ("stage", "--", str(made.python), str(other))
    failed = brigade(made, *words, BRIGADE_FAULT="stage.kill:0", BRIGADE_PATIENCE="60")
    assert failed.returncode == 6, failed.stderr
    assert left(made) == [standing["staged_id"]]
    made.brigade()
    assert made.report()["staging"]["transport"] == "standing"


def test_an_image_that_stands_is_staged_again_without_leaving_anything(
    made: Site, standing: dict
) -> None:
    assert stage(made)["transport"] == "standing"
    assert brigade(made, "clean", "--all").returncode == 0
    assert stage(made)["transport"] == "alone"
    assert len(os.listdir(os.path.join(standing["folder"], "jobs"))) == 1
    assert "taken off 1 node\n" in brigade(made, "unstage").stdout
    assert left(made) == []


def test_unstage_tells_what_is_gone_from_what_is_used(made: Site, standing: dict) -> None:
    assert brigade(made, "clean", "--all").returncode == 0
    assert "taken off 0 nodes; it was not there any more on" in brigade(made, "unstage").stdout


def test_a_node_that_lost_it_is_staged_again(made: Site, standing: dict) -> None:
    assert brigade(made, "clean", "--all").returncode == 0  # as a restart of the node does
    assert left(made) == []
    under = made.brigade()
    assert under.returncode == 0 and made.report()["unstaged"] is None
    assert made.report()["staging"]["transport"] == "alone"


def test_an_image_that_stands_does_not_grow_under_it(site: Site) -> None:
    site.app.write_text("import sys, pkg\nif len(sys.argv) > 1:\n    __import__(sys.argv[1])\n")
    (site.package.parent / "other.py").write_text("")
    first = stage(site)
    try:
        for _ in range(2):
            assert site.brigade("other").returncode == 0
            report = site.report()
            assert report["misses"]["total"] > 0 and report["image"]["id"] == first["image_id"]
            assert report["staging"]["transport"] == "standing"
    finally:
        brigade(site, "unstage")
    assert site.brigade("other").returncode == 0
    assert site.report()["image"]["grown"], "and does afterwards"


def test_a_run_that_wants_less_memory_than_stands_stages_its_own(site: Site) -> None:
    (site.package / "data.txt").write_text("x" * 400_000)
    assert site.brigade(run=("--memory", "1G")).returncode == 0
    less = ("--memory", str(site.report()["staging"]["memory"]["whole"] - 1))
    whole = stage(site)
    cut = site.brigade(run=less)
    assert cut.returncode == 0 and site.report()["staging"]["transport"] == "alone"
    assert left(site) == [whole["staged_id"]]
    brigade(site, "unstage")
    small = stage(site, *less)
    assert small["staged_id"] != small["image_id"]
    for more in ((), less):
        assert site.brigade(run=more).returncode == 0
        assert site.report()["staging"]["transport"] == "standing"
    brigade(site, "unstage")
    assert left(site) == []


def test_an_image_by_its_file_needs_no_program(made: Site, standing: dict) -> None:
    assert brigade(made, "unstage").returncode == 0
    done = brigade(made, "stage", "--json", "--image", standing["image"])
    assert json.loads(done.stdout)["staged_id"] == standing["staged_id"], done.stderr
    made.brigade()
    assert made.report()["staging"]["transport"] == "standing"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "give a launcher and a program"),
        (("--image", "/none.brg"), 4, "/none.brg"),
        (("--", "/no/such/program"), 5, "the trial"),
    ],
)
def test_what_cannot_be_staged_is_one_clear_error(made: Site, words, code: int, said: str) -> None:
    done = brigade(made, "stage", *words)
    assert done.returncode == code and said in done.stderr and "Traceback" not in done.stderr


def test_no_room_is_exit_code_6_and_nothing_is_left(made: Site) -> None:
    words = ("stage", "--", str(made.python), str(made.app))
    done = brigade(made, *words, BRIGADE_NODE_DIR="/proc")
    assert done.returncode == 6 and "/proc" in done.stderr
    assert brigade(made, "unstage").stdout == "nothing stands here\n"


def test_unstage_means_the_launchers_words_as_they_were_meant(made: Site, tmp_path: Path) -> None:
    launcher = tmp_path / "mpirun"
    launcher.write_text(
        "#!/bin/sh\n[ -e hosts ] || exit 9\n"
        'while [ "$1" ] && [ "${1#/}" = "$1" ]; do shift; done\nexec "$@"\n'
    )
    launcher.chmod(0o755)
    (tmp_path / "hosts").write_text("localhost\n")
    words = ("./mpirun", "-n", "1", "-f", "hosts", str(made.python), str(made.app))
    done = brigade(made, "stage", "--", *words, cwd=tmp_path)
    assert done.returncode == 0 and left(made), done.stderr
    done = brigade(made, "unstage", cwd=made.base)
    assert done.returncode == 0 and left(made) == [], done.stderr


def test_what_cannot_be_taken_away_keeps_nothing_else_standing(made: Site) -> None:
    stage(made)
    for name in ("another.py", "third.py"):
        other = made.base / name
        other.write_text("import json\n")
        assert brigade(made, "stage", "--", str(made.python), str(other)).returncode == 0
    records = sorted((made.base / "cache/standing").glob("*/*.json"))
    assert len(records) == len(left(made)) == 3
    told = [json.loads(record.read_text()) for record in records]
    for at, words in ((0, ["/none/mpirun", "./a"]), (1, ["mpirun", "--no-such-option"])):
        records[at].write_text(json.dumps({**told[at], "words": words}))
    done = brigade(made, "unstage")
    assert done.returncode == 3 and "/none/mpirun" in done.stderr and "Traceback" not in done.stderr
    for one in told[:2]:
        assert f"brigade: {one['image']} ({one['allocation']}): " in done.stderr
    assert done.stdout == f"{told[2]['image']}: taken off 1 node\n"
    assert left(made) == sorted(one["staged_id"] for one in told[:2])
    again = json.loads(brigade(made, "unstage", "--json").stdout)["unstaged"]
    assert [(one["image"], one["nodes"]) for one in again] == [(o["image"], []) for o in told[:2]]
    assert all(one["why"] and one["failed"] for one in again)
    for record, one in zip(records[:2], told):
        record.write_text(json.dumps(one))
    assert brigade(made, "unstage").returncode == 0 and left(made) == []


def test_what_the_system_refuses_of_one_image_keeps_no_other_standing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def take_away(what: SimpleNamespace) -> dict:
        if what.image == "first":
            raise PermissionError(errno.EACCES, "Permission denied", "/shut")
        return {"nodes": [{"host": "a", "found": True, "removed": True}]}

    stand = [SimpleNamespace(allocation="a", image=i, staged_id=i) for i in ("first", "second")]
    monkeypatch.setattr(ahead.standing, "all_of", lambda where: stand)
    monkeypatch.setattr(ahead, "_take_away", take_away)
    first, second = ahead.unstage(True)
    assert first["failed"] == 6 and first["why"] == "/shut: Permission denied"
    assert second["failed"] == 0 and second["nodes"][0]["removed"]


def test_where_no_record_can_be_kept_nothing_stands(made: Site, tmp_path: Path) -> None:
    made.brigade()
    image = made.report()["image"]
    none, full = tmp_path / "none", tmp_path / "full"
    none.write_text("")  # no folder can be made here, and no record of this name there
    (full / "standing" / os.uname().nodename / f"{image['id']}.json").mkdir(parents=True)
    for cache in (none, full):
        done = brigade(made, "stage", "--image", image["path"], BRIGADE_CACHE=str(cache))
        assert done.returncode == 6 and "Traceback" not in done.stderr
        assert f"{cache}/standing" in done.stderr and "BRIGADE_CACHE names" in done.stderr
        assert left(made) == []


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.all)]
)
def test_a_signal_while_it_stages_ends_it_and_leaves_nothing(made: Site, number: int) -> None:
    environment = {
        **os.environ,
        "BRIGADE_CACHE": str(made.base / "cache"),
        "BRIGADE_NODE_DIR": str(made.nodes),
        "BRIGADE_PATIENCE": "60",
        "BRIGADE_FAULT": "stage.slow:3000000",
    }
    words = [sys.executable, "-m", "brigade", "stage", "--", str(made.python), str(made.app)]
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as job:
        until = time.monotonic() + 60
        while not left(made) and time.monotonic() < until:
            time.sleep(0.02)
        job.send_signal(number)
        _, said = job.communicate(timeout=60)
    assert job.returncode == -number and "stopped by" in said and "Traceback" not in said
    assert left(made) == []
    assert brigade(made, "unstage").stdout == "nothing stands here\n"


def _stagings(site: Site, n: int) -> list[int]:
    environment = {
        **os.environ,
        "BRIGADE_CACHE": str(site.base / "cache"),
        "BRIGADE_NODE_DIR": str(site.nodes),
        "BRIGADE_PATIENCE": "60",
        "BRIGADE_FAULT": "stage.slow:1000000",  # so that none finds another's record
    }
    words = [sys.executable, "-m", "brigade", "stage", "-q", "--", str(site.python), str(site.app)]
    at_once = [subprocess.Popen(words, env=environment) for _ in range(n)]
    return [one.wait(timeout=120) for one in at_once]


def test_unstage_takes_away_what_stagings_at_the_same_time_have_left(made: Site) -> None:
    assert _stagings(made, 3) == [0, 0, 0]
    done = brigade(made, "unstage")
    assert "taken off 1 node\n" in done.stdout and left(made) == [], done.stdout


def test_unstage_takes_away_what_a_staging_without_a_record_has_left(made: Site) -> None:
    stage(made)
    shutil.rmtree(made.base / "cache/standing")  # as if it had been killed before its record
    stage(made)
    (jobs,) = made.nodes.glob("brigade-*/*/jobs")
    assert len(os.listdir(jobs)) == 2
    foreign = jobs / f"standing-{os.uname().nodename}.of-a.site.{os.uname().nodename}.of-a.site-1"
    foreign.mkdir()
    assert "a job still uses it" in brigade(made, "unstage").stdout
    assert os.listdir(jobs) == [foreign.name], "that of another host's is not ours"
    assert brigade(made, "clean", "--all").returncode == 0 and left(made) == []


def test_what_another_staging_has_noted_meanwhile_goes(
    made: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRIGADE_CACHE", str(made.base / "cache"))
    monkeypatch.setenv("BRIGADE_NODE_DIR", str(made.nodes))
    stage(made)
    (record,) = (made.base / "cache/standing").glob("*/*.json")
    other = {**json.loads(record.read_text()), "staged_id": "0" * 32, "job": "standing-other"}
    assert brigade(made, "unstage").returncode == 0
    bring, dropped = ahead.bring, []

    def brought(*words, **named):
        found = bring(*words, **named)
        record.write_text(json.dumps(other))
        return found

    monkeypatch.setattr(ahead, "bring", brought)
    monkeypatch.setattr(ahead.stage, "drop", lambda *words, **named: dropped.append(words[1:]))
    told = ahead.stage_ahead(Settings([str(made.python), str(made.app)], quiet=True))
    assert dropped == [("0" * 32, "standing-other")]
    assert json.loads(record.read_text())["staged_id"] == told["staged_id"]
    assert "taken off 1 node\n" in brigade(made, "unstage").stdout and left(made) == []


def test_a_staging_with_other_bytes_takes_away_all_of_what_stood(site: Site) -> None:
    (site.package / "data.txt").write_text("x" * 400_000)
    assert site.brigade(run=("--memory", "1G")).returncode == 0
    less = str(site.report()["staging"]["memory"]["whole"] - 1)
    whole = stage(site)
    (record,) = (site.base / "cache/standing").glob("*/*.json")
    shutil.copy(record, site.base / "whole.json")
    record.unlink()
    small = stage(site, "--memory", less)
    assert sorted(left(site)) == sorted([whole["staged_id"], small["staged_id"]])
    shutil.copy(site.base / "whole.json", record)
    assert stage(site, "--memory", less)["staged_id"] == small["staged_id"]
    assert left(site) == [small["staged_id"]]
    brigade(site, "unstage")
    assert left(site) == []
