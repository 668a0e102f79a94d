"""A link that the job points elsewhere leads imports elsewhere, too."""

from __future__ import annotations

import sys
from pathlib import Path

from project import Site

APP = """
import importlib, os, sys
here = os.path.dirname(__file__)
sys.path.insert(0, here + "/env/current/lib")
if "REPOINT" in os.environ:
    os.symlink("v2", here + "/env/next")
    os.rename(here + "/env/next", here + "/env/current")
import mod_a
import pack.mod_b
print(mod_a.value, pack.mod_b.value, mod_a.__file__)
"""


def make(site: Site) -> Path:
    env = site.app.parent / "env"
    for version in "v1", "v2":
        (env / version / "bin").mkdir(parents=True)
        (env / version / "lib/pack").mkdir(parents=True)
        for name in "mod_a.py", "pack/__init__.py", "pack/mod_b.py":
            (env / version / "lib" / name).write_text(f"value = {version!r}\n")
    (env / "current").symlink_to("v1")
    site.app.write_text(APP)
    return env


def test_a_program_that_points_a_link_elsewhere_imports_from_there(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.app.parent.mkdir()
    site.nodes.mkdir()
    env = make(site)
    words = [sys.executable, str(site.app)]
    run = ("-q", "-n", "1", "--trial-ranks", "1", "--cover", str(env))
    there = f"{env}/current/lib/mod_a.py"
    for repoint in {}, {"REPOINT": "1"}:
        done = site.brigade_of(words, run, repoint)
        version = "v2" if repoint else "v1"
        assert done.stdout == f"{version} {version} {there}\n", done.stderr
    assert site.report()["image"]["trial"] is None, "the image was made again"
