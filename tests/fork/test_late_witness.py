"""A witness that is late, as on a busy machine, changes nothing of what reaches a rank."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from standing import Ranks

SCRIPT = Path(__file__).parent / "signals_of_a_rank.py"
LATE_S = 0.05
#: of the template's SIGCONT: see fork_wake() in src/fork/talk.c
FORK_MAGIC = 0x46475242


class Telling:
    """A rank that tells which signals reach it, and never stops."""

    def __init__(self, ranks: Ranks) -> None:
        words = [sys.executable, "-S", "-E", str(SCRIPT)]
        self.child = ranks.start(words, preexec_fn=os.setpgrp)
        self.until("ready")

    def until(self, last: str) -> list[str]:
        """What it tells from now on, up to `last`."""
        assert self.child.stdout
        told = []
        while not told or told[-1] != last:
            told.append(self.child.stdout.readline().strip())
            assert told[-1], "it ended"
        return told

    def more(self) -> list[str]:
        """What else it tells within a second: longer than anything waits to be passed on."""
        time.sleep(1)
        os.killpg(self.child.pid, signal.SIGUSR2)
        return self.until("SIGUSR2")[:-1]


@pytest.fixture
def rank(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> Telling:
    monkeypatch.setenv("BRIGADE_FAULT", f"fork.witness:{int(LATE_S * 1e6)}")
    return Telling(ranks)


@pytest.mark.parametrize(
    "numbers",
    [
        # The witness gets the last one only: the kernel takes the other one back.
        (signal.SIGCONT, signal.SIGTSTP),
        (signal.SIGTSTP, signal.SIGCONT),
        (signal.SIGCONT, signal.SIGTSTP, signal.SIGCONT),
        (signal.SIGCONT, signal.SIGUSR1),
    ],
)
def test_what_the_group_gets_in_quick_succession_reaches_the_rank_once(
    rank: Telling, numbers: tuple[signal.Signals, ...]
) -> None:
    for _ in range(3):
        os.killpg(rank.child.pid, signal.SIGWINCH)  # after it the witness is late for what follows
        for number in numbers:
            time.sleep(0.005)
            os.killpg(rank.child.pid, number)
            assert rank.until(number.name) == [number.name]
        assert rank.more() == []


def test_a_stop_that_the_template_takes_back_from_the_process_leaves_the_rank_stopped(
    rank: Telling,
) -> None:
    """It lets the process go on after the group did, and the group is stopped again by then."""
    os.killpg(rank.child.pid, signal.SIGWINCH)
    time.sleep(0.005)
    os.killpg(rank.child.pid, signal.SIGCONT)
    assert rank.until("SIGCONT") == ["SIGCONT"]
    time.sleep(0.01)
    os.kill(rank.child.pid, signal.SIGSTOP)  # so that it reads no more
    os.killpg(rank.child.pid, signal.SIGTSTP)
    assert rank.until("SIGTSTP") == ["SIGTSTP"]
    assert ctypes.CDLL(None).sigqueue(rank.child.pid, signal.SIGCONT, FORK_MAGIC) == 0
    assert rank.more() == []


@pytest.mark.parametrize("last", [signal.SIGCONT, signal.SIGTSTP])
def test_what_the_process_alone_gets_reaches_the_rank_beside_stops_of_the_group(
    rank: Telling, last: signal.Signals
) -> None:
    os.kill(rank.child.pid, signal.SIGUSR1)
    os.killpg(rank.child.pid, last)
    assert rank.until("SIGUSR1") == [last.name, "SIGUSR1"]
    assert rank.more() == []


@pytest.mark.parametrize("number", [signal.SIGCONT, signal.SIGTSTP, signal.SIGUSR1])
def test_what_the_process_alone_gets_soon_after_the_group_did_reaches_the_rank(
    rank: Telling, number: signal.Signals
) -> None:
    os.killpg(rank.child.pid, number)
    assert rank.until(number.name) == [number.name]
    time.sleep(4 * LATE_S)
    os.kill(rank.child.pid, number)
    assert rank.until(number.name) == [number.name]
    assert rank.more() == []
