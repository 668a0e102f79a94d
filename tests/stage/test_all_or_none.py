"""What sbcast carries is staged on all nodes or on none: two "nodes" on one machine, a stand-in for
sbcast that copies, and one for the launcher that starts a program once for each."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Callable

import pytest

from brigade.errors import StageError
from brigade.job import sbcast

from .conftest import Bench

NODE = "THISNODE"  # stands for the node's folder in all that is said to it
SBCAST = f"""#!/bin/sh
set -e
for node in 0 1; do cp "$1" "$(echo "$2" | sed "s/{NODE}/n$node/")"; done
"""
#: node 1 fails at the word that BRIGADE_FAULT_AT names
LAUNCHER = f"""#!/usr/bin/env python3
import os, subprocess, sys
status = 0
for node in (0, 1):
    env = {{k: v for k, v in os.environ.items() if k != "BRIGADE_FAULT" or node == 1}}
    words = [word.replace("{NODE}", f"n{{node}}") for word in sys.argv[1:]]
    if node == 1 and os.environ.get("FAILS_AT") in words: words = ["false"]
    status |= subprocess.run(words, env=env).returncode
sys.exit(status)
"""


class TwoNodes:
    """What `put` asks of a launch."""

    slurm_job = None
    ranks = 2
    everywhere = False

    def __init__(self, launcher: Path) -> None:
        self._launcher = str(launcher)

    def per_node(self, tool: list[str]) -> list[str]:
        return [self._launcher, *tool]


@pytest.fixture
def put(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    words = bench.work / "words"
    words.mkdir()
    for name, text in (("sbcast", SBCAST), ("launcher", LAUNCHER)):
        (words / name).write_text(text)
        (words / name).chmod(stat.S_IRWXU)
    for node in (0, 1):
        bench.base(node).mkdir()
    monkeypatch.setenv("PATH", f"{words}:{os.environ['PATH']}")
    monkeypatch.setenv("BRIGADE_NODE_DIR", str(bench.work / NODE))

    def run(memory: int | None) -> dict[str, Any]:
        launch: Any = TwoNodes(words / "launcher")
        return sbcast.put(
            launch, str(bench.image), bench.id, "job",
            changed=[], memory=memory, progress=lambda done, total: None,
        )  # fmt: skip

    return run


def left(bench: Bench) -> list[str]:
    """What is on both nodes, but for the user's folder and its lock."""
    found = [path.name for node in (0, 1) for path in bench.base(node).iterdir()]
    assert set(found) <= {f"brigade-{bench.uid}"}, "a carried program"
    return bench.left_on(0) + bench.left_on(1)


@pytest.mark.parametrize("memory", [None, 3 << 20])
def test_on_two_nodes_the_image_is_staged_and_nothing_else_is_left(bench, put, memory) -> None:
    staged_id = put(memory)["image_id"]
    assert (staged_id == bench.id) is (memory is None)
    assert left(bench) == [staged_id, staged_id]


@pytest.mark.parametrize("memory", [None, 3 << 20])
@pytest.mark.parametrize("fault", ["stage.write:5000", "stage.publish"])
def test_where_one_node_fails_no_image_is_left_on_the_other(
    bench, put, monkeypatch, memory, fault
) -> None:
    monkeypatch.setenv("BRIGADE_FAULT", fault)
    with pytest.raises(StageError):
        put(memory)
    assert left(bench) == []


def test_where_a_node_does_not_even_join_the_others_are_left_as_they_were(
    bench, put, monkeypatch
) -> None:
    monkeypatch.setenv("FAILS_AT", "join")
    with pytest.raises(StageError):
        put(None)
    assert left(bench) == []


def test_what_another_job_holds_stays(bench, put, monkeypatch) -> None:
    put(None)
    for node in (0, 1):
        jobs = bench.staged(node) / "jobs"
        (jobs / "job").rename(jobs / "other")
    monkeypatch.setenv("FAILS_AT", "join")
    with pytest.raises(StageError):
        put(None)
    assert left(bench) == [bench.id, bench.id]
    assert os.listdir(bench.staged(0) / "jobs") == ["other"]
