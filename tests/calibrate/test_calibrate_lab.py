"""In the lab the truth is known: how long the slow file system serves, and how many at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from brigade.lab import Lab
from brigade.lab.debian import missing_packages

pytestmark = [
    pytest.mark.all,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a lab is made of namespaces"),
    pytest.mark.skipif(bool(missing_packages("slow")), reason="needs the packages of the lab"),
]


def calibrated(lab: Lab, *launcher: str) -> dict:
    words = ["--at", lab.shared, "--json", "--seconds", "60"]
    command = [sys.executable, "-m", "brigade", "calibrate", *words]
    lab.reset()
    done = lab.exec(
        "n0", [*command, "--", *launcher], check=True, text=True, stdout=subprocess.PIPE, cwd="/"
    )
    data = json.loads(done.stdout)
    data["reached"] = lab.stats().total.requests
    return data


@pytest.mark.parametrize(
    ("fs", "service_s", "servers"), [("slow:0.5ms", 0.5e-3, 1), ("slow:1ms,servers=4", 1e-3, 4)]
)
def test_the_service_is_found_and_no_more_is_asked_than_was_said(fs, service_s, servers):
    lab = Lab.up(f"test-cal-{os.getpid()}", 2, fs)
    try:
        for launcher in ([], ["srun", "-N2", "-n8"]):
            data = calibrated(lab, *launcher)
            assert data["fit"]["servers"] == servers
            assert data["fit"]["service_s"] == pytest.approx(service_s, rel=0.1)
            assert data["reached"] <= data["requests"] <= data["limits"]["requests"]
            assert data["hosts"] == (["n0", "n1"] if launcher else ["n0"])
            assert not data["system"]["caches_absent"]
        left = lab.exec("n0", ["ls", lab.shared], text=True, stdout=subprocess.PIPE)
        assert left.stdout == ""
    finally:
        lab.down()
