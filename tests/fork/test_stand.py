"""A forked rank is what its rank process was, and nothing of the template's or another rank's."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from processes import until
from standing import DRIVER, WHAT_I_AM, Ranks, Setup

_SET_MEMPOLICY, _IOPRIO_SET = (238, 251) if platform.machine() == "x86_64" else (237, 30)
_BIND, _IDLE = 2, 3 << 13


def as_told(text: str) -> dict[str, Any]:
    told = json.loads(text)
    for number, target in told["opened"].items():
        if target.startswith(("pipe:", "socket:")):
            told["opened"][number] = target.partition(":")[0]
    return told


def limits_of_its_own() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, 400))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, 1 << 41))


def priorities_of_its_own() -> None:
    os.nice(3)
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    Path("/proc/self/oom_score_adj").write_text("700")
    ctypes.CDLL(None).syscall(_IOPRIO_SET, 1, 0, _IDLE)


def attributes_of_its_own() -> None:
    """Timer slack, no huge pages, orphans; what a core has in it."""
    for what, value in ((29, 123_456), (41, 1), (36, 1)):
        assert ctypes.CDLL(None).prctl(what, value, 0, 0, 0) == 0
    Path("/proc/self/coredump_filter").write_text("0x7f")


def memory_of_its_own() -> None:
    """As `numactl --membind=0`; nothing where the kernel has no NUMA, or forbids it."""
    nodes = (ctypes.c_ulong * 16)(1)
    ctypes.CDLL(None).syscall(_SET_MEMPOLICY, _BIND, nodes, 1025)


def signals_of_its_own() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGRTMIN + 3})


def descriptors_of_its_own() -> None:
    a, b = socket.socketpair()
    os.dup2(a.fileno(), 77)
    os.dup2(b.fileno(), 250)
    os.set_inheritable(77, True)
    os.set_inheritable(250, True)
    os.dup2(os.open("/etc/passwd", os.O_RDONLY), 30)
    os.close(0)


def a_mask_of_its_own() -> None:
    os.umask(0o137)


def a_session_of_its_own() -> None:
    os.setsid()


@pytest.mark.parametrize(
    "setup",
    [
        None,
        limits_of_its_own,
        priorities_of_its_own,
        attributes_of_its_own,
        memory_of_its_own,
        signals_of_its_own,
        descriptors_of_its_own,
        a_mask_of_its_own,
        a_session_of_its_own,
        os.setpgrp,
    ],
)
def test_a_rank_is_what_its_process_was(ranks: Ranks, setup: Setup | None) -> None:
    """The first rank starts the template, so it is the second that shows what is taken over."""
    first = ranks.first()
    closed = setup is not descriptors_of_its_own
    told = {}
    for plain in (False, True):
        mine = {**os.environ, "MINE": "a b\nc", "EMPTY": ""}
        child = {"preexec_fn": setup, "env": mine, "plain": plain, "close_fds": closed}
        text = ranks.said([*WHAT_I_AM, "one", "two words"], **child)
        told[plain] = as_told(text)
    assert told[False] == told[True]
    if setup is descriptors_of_its_own:
        assert "0" not in told[False]["opened"] and "250" in told[False]["opened"]
    first.communicate("go\n")


def test_hundreds_of_descriptors_arrive_at_their_numbers(ranks: Ranks, tmp_path: Path) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(7)[1]))
    files = [os.open(tmp_path, os.O_RDONLY) for _ in range(450)]
    os.lseek(files[0], 0, os.SEEK_SET)
    count = "ls /proc/self/fd | sort -n | tail -n +4 | tr '\\n' ' '"  # after 0 to 2
    told = [ranks.said(["sh", "-c", count], pass_fds=files, plain=plain) for plain in (True, False)]
    assert told[0] == told[1] and len(told[0].split()) >= 450
    for file in files:
        os.close(file)


def test_ranks_have_more_descriptors_together_than_may_be_on_their_way(
    ranks: Ranks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel lets a user's processes pass no more at a time than one may have open, unless they
    may do anything; and all ranks wait until the template is warm."""
    monkeypatch.setenv("FORK_DRIVER_WARM", "sleep 1")
    files = [os.open(tmp_path, os.O_RDONLY) for _ in range(20)]
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))  # noqa: E731
    drop = ["setpriv", "--bounding-set", "-sys_resource,-sys_admin"] if os.geteuid() == 0 else []
    if drop and not shutil.which("setpriv"):
        pytest.skip("needs setpriv (util-linux)")
    words = [*drop, str(DRIVER), "rank", str(ranks.folder), "0", "sh", "-c", "echo $PPID"]
    started = [ranks.start(words, plain=True, pass_fds=files, preexec_fn=limit) for _ in range(12)]
    told = [child.communicate(timeout=60) for child in started]
    assert len({out for out, _ in told}) == 1 and not any(err for _, err in told), told
    for file in files:
        os.close(file)


def test_ranks_that_a_template_has_no_descriptors_for_become_their_programs(
    ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were taken up come from it; nobody waits for them to end."""
    monkeypatch.setenv("FORK_DRIVER_WARM", "sleep 1")
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))  # noqa: E731
    started = [
        ranks.shell("echo $PPID; read line", n_local=30, stdin=subprocess.PIPE, preexec_fn=limit)
        for _ in range(30)
    ]
    parents = [int(child.stdout.readline()) for child in started if child.stdout]
    told = [child.communicate("go\n", timeout=60) for child in started]
    own = parents.count(os.getpid())
    assert 5 < own < 29 and len(set(parents)) == 2, parents
    assert [bool(error) for _, error in told].count(True) == own, told
    ranks.templates_end()


def test_a_user_of_many_groups_has_ranks_of_a_template(ranks: Ranks) -> None:
    """/proc/self/status has more than 8 KiB then."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be in groups")
    groups = lambda: os.setgroups(range(1_000_000, 1_001_200))  # noqa: E731
    said = [
        ranks.start(["sh", "-c", "echo $PPID; id -G | wc -w"], preexec_fn=groups, n_local=2)
        for _ in range(2)
    ]
    told = [child.communicate(timeout=30)[0].split() for child in said]
    assert told[0] == told[1] and int(told[0][0]) != os.getpid() and int(told[0][1]) >= 1200


def test_a_rank_process_that_is_stopped_before_it_asks_keeps_no_other_waiting(
    ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORK_DRIVER_WARM", "sleep 1")
    stopped = ranks.shell("echo here", preexec_fn=os.setpgrp)
    until(lambda: any("fork-" in path.name for path in ranks.folder.iterdir()))
    time.sleep(0.3)
    os.kill(stopped.pid, signal.SIGSTOP)
    assert ranks.said(["echo", "another"]) == "another\n"
    os.kill(stopped.pid, signal.SIGCONT)
    out, _ = stopped.communicate(timeout=20)
    assert (out, stopped.returncode) == ("here\n", 0)


def test_proc_says_what_the_environment_is(ranks: Ranks) -> None:
    first = ranks.first()
    mine = {**os.environ, "MINE": "m" * 100_000, "LAST": "1"}
    said = ranks.said(["environ"], env=mine).split("\0")
    assert "MINE=" + "m" * 100_000 in said and "LAST=1" in said
    first.communicate("go\n")


def test_ranks_have_one_template_and_it_ends_with_them(ranks: Ranks) -> None:
    started = [
        ranks.shell("read line; echo $PPID", stdin=subprocess.PIPE, n_local=5) for _ in range(5)
    ]
    parents = {child.communicate("go\n")[0] for child in started}
    assert len(parents) == 1
    ranks.templates_end()


def test_another_command_has_another_template(
    ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORK_DRIVER_KEY")
    started = [
        ranks.shell(f"read line; echo $PPID; exit {n // 2}", stdin=subprocess.PIPE)
        for n in range(4)
    ]
    parents = [child.communicate("go\n")[0] for child in started]
    assert parents[0] == parents[1] != parents[2] == parents[3]


def test_a_command_that_is_searched_for_elsewhere_has_another_template(
    ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "read line; echo $PPID"
    for key, alike in (("no-path-in-it", False), ("./a-path", True)):
        monkeypatch.setenv("FORK_DRIVER_KEY", key)
        started = []
        for more in ("", ":/nowhere"):
            monkeypatch.setenv("PATH", os.environ["PATH"] + more)
            started.append(ranks.shell(script, stdin=subprocess.PIPE))
        parents = {child.communicate("go\n")[0] for child in started}
        assert (len(parents) == 1) is alike
        ranks.templates_end()


def test_a_program_is_looked_at_once_whatever_the_number_of_ranks(
    ranks: Ranks, tmp_path: Path
) -> None:
    env = {**os.environ, "FORK_DRIVER_DOUBTS": str(tmp_path / "doubts")}
    script = "read line; echo $PPID"
    started = [ranks.shell(script, stdin=subprocess.PIPE, env=env, n_local=6) for _ in range(6)]
    assert len({child.communicate("go\n")[0] for child in started}) == 1
    assert (tmp_path / "doubts").read_text() == "looked\n"


def test_a_program_in_doubt_is_no_template_and_all_its_ranks_are_told_why(ranks: Ranks) -> None:
    env = {**os.environ, "FORK_DRIVER_DOUBT": "the program is a script"}
    for child in [ranks.shell("echo here; exit 3", env=env) for _ in range(3)]:
        assert child.communicate(timeout=60) == ("here\n", "plain: the program is a script\n")
        assert child.returncode == 3


@pytest.mark.parametrize(
    ("setup", "why"),
    [
        (lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN), "other signals are ignored"),
        (lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 22, 1 << 30)), "another limit"),
        (lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}), "number of processors"),
        (lambda: os.setgroups([4]), "another user, group or capability"),
        (lambda: ctypes.CDLL(None).prctl(28, 4), "another user, group or capability"),
        (lambda: ctypes.CDLL(None).unshare(0x80), "another namespace"),
    ],
)
def test_what_cannot_be_taken_over_is_refused(ranks: Ranks, setup: Setup, why: str) -> None:
    if os.geteuid() != 0 and ("group" in why or "namespace" in why):
        pytest.skip("only root may change its groups, what it keeps of its rights, or its time")
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("one processor")
    first = ranks.first()
    child = ranks.shell("echo here", preexec_fn=setup)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (0, "here\n")
    assert err.startswith("plain: ") and why in err
    first.communicate("go\n")


def ignore_the_c_librarys_own() -> None:
    """Signal 32, as posix_spawn of a program with threads may leave it, and sigaction(2) cannot."""
    number = {"x86_64": 13, "aarch64": 134}[os.uname().machine]
    ignore = (ctypes.c_uint64 * 4)(1)
    assert ctypes.CDLL(None).syscall(number, 32, ignore, None, 8) == 0


def test_signals_of_the_c_librarys_own_may_be_ignored_by_some(ranks: Ranks) -> None:
    first = ranks.first()
    assert ranks.said(["echo", "here"], preexec_fn=ignore_the_c_librarys_own) == "here\n"
    first.communicate("go\n")


@pytest.mark.parametrize(
    ("warm", "why"),
    [
        ("exit", "the template "),  # it ended, or cannot be reached any more
        ("open", "keeps open: /dev/zero"),
        ("refuse", "the test said so"),
        ("sleep 30", "the template took too long"),
    ],
)
def test_without_a_template_ranks_start_by_themselves(ranks: Ranks, warm: str, why: str) -> None:
    env = {**os.environ, "FORK_DRIVER_WARM": warm, "BRIGADE_FORK_PATIENCE": "1"}
    started = [ranks.shell("echo here", env=env) for _ in range(3)]
    reasons = []
    for child in started:
        out, err = child.communicate(timeout=20)
        assert out == "here\n" and err.startswith("plain: ")
        reasons.append(err)
    assert any(why in reason for reason in reasons), reasons


def test_the_only_rank_of_a_node_is_not_forked(ranks: Ranks) -> None:
    assert ranks.said(["echo", "here"], n_local=1) == "here\n"
    assert list(ranks.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "node", "ranks_there"),
    [("4", 0, 4), ("4(x2),3", 1, 4), ("4(x2),3", 2, 3), ("4(x2),3", 3, 0), ("x", 0, 0)],
)
def test_slurms_list_of_widths(text: str, node: int, ranks_there: int) -> None:
    told = subprocess.run([DRIVER, "width", text, str(node)], stdout=subprocess.PIPE, text=True)
    assert told.stdout == f"{ranks_there}\n"
