"""A trial lasts until it is over, not until its programs looked something new up."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from made import World, record

from brigade.image.plan import UNSEEN
from brigade.job.trialrun import run_trial
from brigade.launch import parse
from brigade.trial.record import load, note_end

SERVER_S = 2  #: that the clock of a file server may be ahead


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def doubted(world: World) -> set[str]:
    return {left.path for left in world.assemble().left_out if left.why == UNSEEN}


@pytest.mark.parametrize("early_ns", [0, 1])
def test_what_changed_before_a_process_ended_is_doubted(world: World, early_ns: int) -> None:
    """It looked at nothing new for as long as it ran."""
    file = world.app / "helper.py"
    file.chmod(0o600)
    ended_ns = os.stat(file).st_ctime_ns - SERVER_S * 10**9 - early_ns
    started_ns = 1100  # as the file is called
    world.trial(tail=record("end", time_ns=ended_ns - started_ns))
    assert (str(file) in doubted(world)) == (early_ns == 0)


def test_what_changed_before_the_trial_was_over_is_doubted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a process that was killed nothing tells when it ended."""
    file = world.app / "helper.py"
    file.chmod(0o600)
    changed_ns = os.stat(file).st_ctime_ns
    world.trial()
    assert not doubted(world)
    for early_ns in 0, 1:
        over_ns = changed_ns - SERVER_S * 10**9 - early_ns
        monkeypatch.setattr(time, "time_ns", lambda now=over_ns: now)
        note_end(world.records)
        assert (str(file) in doubted(world)) == (early_ns == 0)


def test_a_trial_that_was_stopped_says_when(tmp_path: Path) -> None:
    began_ns = time.time_ns()
    stopped = run_trial(
        parse(["sleep", "600"], 1), 1, str(tmp_path), quiet_s=1, limit_s=600,
        progress=lambda seconds, size: None,
    )  # fmt: skip
    over_ns = time.time_ns()
    trial = load(tmp_path)
    assert stopped.ended == "quiet"
    assert [process.end_ns for process in trial.processes] == [None]
    assert trial.span_ns is not None
    began, ended = trial.span_ns
    assert began_ns <= began < began + 10**9 <= ended <= over_ns
