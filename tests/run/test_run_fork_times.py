"""What a launcher is told of the processor time that forked ranks took, and when."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import until
from project import Site

RANKS = 3
BURNED_S = 0.3
#: as mpirun does: starts ranks, and says of each its process, and at its end what wait4(2) said
LAUNCHER = """\
#!{python}
import json, os, sys
words, ranks, told = sys.argv[1:], 1, open({told!r}, "a", buffering=1)
while words[:1] and words[0].startswith("-"):
    if words[0] == "--version":
        sys.exit(0)
    ranks = int(words[1]) if words[0] == "-n" else ranks
    words = words[2:]
started = {{}}
for rank in range(ranks):
    pid = os.fork()
    if pid == 0:
        os.environ.update(MPI_LOCALNRANKS=str(ranks), PMI_RANK=str(rank))
        os.execvp(words[0], words)
    started[pid] = rank
    told.write(json.dumps({{"rank": rank, "pid": pid, "of": ranks}}) + "\\n")
worst = 0
while started:
    pid, status, used = os.wait4(-1, 0)
    rank, code = started.pop(pid), os.waitstatus_to_exitcode(status)
    worst = worst or code
    seconds = used.ru_utime + used.ru_stime
    line = {{"rank": rank, "status": code, "seconds": seconds, "of": ranks}}
    told.write(json.dumps(line) + "\\n")
sys.exit(worst & 255)
"""
APP = """\
import json, os, sys, time
import pkg
rank, folder = os.environ["PMI_RANK"], os.environ.get("HOLD")
while time.process_time() < {burned}:
    pass
os.write(1, (json.dumps({{"rank": int(rank), "pid": os.getpid(), "parent": os.getppid(),
                         "seconds": time.process_time()}}) + "\\n").encode())
while folder and not os.path.exists(f"{{folder}}/{{rank}}"):
    time.sleep(0.01)
sys.exit(int(open(f"{{folder}}/{{rank}}").read()) if folder else 0)
"""


class Job:
    """A job whose ranks were forked, and wait until they are told to end, and how."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.told = site.base / "told"
        self.hold = site.base / "hold"
        self.hold.mkdir()
        self.launcher = site.base / "mpirun"
        self.launcher.write_text(LAUNCHER.format(python=sys.executable, told=str(self.told)))
        self.launcher.chmod(0o755)
        site.app.write_text(APP.format(burned=BURNED_S))
        self.words = [str(self.launcher), "-n", str(RANKS), str(site.python), str(site.app)]

    def start(self) -> None:
        """Until all ranks have spoken, the image having been made before."""
        assert self.site.brigade_of(self.words, run=("--fork",)).returncode == 0
        self.told.write_text("")
        environment = {
            **os.environ,
            "HOLD": str(self.hold),
            "BRIGADE_CACHE": str(self.site.base / "cache"),
            "BRIGADE_NODE_DIR": str(self.site.nodes),
        }
        command = [sys.executable, "-m", "brigade", "run", "-q", "--fork", "--", *self.words]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.ranks = [json.loads(self.process.stdout.readline()) for _ in range(RANKS)]
        self.ranks.sort(key=lambda one: one["rank"])
        template = self.ranks[0]["parent"]
        assert {one["parent"] for one in self.ranks} == {template}
        #: the process that the launcher started, and that started the template
        self.first = int(Path(f"/proc/{template}/stat").read_text().rpartition(")")[2].split()[1])
        self.first_rank = next(one["rank"] for one in self.lines() if one.get("pid") == self.first)

    def lines(self) -> list[dict]:
        """Of this job: the same launcher stages with one process."""
        lines = [json.loads(line) for line in self.told.read_text().splitlines()]
        return [one for one in lines if one["of"] == RANKS]

    def ended(self) -> dict[int, int]:
        return {one["rank"]: one["status"] for one in self.lines() if "status" in one}

    def end(self, rank: int, status: int = 0) -> None:
        new = self.hold / f"{rank}.new"
        new.write_text(str(status))
        new.rename(self.hold / str(rank))

    def end_others(self) -> int:
        for rank in set(range(RANKS)) - {self.first_rank}:
            self.end(rank)
        return self.process.wait(60)


@pytest.fixture
def job(site: Site) -> Iterator[Job]:
    job = Job(site)
    job.start()
    try:
        yield job
    finally:
        for rank in range(RANKS):
            job.end(rank)
        job.process.wait(60)
        assert job.process.stdout
        job.process.stdout.close()


def test_the_launcher_hears_of_all_processor_time(job: Job) -> None:
    used = sum(one["seconds"] for one in job.ranks)
    assert used >= RANKS * BURNED_S
    job.end(job.first_rank)
    until(lambda: not Path(f"/proc/{job.ranks[job.first_rank]['pid']}").exists())
    assert job.end_others() == 0
    assert job.ended() == dict.fromkeys(range(RANKS), 0)
    assert sum(one["seconds"] for one in job.lines() if "status" in one) >= used


def test_a_signal_ends_the_process_that_waits_to_account_and_its_status_stays(job: Job) -> None:
    rank = job.ranks[job.first_rank]["pid"]
    job.end(job.first_rank)
    until(lambda: not Path(f"/proc/{rank}").exists())
    for number in (signal.SIGWINCH, signal.SIGCONT):  # which no process would notice
        os.kill(job.first, number)
    time.sleep(0.3)
    assert job.ended() == {}
    os.kill(job.first, signal.SIGTERM)
    until(lambda: job.ended() == {job.first_rank: 0})
    assert job.end_others() == 0


def test_a_rank_that_fails_is_not_waited_with(job: Job) -> None:
    job.end(job.first_rank, 3)
    until(lambda: job.ended() == {job.first_rank: 3})
    assert job.end_others() == 3


def test_a_rank_that_others_outlive_by_long_is_at_its_end_after_a_while(job: Job) -> None:
    job.end(job.first_rank)
    until(lambda: job.ended() == {job.first_rank: 0})
    assert job.process.poll() is None
    assert job.end_others() == 0
