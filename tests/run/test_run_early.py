"""Under srun the staging processes start while the image is still being checked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from project import Site

#: Notes what it is to start, and starts it once, on this machine.
SRUN = """\
#!/bin/sh
echo "$*" >> {log}
input=/dev/null
while [ "${{1#-}}" != "$1" ]; do
    case $1 in
        --input) [ "$2" = 0 ] && input=/dev/stdin; shift;;
        -n|-N|--nodes|--ntasks) shift;;
    esac
    shift
done
case $1 in *brigade-stage) exec "$@" < $input;; esac
exec "$@"
"""

#: `brigade` with a check of the image that first looks for the staging process, for a while.
SLOW_CHECK = """\
import pathlib, sys, time
from brigade.image import freshness
check, log, nodes = freshness.check, pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
def slow(*arguments):
    until = time.monotonic() + 20
    while "--held" not in log.read_text() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.5)
    print("held" in log.read_text(), list(nodes.glob("brigade-*/[0-9a-f]*")), file=sys.stderr)
    return check(*arguments)
freshness.check = slow
from brigade.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def cluster(site: Site) -> Cluster:
    return Cluster(site)


class Cluster:
    """A site with an srun, inside an allocation, and an image."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.log = site.base / "srun.log"
        self.srun = site.base / "bin/srun"
        self.srun.parent.mkdir()
        self.srun.write_text(SRUN.format(log=self.log))
        self.srun.chmod(0o755)
        self.env = {"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "1"}
        self.words = [str(self.srun), "-n", "1", str(site.python), str(site.app)]
        first = self.run()
        assert first.returncode == 0, first.stderr
        self.log.write_text("")

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.site.brigade_of(self.words, options, self.env)

    def start(self, program: list[str]) -> subprocess.Popen[str]:
        own = {"BRIGADE_CACHE": str(self.site.base / "cache"), "BRIGADE_PATIENCE": "60"}
        own["BRIGADE_NODE_DIR"] = str(self.site.nodes)
        report = str(self.site.base / "report.json")
        return subprocess.Popen(
            [sys.executable, *program, "run", "--json", report, "--", *self.words],
            env={**os.environ, **own, **self.env}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def steps(self) -> list[str]:
        """What was started, in order: trial, held or put, job, drop."""
        return [kind(line) for line in self.log.read_text().splitlines()]

    def in_memory(self) -> list[Path]:
        return list(self.site.nodes.glob("brigade-*/[0-9a-f]*"))


def kind(line: str) -> str:
    if " drop " in line:
        return "drop"
    if " put " in line:
        return "held" if "--held" in line else "put"
    return "trial" if "--record" in line else "job"


def test_one_step_stages_which_had_started_before_the_check_and_made_nothing(
    cluster: Cluster,
) -> None:
    job = cluster.start(["-c", SLOW_CHECK, str(cluster.log), str(cluster.site.nodes)])
    out, said = job.communicate(timeout=120)
    assert job.returncode == 0 and "True []" in said, said
    assert out == cluster.site.plain().stdout
    assert cluster.steps() == ["held", "job", "drop"]
    report = cluster.site.report()
    assert report["unstaged"] is None and report["staging"]["nodes"] == 1
    assert cluster.in_memory() == []


def test_an_image_that_is_made_anew_is_staged_by_another_step(cluster: Cluster) -> None:
    (cluster.site.package / "deep/leaf.py").write_text("x = 2222\n")
    again = cluster.run()
    assert again.returncode == 0 and again.stdout == cluster.site.plain().stdout, again.stderr
    assert cluster.steps() == ["held", "trial", "put", "job", "drop"]
    report = cluster.site.report()
    assert "leaf.py" in report["image"]["renewed"] and report["unstaged"] is None
    assert cluster.in_memory() == []


def test_a_folder_that_the_check_found_written_to_is_listed_for_real(site: Site) -> None:
    site.app.write_text(f"import os\nprint(sorted(os.listdir({str(site.app.parent)!r})))\n")
    cluster = Cluster(site)
    (site.app.parent / "new.txt").touch()
    again = cluster.run()
    assert again.returncode == 0 and "new.txt" in again.stdout, again.stderr
    assert cluster.steps() == ["held", "job", "drop"]
    report = site.report()
    assert report["unstaged"] is None
    assert report["image"]["left_to_file_system"] == [str(site.app.parent)]


def test_where_nothing_is_staged_early_nothing_is_held(cluster: Cluster) -> None:
    for options in (("--renew",), ("--view", "none")):
        cluster.log.write_text("")
        assert cluster.run(*options).returncode == 0
        assert "held" not in cluster.steps(), options


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_check_ends_what_waits(cluster: Cluster, number: int) -> None:
    job = cluster.start(["-c", SLOW_CHECK, str(cluster.log), str(cluster.site.nodes)])
    until = time.monotonic() + 40
    while "--held" not in cluster.log.read_text():
        assert time.monotonic() < until
        time.sleep(0.02)
    job.send_signal(number)
    _, said = job.communicate(timeout=40)
    assert job.returncode == -number and "stopped by" in said, said
    assert cluster.steps() == ["held"] and cluster.in_memory() == []
    until = time.monotonic() + 10
    while waiting(str(cluster.site.base)):
        assert time.monotonic() < until, "a process still waits"
        time.sleep(0.05)


def waiting(text: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--held" in words and any(text.encode() in word for word in words):
            found.append(folder.name)
    return found
