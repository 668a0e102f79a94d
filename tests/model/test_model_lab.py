"""The model against a metadata server whose service time is known: the lab's slow file system."""

from __future__ import annotations

import os
import sys
import time
from subprocess import PIPE

import pytest

from brigade.lab import Lab
from brigade.lab.debian import missing_packages
from brigade.model.demand import Demand
from brigade.model.predict import predict
from brigade.model.system import System

pytestmark = pytest.mark.all

LOOKUPS = 60
# argv: how many ranks, when they begin (seconds of CLOCK_REALTIME), the folder, a word of their own
RANKS = """
import os, sys, time
ranks, begin, folder, word = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4]
for rank in range(ranks):
    if os.fork() == 0:
        time.sleep(max(0, begin - time.time()))
        for i in range(LOOKUPS):
            os.path.exists(f"{folder}/{word}-{rank}-{i}")
        os._exit(0)
for rank in range(ranks):
    os.wait()
print(time.time() - begin)
""".replace("LOOKUPS", str(LOOKUPS))


@pytest.fixture(scope="module")
def lab():
    if os.geteuid() != 0:
        pytest.skip("needs root: a lab is made of namespaces and mounts")
    missing = missing_packages("slow")
    if missing:
        pytest.skip(f"needs Debian packages: {' '.join(missing)}")
    lab = Lab.up(f"test-model-{os.getpid()}", 2, "slow:10ms,servers=2")
    yield lab
    lab.down()


def measured(lab: Lab, each: int) -> tuple[float, int]:
    """Seconds until `each` ranks on both nodes are done, and the requests they made."""
    lab.reset()
    begin = time.time() + 2
    started = [
        lab.popen(
            node,
            [
                sys.executable,
                "-c",
                RANKS,
                str(each),
                repr(begin),
                str(lab.shared),
                f"{node}{begin}",
            ],
            stdout=PIPE,
            text=True,
        )
        for node in lab.nodes
    ]
    seconds = [float(one.communicate(timeout=60)[0]) for one in started]
    return max(seconds), lab.stats().total.requests


@pytest.mark.parametrize("each", [1, 2, 8])
def test_seconds_and_requests_are_those_predicted(lab, each):
    """Two ranks find a server each, four find both busy, sixteen wait eight times as long."""
    wanted = Demand(first={"lookup": LOOKUPS}, further={"lookup": LOOKUPS}, cpu_s=1e-3)
    machine = System(
        service_s=10e-3, service_cv=0.0, servers=2, round_trip_s=0.0, shared_cores=True,
        caches_names=False, caches_absent=False,
    )  # fmt: skip
    expected = predict(wanted, machine, 2 * each, 2, draws=0).direct
    seconds, requests = measured(lab, each)
    assert expected.requests <= requests <= 1.1 * expected.requests + 5
    assert seconds == pytest.approx(expected.seconds, rel=0.15)
