"""Signals, stops and ends pass between a rank process and its rank, once; neither survives the
other, nor the template."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import until
from standing import DRIVER, Ranks, children, lives

COUNTS = """
n=0; trap 'n=$((n+1)); echo $n' USR1; trap 'exit $((40+n))' TERM; echo $$
while :; do read line <&0; [ -z "$line" ] || echo "line $line"; sleep 0.02; done
"""


class Counting:
    """A rank that counts SIGUSR1, and ends with what it counted at SIGTERM."""

    def __init__(self, ranks: Ranks, **options: object) -> None:
        self.child = ranks.shell(COUNTS, stdin=subprocess.PIPE, **options)
        self.pid = int(self.line())

    def line(self) -> str:
        assert self.child.stdout
        return self.child.stdout.readline().strip()

    def ends_with(self, count: int) -> None:
        os.kill(self.child.pid, signal.SIGTERM)
        self.child.communicate(timeout=20)
        assert self.child.returncode == 40 + count


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("status", [0, 1, 77, 255])
def test_the_status_is_the_ranks(ranks: Ranks, status: int) -> None:
    child = ranks.shell(f"exit {status}")
    child.communicate(timeout=20)
    assert child.returncode == status


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM])
def test_it_ends_by_the_signal_that_ended_the_rank(ranks: Ranks, number: int) -> None:
    child = ranks.shell(f"kill -{int(number)} $$")
    child.communicate(timeout=20)
    assert child.returncode == -number


@pytest.mark.parametrize("setup", [None, os.setpgrp, os.setsid])
def test_what_is_sent_to_the_process_reaches_the_rank_once(ranks: Ranks, setup: object) -> None:
    rank = Counting(ranks, preexec_fn=setup)
    for count in (1, 2, 3):
        os.kill(rank.child.pid, signal.SIGUSR1)
        assert rank.line() == str(count)
    time.sleep(0.2)
    rank.ends_with(3)


@pytest.mark.parametrize("setup", [os.setpgrp, os.setsid])
def test_what_is_sent_to_the_group_reaches_the_rank_once(ranks: Ranks, setup: object) -> None:
    other, rank = Counting(ranks, preexec_fn=setup), Counting(ranks, preexec_fn=setup)
    for count in (1, 2, 3):
        os.killpg(rank.child.pid, signal.SIGUSR1)
        assert rank.line() == str(count)
    time.sleep(0.2)
    rank.ends_with(3)
    other.ends_with(0)


LEADS = """
import os, signal
os.setpgrp()
for number in signal.SIGUSR1, signal.SIGUSR2:
    signal.signal(number, lambda number, _: os.write(1, f"{number}\\n".encode()))
os.write(1, b"ready\\n")
input()
"""


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("leads", [True, False])
def test_a_rank_that_makes_itself_a_group_hears_what_it_would_hear_without_a_fork(
    ranks: Ranks, leads: bool, plain: bool
) -> None:
    """Who leads a group stays in it: what is sent there reaches it. Others have left theirs."""
    first = ranks.first()
    other = ranks.start(["sleep", "300"], plain=True, preexec_fn=os.setpgrp)
    child = ranks.start(
        [sys.executable, "-c", LEADS], stdin=subprocess.PIPE, plain=plain,
        preexec_fn=os.setpgrp if leads else lambda: os.setpgid(0, other.pid),
    )  # fmt: skip
    assert child.stdout and child.stdout.readline() == "ready\n"
    os.killpg(child.pid if leads else other.pid, signal.SIGUSR1)
    if leads:
        assert child.stdout.readline() == f"{signal.SIGUSR1:d}\n"
    os.kill(child.pid, signal.SIGUSR2)
    assert child.stdout.readline() == f"{signal.SIGUSR2:d}\n"
    child.communicate("go\n", timeout=20)
    assert child.returncode == 0
    first.communicate("go\n")


@pytest.mark.parametrize("name", ["SIGWINCH", "SIGCHLD", "SIGCONT", "SIGURG"])
def test_a_signal_that_does_nothing_keeps_no_rank_from_being_forked(
    ranks: Ranks, name: str
) -> None:
    """As that of a terminal which gets another size while the template warms up."""
    env = {**os.environ, "FORK_DRIVER_WARM": "sleep 2"}
    child = ranks.shell("echo here; exit 3", env=env)
    until(lambda: any("fork-" in path.name for path in ranks.folder.iterdir()))
    os.kill(child.pid, getattr(signal, name))
    assert child.communicate(timeout=20) == ("here\n", "")
    assert child.returncode == 3


def test_a_blocked_signal_waits_for_the_rank_while_the_template_warms_up(ranks: Ranks) -> None:
    env = {**os.environ, "FORK_DRIVER_WARM": "sleep 2"}
    blocks = lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})  # noqa: E731
    code = "import signal; print(signal.sigwait({signal.SIGUSR1}).name)"
    child = ranks.start([sys.executable, "-c", code], env=env, preexec_fn=blocks)
    until(lambda: any("fork-" in path.name for path in ranks.folder.iterdir()))
    os.kill(child.pid, signal.SIGUSR1)
    assert child.communicate(timeout=20) == ("SIGUSR1\n", "")


def test_what_is_sent_to_every_process_of_the_step_reaches_ranks_once(ranks: Ranks) -> None:
    """As Slurm does: to the template, to rank processes and ranks, one after the other."""
    started = [Counting(ranks, preexec_fn=os.setpgrp) for _ in range(3)]
    everybody = [ranks.template()]
    for rank in started:
        everybody += [rank.child.pid, rank.pid]
        everybody += [p for p in children(rank.child.pid) if p not in everybody]
    for count in (1, 2):
        subprocess.run(["kill", "-USR1", *map(str, everybody)], check=True)
        assert [rank.line() for rank in started] == [str(count)] * 3
    time.sleep(0.2)
    for rank in started:
        rank.ends_with(2)


@pytest.mark.parametrize("setup", [None, os.setsid])
def test_a_killed_rank_process_takes_its_rank_with_it(ranks: Ranks, setup: object) -> None:
    other, rank = Counting(ranks), Counting(ranks, preexec_fn=setup)
    rank.child.kill()
    until(lambda: not lives(rank.pid))
    assert lives(other.pid)
    other.ends_with(0)


LAUNCHER = """
import ctypes, signal, subprocess, sys
told = lambda: ctypes.CDLL(None).prctl(1, signal.SIGUSR1)
subprocess.Popen(sys.argv[1:], preexec_fn=told)
sys.stdin.readline()
"""


def test_a_signal_that_is_asked_for_when_the_launcher_dies_reaches_the_rank(ranks: Ranks) -> None:
    first = ranks.first()
    script = "trap 'echo told; exit' USR1; echo here; while :; do sleep 0.02; done"
    words = [str(DRIVER), "rank", str(ranks.folder), "0", "sh", "-c", script]
    command = [sys.executable, "-c", LAUNCHER, *words]
    launcher = ranks.start(command, plain=True, stdin=subprocess.PIPE, preexec_fn=os.setpgrp)
    assert launcher.stdout and launcher.stdin and launcher.stdout.readline() == "here\n"
    launcher.stdin.write("\n")
    launcher.stdin.flush()
    assert launcher.stdout.readline() == "told\n"
    first.communicate("go\n")
    ranks.templates_end()


STARTS = "sleep 300 >&- 2>&- & echo $$ $!; wait"


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("setup", [os.setpgrp, os.setsid])
@pytest.mark.parametrize("whole", [True, False])
def test_what_a_rank_has_started_is_killed_with_the_group_of_its_process_alone(
    ranks: Ranks, whole: bool, setup: object, plain: bool
) -> None:
    """As MPICH's launcher kills the group of what it has started, which leads a session."""
    first = ranks.first()
    child = ranks.shell(STARTS, plain=plain, preexec_fn=setup)
    assert child.stdout
    rank, other = map(int, child.stdout.readline().split())
    (os.killpg if whole else os.kill)(child.pid, signal.SIGKILL)
    until(lambda: not lives(rank))
    if whole:
        until(lambda: not lives(other))
    else:
        time.sleep(0.3)
        assert lives(other)
        os.kill(other, signal.SIGKILL)
    assert child.wait(timeout=20) == -signal.SIGKILL
    first.communicate("go\n")


def test_a_rank_process_that_is_killed_while_its_group_is_stopped_takes_its_rank_with_it(
    ranks: Ranks,
) -> None:
    other, rank = Counting(ranks), Counting(ranks, preexec_fn=os.setsid)
    os.killpg(rank.child.pid, signal.SIGSTOP)
    until(lambda: state(rank.child.pid) == "T")
    rank.child.kill()
    until(lambda: not lives(rank.pid))
    other.ends_with(0)


def ends_of_children_unseen() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def test_a_rank_whose_sigchld_is_ignored_ends_its_process_and_has_it_ignored(ranks: Ranks) -> None:
    """As whoever starts the launcher may have it: then nobody is told of ended children."""
    words = ["grep", "SigIgn", "/proc/self/status"]
    plain = ranks.said(words, plain=True, preexec_fn=ends_of_children_unseen)
    first = Counting(ranks, preexec_fn=ends_of_children_unseen)
    assert ranks.said(words, preexec_fn=ends_of_children_unseen) == plain
    assert int(plain.split()[1], 16) >> signal.SIGCHLD - 1 & 1
    first.ends_with(0)
    ranks.templates_end()


def test_a_killed_rank_ends_its_process(ranks: Ranks) -> None:
    rank = Counting(ranks)
    os.kill(rank.pid, signal.SIGKILL)
    rank.child.communicate(timeout=20)
    assert rank.child.returncode == -signal.SIGKILL


def test_a_killed_template_takes_all_with_it(ranks: Ranks) -> None:
    started = [Counting(ranks) for _ in range(3)]
    os.kill(ranks.template(), signal.SIGKILL)
    for rank in started:
        rank.child.communicate(timeout=20)
        assert rank.child.returncode == -signal.SIGKILL
        until(lambda pid=rank.pid: not lives(pid))


def test_all_killed_at_once_leave_nothing(ranks: Ranks) -> None:
    started = [Counting(ranks, preexec_fn=os.setpgrp) for _ in range(2)]
    pids = [rank.pid for rank in started] + [ranks.template()]
    for pid in [rank.child.pid for rank in started] + pids[-1:]:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not any(lives(pid) for pid in pids))


#: what stops by SIGTSTP needs a process group that its rank can join
own_group = pytest.mark.skipif(os.getpgrp() == 0, reason="its group is not of this pid namespace")


@own_group
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP])
def test_a_rank_that_stops_itself_stops_its_process_and_both_go_on(
    ranks: Ranks, number: int
) -> None:
    rank = Counting(ranks)
    os.kill(rank.pid, number)
    _, status = os.waitpid(rank.child.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == number
    os.kill(rank.child.pid, signal.SIGCONT)
    until(lambda: state(rank.pid) != "T" and state(rank.child.pid) != "T")
    os.kill(rank.child.pid, signal.SIGUSR1)
    assert rank.line() == "1"
    rank.ends_with(1)


@own_group
def test_a_stop_of_the_process_that_it_can_pass_on_stops_the_rank(ranks: Ranks) -> None:
    rank = Counting(ranks)
    os.kill(rank.child.pid, signal.SIGTSTP)
    _, status = os.waitpid(rank.child.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status) and state(rank.pid) == "T"
    os.kill(rank.child.pid, signal.SIGCONT)
    until(lambda: state(rank.pid) != "T")
    rank.ends_with(0)


@own_group
def test_a_rank_process_does_not_stop_with_a_sigcont_that_its_rank_may_need(ranks: Ranks) -> None:
    """It is sent while the rank stops: nobody would send another one."""
    rank = Counting(ranks)
    os.kill(rank.child.pid, signal.SIGCONT)
    time.sleep(0.05)
    os.kill(rank.pid, signal.SIGTSTP)
    until(lambda: state(rank.pid) == "T")
    until(lambda: state(rank.pid) != "T" and state(rank.child.pid) != "T")
    rank.ends_with(0)


@own_group
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP])
def test_a_group_that_is_stopped_goes_on_whole(ranks: Ranks, number: int) -> None:
    """As a shell does it, or a launcher that is itself stopped, more than once."""
    rank = Counting(ranks, preexec_fn=os.setpgrp)
    both = (rank.child.pid, rank.pid)
    for _ in range(3):
        os.killpg(rank.child.pid, number)
        until(lambda: all(state(pid) == "T" for pid in both))
        os.killpg(rank.child.pid, signal.SIGCONT)
        until(lambda: not any(state(pid) == "T" for pid in both))
    time.sleep(0.2)
    os.kill(rank.child.pid, signal.SIGUSR1)
    assert rank.line() == "1"
    rank.ends_with(1)


@own_group
def test_a_step_whose_every_process_is_stopped_goes_on_whole(ranks: Ranks) -> None:
    """As Slurm suspends one: the template, rank processes and ranks, in any order."""
    started = [Counting(ranks, preexec_fn=os.setpgrp) for _ in range(3)]
    everybody = [ranks.template()]
    for rank in started:
        everybody += [rank.child.pid, rank.pid]
        everybody += [p for p in children(rank.child.pid) if p not in everybody]
    for order in (everybody, everybody[::-1], everybody[1:] + everybody[:1]):
        for pid in order:
            os.kill(pid, signal.SIGSTOP)
        until(lambda: all(state(pid) == "T" for pid in everybody))
        for pid in order:
            os.kill(pid, signal.SIGCONT)
        until(lambda: not any(state(pid) == "T" for pid in everybody))
        time.sleep(0.3)  # else the template's word of this may come after the next stop, and then
        # the template is stopped: one rank process would not be, which its rank need not mind
    for rank in started:
        rank.ends_with(0)


@own_group
def test_a_rank_process_goes_on_with_a_rank_that_is_told_to_by_itself(ranks: Ranks) -> None:
    rank = Counting(ranks)
    for _ in range(3):
        os.kill(rank.pid, signal.SIGSTOP)
        until(lambda: state(rank.child.pid) == "T")
        os.kill(rank.pid, signal.SIGCONT)
        until(lambda: state(rank.child.pid) != "T")
    assert state(rank.pid) != "T"
    rank.ends_with(0)


@own_group
def test_a_stopped_rank_that_is_killed_ends_its_process(ranks: Ranks) -> None:
    # A group of its own: else its end may leave ours without a parent in the session but with a
    # stopped process, for which the kernel sends all of the group a SIGHUP.
    rank = Counting(ranks, preexec_fn=os.setpgrp)
    os.kill(rank.pid, signal.SIGSTOP)
    until(lambda: state(rank.child.pid) == "T")
    os.kill(rank.pid, signal.SIGKILL)
    rank.child.communicate(timeout=20)
    assert rank.child.returncode == -signal.SIGKILL


@own_group
def test_a_rank_that_stops_and_goes_on_in_quick_succession_leaves_nobody_stopped(
    ranks: Ranks,
) -> None:
    rank = Counting(ranks)
    for _ in range(500):
        os.kill(rank.pid, signal.SIGSTOP)
        os.kill(rank.pid, signal.SIGCONT)
    until(lambda: state(rank.child.pid) != "T" and state(rank.pid) != "T")
    time.sleep(0.2)
    assert state(rank.child.pid) != "T" and state(rank.pid) != "T"
    rank.ends_with(0)


def test_its_descriptors_are_the_ranks_alone(ranks: Ranks) -> None:
    """Whoever reads the output sees its end when the rank closes it, not when it ends."""
    rank = ranks.shell("exec >&- 2>&-; read line", stdin=subprocess.PIPE)
    assert rank.stdout and rank.stdout.read() == ""
    assert rank.poll() is None
    rank.communicate("go\n")


def test_signals_before_a_rank_is_there_end_the_process_that_waits(
    ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORK_DRIVER_WARM", "sleep 2")
    rank = ranks.shell("echo here", preexec_fn=os.setpgrp)
    until(lambda: any("fork-" in path.name for path in ranks.folder.iterdir()))
    os.kill(rank.pid, signal.SIGTERM)
    assert rank.wait(timeout=20) == -signal.SIGTERM


@pytest.mark.parametrize("delay_s", [0.001 * n for n in range(0, 40, 3)])
@pytest.mark.parametrize("to_group", [True, False])
def test_no_signal_of_the_start_is_lost(ranks: Ranks, delay_s: float, to_group: bool) -> None:
    """Whether it comes before there is a template, while the rank takes over, or after."""
    rank = ranks.shell("read line", stdin=subprocess.PIPE, preexec_fn=os.setpgrp)
    time.sleep(delay_s)
    (os.killpg if to_group else os.kill)(rank.pid, signal.SIGTERM)
    assert rank.wait(timeout=20) == -signal.SIGTERM


def test_a_template_that_hangs_does_not_outlive_those_who_wait(
    ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORK_DRIVER_WARM", "sleep 300")
    monkeypatch.setenv("BRIGADE_FORK_PATIENCE", "1")
    rank = ranks.shell("echo here", preexec_fn=os.setpgrp)
    until(lambda: any("fork-" in path.name for path in ranks.folder.iterdir()))
    template = ranks.template()
    rank.kill()
    rank.communicate()
    until(lambda: not lives(template))
