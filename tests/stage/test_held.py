"""`brigade-stage put --held`: the processes start, and stage nothing before they are told."""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import time
from typing import Any

import pytest

from .conftest import LIMIT_S, Bench, need_launcher

N = 3
WAIT_S = 1.0


def held(bench: Bench, mpi: str, *extra: str) -> subprocess.Popen[str]:
    return bench.start(N, mpi, "--held", *extra, stdin=subprocess.PIPE)


def left(bench: Bench) -> list[list[str]]:
    return [bench.left_on(node) for node in range(N)]


def outcome(process: subprocess.Popen[str], word: str) -> dict[str, Any]:
    out, err = process.communicate(word, timeout=LIMIT_S)
    lines = [line for line in out.splitlines() if line.startswith("{")]
    assert len(lines) == 1, out + err
    result: dict[str, Any] = json.loads(lines[0])
    return result


def changed_words(bench: Bench, node: int) -> tuple[int, ...]:
    state = (bench.staged(node) / "jobs/job/state").read_bytes()
    return struct.unpack_from("<2Q", state, struct.unpack_from("<Q", state, 40)[0])


def test_nothing_is_made_on_any_node_until_the_word_and_then_all_of_it(
    bench: Bench, mpi: str
) -> None:
    begun = time.monotonic()
    assert outcome(held(bench, mpi), "")["ok"] is False
    wait_s = WAIT_S + 2 * (time.monotonic() - begun)  # longer than a start and an end take here
    process = held(bench, mpi, "--timeout", "1")  # a limit for answers, not for the word
    time.sleep(wait_s)
    assert process.poll() is None
    assert left(bench) == [[]] * N
    result = outcome(process, "\n")
    assert result["ok"] is True and process.returncode == 0, result
    assert 0 <= result["mpi_seconds"] < result["seconds"] < wait_s, "waiting is not staging"
    for node in range(N):
        bench.check_same(node)


def test_what_the_word_says_has_changed_is_marked_on_every_node(bench: Bench, mpi: str) -> None:
    assert outcome(held(bench, mpi), "3,70,64\n")["ok"] is True
    assert [changed_words(bench, node) for node in range(N)] == [(1 << 3, 1 << 6 | 1)] * N


# As long as `brigade run` lets one be (job/stage.py), and, without a launcher, longer than a pipe.
# Open MPI 4.1's mpirun holds 50 messages of 4 KiB back; beyond that it may crash in its own
# orte_iof_hnp_read_local_handler as its input ends.
@pytest.mark.parametrize(
    ("n", "launcher", "nodes"), [(4000, "openmpi", N), (4000, "mpich", N), (30_000, "none", 1)]
)
def test_a_long_word_is_heard_whole(bench: Bench, n: int, launcher: str, nodes: int) -> None:
    if launcher != "none":
        need_launcher(launcher)
    word = ",".join(map(str, [*range(10**6, 10**6 + n), 5])) + "\n"
    result = outcome(bench.start(nodes, launcher, "--held", stdin=subprocess.PIPE), word)
    assert result["ok"] is True, result
    assert [changed_words(bench, node) for node in range(nodes)] == [(1 << 5, 0)] * nodes


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("", "the input ended after 0 bytes, before its line did"),
        ("3,70", "the input ended after 4 bytes, before its line did"),
        ("not a number\n", "13 bytes of input are no list of numbers"),
    ],
)
def test_without_a_whole_word_nothing_is_staged(
    bench: Bench, mpi: str, word: str, why: str
) -> None:
    result = outcome(held(bench, mpi), word)
    assert result["ok"] is False
    assert result["reason"] == f"it was not told to begin: {why}"
    assert left(bench) == [[]] * N


def test_a_signal_ends_one_who_waits(bench: Bench) -> None:
    process = bench.start(1, "none", "--held", "--pulse", "1", stdin=subprocess.PIPE)
    time.sleep(WAIT_S)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(timeout=LIMIT_S) != 0
    assert bench.left_on(0) == []
