"""In the lab: two nodes, srun, and a shared file system whose clients count for themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from brigade.lab import Lab
from brigade.lab.debian import missing_packages
from brigade.profile.profile import SHARED, Profile, from_dict

pytestmark = [
    pytest.mark.all,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a lab is made of namespaces"),
    pytest.mark.skipif(bool(missing_packages("moosefs")), reason="needs the packages of the lab"),
]
LIBRARIES = 12


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    lab = Lab.up(f"test-profile-{os.getpid()}", 2, "moosefs")
    yield lab
    lab.down()


def brigade(lab: Lab, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "brigade", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return lab.exec(
        "n0",
        ["env", f"BRIGADE_CACHE={lab.shared}/cache", *command],
        text=True, cwd="/", **pipes,
    )  # fmt: skip


@pytest.fixture(scope="module")
def job(lab: Lab) -> list[str]:
    """A C program with libraries in a folder each, on the shared file system."""
    words = ["bench", "cload", "--libraries", str(LIBRARIES), "--layout", "each", "--generate"]
    world = brigade(lab, *words, "--dir", f"{lab.shared}/worlds").stdout.strip()
    return ["srun", "-N2", "-n4", "--mpi=none", f"{world}/bin/cload"]


@pytest.fixture(scope="module")
def profile(lab: Lab, job: list[str]) -> Profile:
    file = f"{lab.shared}/p.json"
    done = brigade(lab, "profile", "--after", "--html", "none", "--json", file, "--", *job)
    assert done.returncode == 0, done.stderr
    text = lab.exec("n0", ["cat", file], check=True, text=True, stdout=subprocess.PIPE).stdout
    return from_dict(json.loads(text))


def test_every_rank_on_every_node_is_counted_and_they_ask_alike(profile):
    assert [rank.rank for rank in profile.ranks] == [0, 1, 2, 3]
    assert {rank.host for rank in profile.ranks} == {"n0", "n1"}
    assert len({profile.total(rank=n, failed=True, place=SHARED) for n in range(4)}) == 1
    found = profile.identical
    assert found is not None and found.alike == found.calls > 4 * LIBRARIES


def test_a_folder_for_each_library_costs_as_many_probes_as_it_must(profile):
    """Library k is found in the k-th folder, after k that lack it."""
    plain = [e for e in profile.searches if e.cause in ("RPATH", "RUNPATH") and not e.hwcaps]
    plain = [e for e in plain if e.found]
    own = {node.name for node in profile.tree if node.path.startswith("/mnt/brigade-lab/")}
    in_vain = [n for entry in plain for name, n in entry.names.items() if name in own]
    assert len(plain) == LIBRARIES
    assert sum(in_vain) == sum(range(LIBRARIES))


def test_under_brigade_nothing_of_it_reaches_the_shared_file_system(profile):
    assert profile.after is not None, profile.lost
    assert profile.after.total(place=SHARED) < profile.total(place=SHARED) / 20
    assert [rank.status for rank in profile.after.ranks] == [0] * 4


def test_the_clients_counted_what_reached_the_server(profile):
    counts = {count.source: count.requests for count in profile.server}
    assert counts["moosefs"] > LIBRARIES
    assert {line.of for line in profile.timelines} == {"calls", "moosefs"}


def test_a_budget_holds_under_brigade_and_not_without(lab, job):
    limits = ["--max-ops", "60", "--per", "rank"]
    assert brigade(lab, "budget", *limits, "--", *job).returncode == 8
    held = brigade(lab, "budget", *limits, "--under-brigade", "--", *job)
    assert held.returncode == 0, held.stderr


def test_nothing_stays_on_the_shared_file_system_or_in_the_queue(lab, job, profile):
    left = lab.exec("n0", ["ls", f"{lab.shared}/cache"], text=True, stdout=subprocess.PIPE).stdout
    assert "trace-" not in left
    queue = lab.exec("n0", ["squeue", "--noheader"], text=True, stdout=subprocess.PIPE).stdout
    assert queue == ""
