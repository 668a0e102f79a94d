"""What modules did that no fork takes over is found in a template of Python, too; its ranks are
then started in the ordinary way, with the reason in the report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from program_world import ProgramSite

APP = "import csv, json, decimal, thing\nprint(thing.x)\n"
SHARES = "import mmap\nx = mmap.mmap(-1, 4096)\nx.write(b'mine')"
SETS = "import os\nx = os.putenv('PAST', '1')"
UNSETS = "import os\nx = os.unsetenv('HOME')"
LOCKS = "import ctypes\nx = ctypes.create_string_buffer(1)\nctypes.CDLL(None).mlock(x, 1)"


def run(site: ProgramSite, text: str) -> None:
    """A job of two ranks that import a module with that text, after the one that makes the plan."""
    (site.base / "thing.py").write_text(text)
    (site.base / "app.py").write_text(APP)
    words = [*site.command(ranks=2)[:-1], sys.executable, str(site.base / "app.py")]
    for _ in range(2):
        done = subprocess.run(
            words, env=site.environment, timeout=120, check=False, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, ""), done


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SHARES, "memory was shared"),
        (LOCKS, "memory was locked"),
        (SETS, "variables were changed past os.environ"),
        (UNSETS, "variables were changed past os.environ"),
    ],
)
def test_what_no_fork_takes_over_and_no_look_sees_refuses_all_ranks(
    tmp_path: Path, text: str, why: str
) -> None:
    site = ProgramSite(tmp_path)
    run(site, text)
    told = site.fork()
    assert told["ranks"] == 0 and f"while modules were imported, {why}" in str(told), told


@pytest.mark.parametrize(
    "text",
    [
        SHARES.replace("4096", "4096, mmap.MAP_PRIVATE"),
        "import os\nx = os.environ['PAST'] = '1'\ndel os.environ['HOME']",
    ],
)
def test_what_is_a_rank_s_own_refuses_none(tmp_path: Path, text: str) -> None:
    site = ProgramSite(tmp_path)
    run(site, text)
    assert site.fork()["ranks"] == 2, site.fork()
