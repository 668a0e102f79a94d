"""Where many ranks come, copies of a template fork them side by side; ends, signals and accounts
are as from one."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest
from processes import until
from standing import DRIVER, Ranks, children, folder_of, lives, processes

MANY = 24

pytestmark = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="one processor: a template has no twin"
)


@pytest.fixture
def twinned(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> Ranks:
    monkeypatch.setenv("FORK_DRIVER_TWINS", "1")
    return ranks


class Crowd:
    """Ranks that are there; each ends with status 0 when it reads a line."""

    def __init__(self, ranks: Ranks, n: int = MANY, expected: int = MANY) -> None:
        self.children = [
            ranks.shell("echo $$ $PPID; read line; exit 0", n_local=expected, stdin=subprocess.PIPE)
            for _ in range(n)
        ]
        said = [child.stdout.readline().split() for child in self.children if child.stdout]
        self.pids, self.parents = ([int(pair[i]) for pair in said] for i in (0, 1))
        self.serve = {pid for pid in processes() if folder_of(pid) == str(ranks.folder)}

    def templates(self) -> tuple[int, list[int]]:
        """(the template, its twins)"""
        (template,) = [pid for pid in self.serve if self.serve.intersection(children(pid))]
        return template, sorted(self.serve - {template})

    def end(self, *but: subprocess.Popen[str]) -> list[int]:
        ending = [child for child in self.children if child not in but]
        for child in ending:
            assert child.stdin
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write("\n")
                child.stdin.flush()
        for child in ending:
            child.wait(timeout=20)
        return [child.returncode for child in ending]


@pytest.mark.parametrize(
    ("ranks_of_a_node", "processors", "twins"),
    [(0, 64, 0), (15, 64, 0), (16, 64, 1), (64, 16, 7), (256, 16, 15), (4096, 128, 31), (64, 1, 0)],
)
def test_there_are_as_many_as_are_worth_it(
    ranks_of_a_node: int, processors: int, twins: int
) -> None:
    command = [DRIVER, "twins", str(ranks_of_a_node), str(processors)]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"%d\n" % twins


def test_ranks_are_shared_out_and_nothing_is_left(twinned: Ranks) -> None:
    crowd = Crowd(twinned)
    template, twins = crowd.templates()
    assert len(twins) == min(MANY // 8, len(os.sched_getaffinity(0))) - 1
    assert len(set(crowd.parents)) > 1 and set(crowd.parents) <= {template, *twins}
    assert crowd.end() == [0] * MANY
    twinned.templates_end()


def test_none_waits_when_all_have_come(twinned: Ranks) -> None:
    """Nor do those that have nobody left when the last one comes to another."""
    crowd = Crowd(twinned, MANY - 1)
    template, twins = crowd.templates()
    assert crowd.end() == [0] * (MANY - 1)
    assert lives(template) and all(map(lives, twins))
    last = twinned.shell("exit 7", n_local=MANY)
    last.communicate(timeout=20)
    began = time.monotonic()
    twinned.templates_end()
    assert last.returncode == 7 and time.monotonic() - began < 1


def test_those_that_do_not_come_are_not_waited_for_long(twinned: Ranks) -> None:
    crowd = Crowd(twinned, MANY - 3)
    assert crowd.end() == [0] * (MANY - 3)
    late = twinned.shell("exit 7", n_local=MANY)
    late.communicate(timeout=20)
    assert late.returncode == 7
    twinned.templates_end()


def test_a_twin_that_is_killed_takes_its_own_ranks_with_it(twinned: Ranks) -> None:
    crowd = Crowd(twinned)
    _template, twins = crowd.templates()
    victim = next(parent for parent in crowd.parents if parent in twins)
    os.kill(victim, signal.SIGKILL)
    its = [c for c, parent in zip(crowd.children, crowd.parents) if parent == victim]
    for child in its:
        child.communicate(timeout=20)
        assert child.returncode == -signal.SIGKILL
    others = [pid for pid, parent in zip(crowd.pids, crowd.parents) if parent != victim]
    assert all(map(lives, others))
    assert crowd.end(*its) == [0] * len(others)
    twinned.templates_end()


def test_with_the_template_all_end(twinned: Ranks) -> None:
    crowd = Crowd(twinned)
    template, _twins = crowd.templates()
    os.kill(template, signal.SIGKILL)
    until(lambda: not any(map(lives, crowd.pids)))
    assert crowd.end() == [-signal.SIGKILL] * MANY
    twinned.templates_end()


def test_signals_and_ends_pass_as_from_one(twinned: Ranks) -> None:
    crowd = Crowd(twinned)
    sent = [signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL]
    for n, child in enumerate(crowd.children):
        if n % 4 < 3:
            os.kill(child.pid, sent[n % 4])
    until(lambda: sum(map(lives, crowd.pids)) == MANY // 4)
    expected = [-sent[n % 4] if n % 4 < 3 else 0 for n in range(MANY)]
    assert crowd.end() == expected
    twinned.templates_end()


def test_whoever_waits_for_one_that_is_stopped_takes_no_other(
    twinned: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a second; a twin has forked the others by then."""
    monkeypatch.setenv("FORK_DRIVER_WARM", "sleep 1")
    first = twinned.shell("exit 2", n_local=MANY)
    until(lambda: any(folder_of(pid) == str(twinned.folder) for pid in processes()))
    # of a group of its own, as in test_fork_ends.py: the kernel may end ours
    stopped = twinned.shell("exit 3", n_local=MANY, preexec_fn=os.setpgrp)
    until(lambda: "socket" in "".join(opened(stopped.pid)))
    os.kill(stopped.pid, signal.SIGSTOP)
    began = time.monotonic()
    crowd = Crowd(twinned, MANY - 2)
    assert time.monotonic() - began < 1.9
    os.kill(stopped.pid, signal.SIGCONT)
    assert (first.wait(timeout=20), stopped.wait(timeout=20)) == (2, 3)
    assert crowd.end() == [0] * (MANY - 2)
    twinned.templates_end()


def opened(pid: int) -> list[str]:
    folder = f"/proc/{pid}/fd"
    return [os.readlink(f"{folder}/{number}") for number in os.listdir(folder)]


@pytest.fixture
def used() -> Iterator[list[float]]:
    """Processor seconds of this process's children that have ended since, when asked for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    seconds: list[float] = []
    yield seconds
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before > sum(seconds)


def test_what_ranks_used_is_accounted_for(twinned: Ranks, used: list[float]) -> None:
    """By the rank process that came first, which ends last."""
    busy = "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done; cat /proc/$$/stat"
    started = [twinned.shell(busy, n_local=MANY) for _ in range(MANY)]
    for child in started:
        out, err = child.communicate(timeout=60)
        assert (child.returncode, err) == (0, "")
        ticks = int(out.rpartition(")")[2].split()[11])
        used.append(ticks / os.sysconf("SC_CLK_TCK"))
    assert min(used) > 0
    twinned.templates_end()
