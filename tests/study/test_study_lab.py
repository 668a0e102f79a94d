"""In the lab: several nodes, a launcher, and a shared file system that is slow for certain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from brigade.lab import Lab
from brigade.lab.debian import missing_packages

pytestmark = [
    pytest.mark.all,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a lab is made of namespaces"),
    pytest.mark.skipif(bool(missing_packages("slow")), reason="needs the packages of the lab"),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    lab = Lab.up(f"test-study-{os.getpid()}", 2, "slow:0.5ms")
    yield lab
    lab.down()


def brigade(lab: Lab, *words: str) -> str:
    command = [sys.executable, "-m", "brigade", *words]
    done = lab.exec("n0", command, check=True, text=True, stdout=subprocess.PIPE, cwd="/")
    return str(done.stdout)


@pytest.fixture(scope="module")
def program(lab: Lab) -> str:
    """A C program with 16 libraries, each in a folder of its own, on the shared file system."""
    words = ["bench", "cload", "--libraries", "16", "--layout", "each", "--generate"]
    return brigade(lab, *words, "--dir", f"{lab.shared}/worlds").strip()


def study(lab: Lab, kind: str, *words: str) -> tuple[dict, str]:
    raw = f"{lab.shared}/raw.json"
    said = brigade(lab, "study", kind, "--json", raw, "--repeats", "4", *words)
    text = lab.exec("n0", ["cat", raw], check=True, text=True, stdout=subprocess.PIPE).stdout
    left = lab.exec("n0", ["ls", lab.shared, lab.local], text=True, stdout=subprocess.PIPE).stdout
    assert "brigade-study" not in left
    queue = lab.exec("n0", ["squeue", "--noheader"], text=True, stdout=subprocess.PIPE).stdout
    assert queue == "", "the allocation was given back"
    found = json.loads(text)
    return found, " ".join(found["conclusions"]) + said


def test_links_are_shown_to_take_less_time_than_scattered_directories(lab, program):
    launcher = ["srun", "-N2", "-n4", "--mpi=none", f"{program}/bin/cload"]
    words = ["--variants", "plain,links,brigade", "--widths", "1,4", "--", *launcher]
    found, said = study(lab, "paths", *words)
    assert found["left_out"] == {}
    assert "One directory of links takes less time than as it is" in said
    plain, links = found["operations"]["plain"], found["operations"]["links"]
    assert plain["failed"] - links["failed"] >= sum(range(16))
    requests = {(s["variant"], s["ranks"]): s["requests"] for s in found["samples"]}
    assert requests["plain", 4] > 3 * requests["links", 4] > 0
    assert requests["brigade", 4] < requests["links", 4]


def test_the_local_disk_is_shown_to_be_quicker_than_the_slow_file_system(lab, program):
    launcher = ["srun", "-w", "n0", "-n2", "--mpi=none", f"{program}/bin/cload"]
    words = ["--here", "--at", lab.local, "--widths", "1,2", "--", *launcher]
    found, said = study(lab, "storage", *words)
    assert f"{lab.local} (" in said
    assert "takes less time than where it is" in said
    asked = {(s["variant"], s["ranks"]): s["requests"] for s in found["samples"]}
    assert asked["at0", 2] < 50 < asked["here", 2]
    assert not any("old place" in fact for fact in found["facts"])
