"""`brigade run` of programs that go into a container: Brigade's Python view and report there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from containers import RUNTIME, refusal
from project import Site
from world_of_c import program

pytestmark = pytest.mark.skipif(bool(refusal()), reason=refusal() or "they can be made")


@pytest.mark.parametrize("view", ["interpose,python", "python"])
def test_ranks_in_containers_import_what_is_there(site: Site, tmp_path: Path, view: str) -> None:
    """The runtime is static and passes the environment on: only who is started in it can tell."""
    runtime = program(tmp_path / "runtime", "-static", "-D_GNU_SOURCE", source=RUNTIME)
    other = tmp_path / "other"
    shutil.copytree(site.package, other)
    (other / "data.txt").write_text("of the container\n")
    (other / "__init__.py").write_text("def data():\n    return 'of the container'\n")
    plain = [str(site.python), str(site.app)]
    contained = [str(runtime), "mount", str(other), str(site.package), *plain]

    def run(words: list[str], *options: str) -> tuple[list[str], str, dict]:
        cover = ("--cover", str(tmp_path / "venv"))
        done = site.brigade_of(words, ("--view", view, "-n", "2", *cover, *options))
        assert done.returncode == 0, done.stderr
        told = [json.loads(line)["data"] for line in done.stdout.splitlines()]
        return told, done.stderr, site.report()

    told, _, first = run(plain)
    assert told == ["forty-two\n"] * 2 and first["away"] == 0
    image = first["image"]["path"]
    told, said, second = run(contained, "--image", image)
    assert told == ["of the container"] * 2, said
    assert said.count("to stderr\n") == 2 and "ERROR" not in said
    assert second["away"] == (0 if view == "python" else 2)
    assert ("containers" in said) == (view != "python")


def test_what_is_known_to_start_containers_is_tried_once_for_fork(
    site: Site, tmp_path: Path
) -> None:
    """Nothing of it can be watched: an image without a plan is not made again and again."""
    runtime = tmp_path / "podman"
    runtime.write_text('#!/bin/sh\nexec "$@"\n')
    runtime.chmod(0o755)
    words = [str(runtime), str(site.python), str(site.app)]
    for first in (True, False):
        done = site.brigade_of(words, ("--fork", "-n", "2", "--cover", str(tmp_path / "venv")))
        assert done.stdout.count("forty-two") == 2, done.stderr
        told = site.report()
        assert bool(told["image"]["trial"]) is first, done.stderr
        assert told["away"] == 2 and told["fork"]["ranks"] == 0
        assert "in a container" in told["fork"]["nowhere"]
