"""A program's Python may be older than those that Brigade itself runs with: 3.8, of Ubuntu 20.04
and Red Hat 8. There built-in modules name no origin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pythons import find

APP = """\
import asyncio, email.message, json, logging, sys
streams = sys.stdin, sys.stdout, sys.stderr
print([[s.line_buffering, s.write_through, s.encoding] for s in streams])
print(sorted(sys.modules))
"""


def test_ranks_of_python_3_8_are_forked_and_see_what_they_see_by_themselves(tmp_path: Path) -> None:
    python = find(8)
    if not python:
        pytest.skip("needs Python 3.8")
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "node").mkdir()
    words, report = [python, "app.py"], tmp_path / "report.json"
    env = {
        **os.environ,
        "BRIGADE_CACHE": str(tmp_path / "cache"),
        "BRIGADE_NODE_DIR": str(tmp_path / "node"),
        "BRIGADE_PATIENCE": "60",
    }
    front = [sys.executable, "-m", "brigade", "run", "-q", "--fork", "--json", report, "-n", "2"]
    settings = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120}
    plain = subprocess.run(words, env=env, **settings)
    forked = subprocess.run([*front, "--", *words], env=env, **settings)
    assert (plain.stderr, forked.stderr) == ("", "")
    assert sorted(forked.stdout.splitlines()) == sorted(2 * plain.stdout.splitlines())
    told = json.loads(report.read_text())["fork"]
    assert told["ranks"] == 2 and told["modules"] > 100, told
