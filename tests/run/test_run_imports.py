"""A job does not wait for modules that its start does not need: those that build images, or draw.

Counted, not timed: what `brigade run` has loaded when it starts the launcher.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from project import Site

PROGRAM = """\
import json, sys
from brigade.job import flow
from brigade.__main__ import main
execute, found = flow._execute, sys.argv.pop(1)
def noted(course, command):
    with open(found, "w") as out:
        json.dump([course.staged is not None, sorted(sys.modules)], out)
    return execute(course, command)
flow._execute = noted
sys.exit(main())
"""
BUILDING = {"brigade.image.build", "brigade.image.grow", "brigade.trial.record", "tarfile"}
DRAWING = {"rich", "jinja2", "matplotlib", "numpy", "brigade.report.table"}
OTHERS = {"concurrent.futures", "logging", "secrets", "socket", "brigade.elf.file"}


def loaded_at_launch(site: Site) -> set[str]:
    """The modules of a `brigade run` that has found its image and staged it: the site's, which is
    made anew by then if the last run was one with --fork."""
    site.brigade()
    words = ["run", "--json", str(site.base / "report.json"), "--"]
    words += [str(site.python), str(site.app)]
    found = site.base / "modules.json"
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(found), *words],
        env={
            **os.environ,
            "BRIGADE_CACHE": str(site.base / "cache"),
            "BRIGADE_NODE_DIR": str(site.nodes),
            "BRIGADE_PATIENCE": "60",
        },
        capture_output=True,
        check=True,
        timeout=120,
    )
    staged, modules = json.loads(found.read_text())
    assert staged and site.report()["image"]["trial"] is None, site.report()["image"]
    return set(modules)


@pytest.mark.parametrize("names", [BUILDING, DRAWING, OTHERS], ids=["build", "draw", "others"])
def test_a_launch_waits_for_no_module_that_it_does_not_need(made: Site, names: set[str]) -> None:
    modules = loaded_at_launch(made)
    assert "brigade.job.transport" in modules
    assert sorted(modules & names) == []
