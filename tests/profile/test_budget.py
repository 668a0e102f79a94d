"""brigade budget: what is measured, and when it fails."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from made_traces import built, process, python
from profile_tools import brigade

from brigade.profile.budget import judge
from brigade.profile.profile import save

SCRIPT = "import sys; sys.exit(int(sys.argv[1]))"


@pytest.fixture(scope="module")
def job():
    """Two ranks on one node, one on another; rank 1 asks more."""
    more = "exec 0 /mnt/soft/app/bin/app\nopen 3 /scratch/a\n"
    more += "open ENOENT /scratch/b\nfread 10 /scratch/a\n"
    return built(
        process(more, rank=0),
        process(more * 2, rank=1, pid=200),
        process(more, rank=2, pid=100, host="n1"),
        process("open 3 /scratch/hosts\n", pid=50, exe="/usr/bin/mpirun"),
    ).profile


@pytest.mark.parametrize(
    ("what", "per", "measured"),
    [
        ("ops", "rank", 8), ("ops", "node", 12), ("ops", "job", 17),
        ("opens", "rank", 4), ("failed", "rank", 2), ("bytes", "job", 40),
    ],
)  # fmt: skip
def test_a_limit_is_of_who_asks_most(job, what, per, measured):
    (limit,) = judge(job, {what: measured}, per).limits
    assert (limit.measured, limit.over) == (measured, False)
    assert judge(job, {what: measured - 1}, per).over


def test_only_shared_mounts_count(job):
    profile = built(process("open 3 /etc/a\nopen 3 /proc/b\nopen 3 /scratch/c\n")).profile
    assert judge(profile, {"ops": 0}, "rank").limits[0].measured == 1


def test_what_asked_most_is_named_when_something_is_over():
    profile = built(python()).profile
    assert judge(profile, {"ops": 1000}, "rank").causes == []
    causes = judge(profile, {"ops": 1}, "rank").causes
    assert len(causes) == 3
    assert causes[0][0].startswith("sys.path /mnt/soft/py/lib/python3.11")
    assert [calls for _, calls in causes] == sorted((c for _, c in causes), reverse=True)


def run(*words: str, status: int = 0, cover: Path | None = None):
    more = ["--cover", str(cover)] if cover else []
    return brigade("budget", *words, *more, "--", sys.executable, "-c", SCRIPT, str(status))


def test_within_the_budget_is_exit_code_0(tmp_path):
    done = run("--max-ops", "100000", cover=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "ok   ops a rank: " in done.stderr


def test_over_the_budget_is_exit_code_8_with_a_line_a_limit():
    python_itself = Path(sys.executable).resolve().parent
    done = run("--max-ops", "0", "--max-bytes", "1000000000", cover=python_itself)
    assert done.returncode == 8
    assert "OVER ops a rank: " in done.stderr and "ok   bytes a rank: " in done.stderr
    assert "over the budget" in done.stderr


def test_a_program_that_fails_is_not_judged():
    done = run("--max-ops", "0", status=3)
    assert done.returncode == 9
    assert "ended with status 3" in done.stderr


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_a_program_that_could_not_be_seen_is_not_within_its_budget():
    words = ["budget", "--max-ops", "5", "--", "true"]
    done = subprocess.run(
        ["strace", "-f", "-o", os.devnull, sys.executable, "-m", "brigade", *words],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "no call was seen" in done.stderr and "another tracer" in done.stderr


def test_a_trace_that_was_cut_is_not_within_its_budget(tmp_path):
    words = ["--max-ops", "100000", "--cover", str(tmp_path), "--", sys.executable, "-c", "0"]
    done = subprocess.run(
        [sys.executable, "-m", "brigade", "budget", *words],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)),
        capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert (done.returncode, "ok " in done.stderr) == (1, False)
    assert "not all was seen" in done.stderr and "what came after" in done.stderr


# As srun does with the tasks of a step that is ended, and with their tracers.
KILLS_ALL = """\
#!/bin/sh
[ "$1" = --version ] && exit
shift 2
PMI_RANK=0 "$@" &
trap 'kill -9 $(sed -n "s/^TracerPid:[^0-9]*//p" /proc/$!/status) $!; exit 143' TERM
wait
"""


def test_a_job_that_we_end_is_judged_though_its_launcher_kills_the_tracers(tmp_path):
    launcher = tmp_path / "mpiexec"
    launcher.write_text(KILLS_ALL)
    launcher.chmod(0o755)
    goes_on = [sys.executable, "-c", "import time; time.sleep(600)"]
    words = ["--cover", str(tmp_path), "--", str(launcher), "-n", "1", *goes_on]
    done = brigade("budget", "--until-quiet", "1", "--max-ops", "100000", *words)
    assert done.returncode == 0 and "ok   ops a rank: " in done.stderr, done.stderr


def test_a_job_that_we_end_is_not_judged_where_there_was_no_room_for_its_trace(tmp_path):
    goes_on = [sys.executable, "-c", "import time; time.sleep(600)"]
    words = ["--until-quiet", "1", "--max-ops", "100000", "--cover", str(tmp_path), "--", *goes_on]
    done = subprocess.run(
        [sys.executable, "-m", "brigade", "budget", *words],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)),
        capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 1 and "no room for more" in done.stderr


def test_a_job_of_which_a_rank_was_not_heard_is_not_within_its_budget(tmp_path, job):
    launcher = tmp_path / "mpiexec"
    launcher.write_text('#!/bin/sh\n[ "$1" = --version ] || { shift 2; PMI_RANK=0 exec "$@"; }\n')
    launcher.chmod(0o755)
    words = ["--cover", str(tmp_path), "--", str(launcher), "-n", "2", "true"]
    done = brigade("budget", "--max-ops", "100000", *words)
    assert (done.returncode, "1 of 2 ranks left no trace" in done.stderr) == (1, True)
    job = dataclasses.replace(job, complete=False, lost=["so"])
    save(job, tmp_path / "p.json")
    words = ["--profile", str(tmp_path / "p.json"), "--per", "job"]
    assert brigade("budget", "--max-ops", "17", *words).returncode == 1
    assert brigade("budget", "--max-ops", "3", *words).returncode == 8


def test_without_a_limit_it_is_a_usage_error():
    assert run().returncode == 2


def test_an_earlier_profile_is_judged_without_a_run(tmp_path, job):
    save(job, tmp_path / "p.json")
    words = ["--profile", str(tmp_path / "p.json"), "--per", "job", "--json"]
    over = brigade("budget", "--max-ops", "3", *words)
    assert over.returncode == 8
    said = json.loads(over.stdout)
    assert said["over"] and said["limits"][0]["measured"] == 17
    assert brigade("budget", "--max-ops", "17", *words).returncode == 0
