"""A program's Python may be older than those that Brigade itself runs with: 3.8, of Ubuntu 20.04
and Red Hat 8. There built-in modules name no origin."""

from __future__ import annotations

import subprocess
from pathlib import Path

from project import Site
from pythons import need

APP = """\
import asyncio, email.message, json, logging, sys
streams = sys.stdin, sys.stdout, sys.stderr
print([[s.line_buffering, s.write_through, s.encoding] for s in streams])
print(sorted(sys.modules))
"""


def test_ranks_of_python_3_8_are_forked_and_see_what_they_see_by_themselves(tmp_path: Path) -> None:
    words, site = [need(8), "app.py"], Site(tmp_path)
    (tmp_path / "app.py").write_text(APP)
    site.nodes.mkdir()
    plain = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    forked = site.brigade_of(words, ("-q", "--fork", "-n", "2"), cwd=tmp_path)
    assert (plain.stderr, forked.stderr) == ("", "")
    assert sorted(forked.stdout.splitlines()) == sorted(2 * plain.stdout.splitlines())
    told = site.report()["fork"]
    assert told["ranks"] == 2 and told["modules"] > 100, told
