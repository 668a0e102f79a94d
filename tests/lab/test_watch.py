"""`brigade lab watch` shows what reaches the file system, all of it, while it happens."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from brigade.errors import LabError
from brigade.lab import Lab
from brigade.lab.watch import steps
from brigade.profile.clients.lab import client
from brigade.profile.counters import Sampler

LOOK = "import os,sys; os.chdir(sys.argv[1]); [os.path.exists(f'no{i}') for i in range(200)]"


def watch(lab: Lab, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "brigade", "lab", "watch", "--name", lab.name, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd="/")


@pytest.mark.parametrize("kind", ["moose", "slow"])
def test_every_request_of_a_command_is_in_one_line_and_its_exit_code_is_its_own(kind, request):
    lab: Lab = request.getfixturevalue(kind)
    script = f'"{sys.executable}" -c "{LOOK}" {lab.shared}; echo out; exit 7'
    done = watch(lab, "--json", "--every", "0.2", "--", "sh", "-c", script)
    assert done.returncode == 7, done.stderr
    assert done.stdout == "out\n"
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert sum(line["kinds"].get("lookup", 0) for line in lines) == 200
    assert sum(line["nodes"]["n1"] for line in lines) == 0


def test_watching_ends_after_the_seconds_that_were_asked_for(slow):
    done = watch(slow, "--seconds", "0.3", "--every", "0.1")
    assert done.returncode == 0 and len(done.stdout.splitlines()) >= 2
    assert "requests/s" in done.stdout


def test_the_figure_is_drawn(slow, tmp_path: Path):
    pytest.importorskip("matplotlib")
    done = watch(slow, "--figure", str(tmp_path / "load.svg"), "--", "true")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "load.svg").read_text().startswith("<?xml")
    done = watch(slow, "--figure", str(tmp_path / "no/load.svg"), "--", "true")
    assert done.returncode == 1 and "cannot be written" in done.stderr


def test_steps_end_when_it_is_over(slow):
    told = list(steps(slow.plan, 60.0, None, lambda: True))
    assert len(told) == 1 and told[0].total.requests == 0


def test_a_sampler_on_the_lab_has_every_request_in_its_time_line(slow):
    pages = [slow.plan.counters(node) for node in slow.nodes]
    with Sampler([client(pages, "slow")], step_s=0.05) as sampler:
        slow.exec("n0", [sys.executable, "-c", LOOK, slow.shared], cwd="/", check=True)
    (line,), (count,) = sampler.timelines(), sampler.counts()
    assert sum(line.kinds["lookup"]) == count.kinds["lookup"] == 200
    assert count.source == line.of == "slowfs"
    busy = [n for n in line.kinds["lookup"] if n]
    assert len(busy) >= 4  # 200 requests of 2 ms each are no single instant


def test_there_is_nothing_to_watch_without_a_lab():
    done = subprocess.run(
        [sys.executable, "-m", "brigade", "lab", "watch", "--name", "no-such-lab"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == LabError.exit_code and "no-such-lab" in done.stderr


def test_ctrl_c_ends_watching_and_the_figure_is_drawn(slow, tmp_path: Path):
    pytest.importorskip("matplotlib")
    command = [sys.executable, "-m", "brigade", "lab", "watch", "--name", slow.name]
    command += ["--every", "0.1", "--figure", str(tmp_path / "load.svg")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout
        assert "requests/s" in watching.stdout.readline()
        assert watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=60) == 0
    assert (tmp_path / "load.svg").exists()
