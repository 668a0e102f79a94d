"""`brigade run --fork` of many ranks on one machine, and of ranks whose user steers glibc."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest
from processes import until
from project import Site

APP = """\
import json, os, sys
parent = os.getppid()
before = sorted(n for n in sys.modules if n.startswith(("pkg", "random", "decimal")))
import pkg, pkg.deep.leaf, random, decimal
text = json.dumps({"rank": os.environ["BRIGADE_RANK"], "parent": parent, "before": before,
                  "number": random.random(), "tunables": os.environ.get("GLIBC_TUNABLES"),
                  "hidden": [n for n in os.environ if "FORK" in n]})
sys.stdout.write(text + "\\n")  # one write: ranks share the pipe
"""
MANY = 32
TUNABLES = "glibc.malloc.check=0:glibc.malloc.arena_max=2"


def ranks_of(site: Site, n: int, **options: dict[str, str]) -> list[dict]:
    """What ranks said that were all forked, from an image that was there."""
    site.app.write_text(APP)
    for _ in range(2):
        done = site.brigade(run=("--fork", "-n", str(n)), **options)
        assert done.returncode == 0, done.stderr
    fork = site.report()["fork"]
    assert (fork["ranks"], fork["plain"], fork["why"]) == (n, [], {}), fork
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor: no twin")
def test_many_ranks_come_from_twins_and_share_no_more(site: Site) -> None:
    ranks = ranks_of(site, MANY)
    assert len(ranks) == len({one["rank"] for one in ranks}) == MANY
    assert 1 < len({one["parent"] for one in ranks}) <= MANY // 8
    assert len({one["number"] for one in ranks}) == MANY
    assert all(one["before"] == [] and one["hidden"] == [] for one in ranks)
    until(lambda: not running(str(site.app)))


def running(word: str) -> list[str]:
    """Processes that have `word` in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if word in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
                found.append(pid)
    return found


@pytest.mark.parametrize("tunables", [TUNABLES, TUNABLES.partition(":")[0]])
def test_ranks_with_tunables_of_the_users_are_forked_and_have_them(
    site: Site, tunables: str
) -> None:
    """glibc before 2.39 cuts them in the environment that the kernel shows."""
    ranks = ranks_of(site, 4, env={"GLIBC_TUNABLES": tunables})
    assert [one["tunables"] for one in ranks] == [tunables] * 4
