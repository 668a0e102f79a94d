"""What a module sets for the process that imports it, its limits and the processors it may use, is
so in a forked rank as in one that imports by itself, whether the trial has seen it or not."""

from __future__ import annotations

import os

import pytest
from project import Site

FORK = ("--fork", "-n", "2")
SETS = {
    "limits": "import resource as r\nhard = r.getrlimit(r.RLIMIT_NOFILE)[1]\n"
    "if not os.environ.get('QUIET'): r.setrlimit(r.RLIMIT_NOFILE, (333, hard))\n",
    "processors": "if not os.environ.get('QUIET'):\n"
    "    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n",
}
APP = """\
import os, resource, sys
import pkg.deep.leaf, pkg.sets
text = f"{resource.getrlimit(resource.RLIMIT_NOFILE)[0]} {os.sched_getaffinity(0)}\\n"
sys.stdout.write(text)
"""


@pytest.mark.parametrize("what", SETS)
@pytest.mark.parametrize("seen", ["by the trial", "by a template"])
def test_a_rank_has_the_limits_that_a_module_sets(site: Site, what: str, seen: str) -> None:
    if what == "processors" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    (site.package / "sets.py").write_text(f"import os\n{SETS[what]}")
    site.app.write_text(APP)
    quiet = {"QUIET": "1"} if seen == "by a template" else {}
    assert site.brigade(run=FORK, env=quiet).returncode == 0
    forked = site.brigade(run=FORK)
    assert forked.stdout.splitlines() == site.plain().stdout.splitlines() * 2, forked.stderr
    told = site.report()["fork"]
    assert told["ranks"] == 2 and told["modules"] > 0, told
    assert list(told["dropped"]) == ([] if seen == "by the trial" else ["pkg.sets"])
