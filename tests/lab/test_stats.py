"""The counters say what programs asked of the shared file system: all of it and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

import pytest

from brigade.errors import LabError
from brigade.lab import Lab

LOOK = "import os,sys; os.chdir(sys.argv[1]); [os.path.exists(f'absent{i}') for i in range(300)]"


def look_up(lab: Lab, node: str) -> None:
    """300 look-ups of what is not there, through one client."""
    lab.exec(node, [sys.executable, "-c", LOOK, lab.shared], cwd="/", check=True)


def packets(lab: Lab, node: str) -> int:
    """The packets that the client says it sent to the metadata server."""
    text = lab.exec(node, ["cat", f"{lab.shared}/.stats"], stdout=-1, text=True, cwd="/").stdout
    return int(re.search(r"packets_sent: (\d+)", text)[1])


def test_the_slow_file_system_counts_every_look_up_exactly(slow):
    slow.exec("n0", ["true"], cwd=slow.shared)  # so that the root's attributes are at hand
    slow.reset()
    look_up(slow, "n0")
    counts = slow.stats()
    assert counts.nodes["n0"].kinds["lookup"] == 300
    assert 300 <= counts.nodes["n0"].requests <= 303
    assert counts.nodes["n1"].requests == 0
    assert counts.total.requests == counts.nodes["n0"].requests


def test_moosefs_counts_every_look_up_exactly(moose):
    moose.reset()
    look_up(moose, "n1")
    counts = moose.stats()
    assert counts.nodes["n1"].kinds["lookup"] == 300
    assert 300 <= counts.nodes["n1"].requests <= 303
    assert counts.nodes["n0"].requests == 0


def test_moosefs_counts_agree_with_the_clients_own_sum(moose):
    before, said_before = moose.stats().nodes["n0"], packets(moose, "n0")
    moose.exec("n0", ["cp", "-r", "/usr/lib/python3/", "."], cwd=moose.shared, stderr=-1)
    look_up(moose, "n0")
    time.sleep(1.1)
    counted, said = moose.stats().nodes["n0"] - before, packets(moose, "n0") - said_before
    assert counted.requests > 300
    assert abs(counted.requests + counted.background - said) <= 1  # a keep-alive in between
    assert "other" not in counted.kinds


def test_an_idle_lab_asks_for_nothing(moose, slow):
    moose.reset()
    slow.reset()
    time.sleep(4)
    assert moose.stats().total.requests == 0
    assert moose.stats().total.background > 0
    assert slow.stats().total.requests == 0


@pytest.mark.parametrize("kind", ["moose", "slow"])
def test_bytes_read_are_the_files_own(kind, request):
    lab: Lab = request.getfixturevalue(kind)
    size = 8 << 20
    lab.exec("n0", ["sh", "-c", f"head -c {size} /dev/urandom > big; sync big"], cwd=lab.shared)
    lab.reset()
    lab.exec("n1", ["cat", f"{lab.shared}/big"], stdout=subprocess.DEVNULL, cwd="/", check=True)
    counts = lab.stats()
    assert size <= counts.nodes["n1"].bytes_read <= 1.02 * size
    assert counts.nodes["n0"].bytes_read < 0.01 * size


@pytest.mark.parametrize("kind", ["moose", "slow"])
def test_after_dropping_caches_everything_is_asked_again_and_counts_go_on(kind, request):
    lab: Lab = request.getfixturevalue(kind)
    lab.exec("n0", ["sh", "-c", "echo text > note; ln -sf note link"], cwd=lab.shared, check=True)
    argv = ["cat", f"{lab.shared}/link"]
    lab.exec("n1", argv, stdout=-1, cwd="/", check=True)
    lab.reset()
    lab.exec("n1", argv, stdout=-1, cwd="/", check=True)
    warm = lab.stats().nodes["n1"]
    lab.drop_caches()
    between = lab.stats().nodes["n1"]
    lab.exec("n1", argv, stdout=-1, cwd="/", check=True)
    cold = lab.stats().nodes["n1"] - between
    assert between.requests >= warm.requests
    assert warm.bytes_read == 0 and cold.bytes_read >= 5
    assert cold.kinds["readlink"] == 1
    assert lab.faults() == []


def test_caches_in_use_are_not_dropped_and_the_user_is_named(slow):
    with slow.popen("n1", ["sleep", "30"], cwd=slow.shared) as process:
        while os.readlink(f"/proc/{process.pid}/cwd") != slow.shared:
            time.sleep(0.01)
        with pytest.raises(LabError, match=rf"n1 still uses .*{process.pid} \(sleep\)"):
            slow.drop_caches()
        process.kill()
    assert slow.faults() == []


def test_the_command_prints_the_same_as_json(slow):
    def stats(*options: str) -> dict:
        command = [sys.executable, "-m", "brigade", "lab", "stats", "--name", slow.name, "--json"]
        return json.loads(subprocess.run([*command, *options], capture_output=True).stdout)

    look_up(slow, "n1")
    assert stats("--reset")["nodes"]["n1"]["kinds"]["lookup"] >= 300
    assert stats()["total"]["requests"] == 0
