"""A step under a launcher is read as it speaks, and ended when it has gone silent."""

from __future__ import annotations

import errno
import os
import time

import pytest

from brigade.errors import LostNodeError, StageError
from brigade.job.step import begin_step, run_step, short
from brigade.launch.base import step_environment


def sh(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


def test_json_progress_and_other_words_are_told_apart() -> None:
    heard: list[tuple[int, int]] = []
    script = """echo '{"a": 1}'; echo '0: {"b": 2}'; echo "1 10" >&2; echo "0: 5 10" >&2
                echo a word; echo '{ no json' >&2; exit 3"""
    results, said, status = run_step(sh(script), lambda done, total: heard.append((done, total)))
    assert results == [{"a": 1}, {"b": 2}]
    assert heard == [(1, 10), (5, 10)]
    assert sorted(said.split("; ")) == ["a word", "{ no json"]
    assert status == 3


def test_an_error_has_the_head_and_the_end_of_what_was_said() -> None:
    long = short("no such partition; " + "task ended; " * 200 + "srun: error")
    assert long.startswith("no such partition") and long.endswith("srun: error")
    assert len(long) < 900 and short("brief") == "brief" and short("") == "nothing"


def test_words_in_another_encoding_are_words_and_nothing_after_them_is_lost() -> None:
    script = r"""printf 'Fehler: Knoten f\374r\n' >&2; printf 'caf\351\n'; echo '{"a": 1}'"""
    results, said, _ = run_step(sh(script), lambda done, total: None)
    assert results == [{"a": 1}]
    assert sorted(said.split("; ")) == ["Fehler: Knoten f\ufffdr", "caf\ufffd"]


def test_a_silent_step_is_ended_even_if_it_will_not_listen() -> None:
    begin = time.monotonic()
    with pytest.raises(StageError, match="silent"):
        run_step(sh("trap '' TERM; while :; do sleep 0.1; done"), lambda done, total: None, 0.6)
    assert time.monotonic() - begin < 15


def test_a_step_that_speaks_may_take_its_time() -> None:
    script = "for i in 1 2 3 4; do echo $i 4 >&2; sleep 0.4; done"
    assert run_step(sh(script), lambda done, total: None, 1.0)[2] == 0


def test_the_end_of_a_step_is_told_and_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "pidfd_open"):
        pytest.skip("Python was built where pidfd_open is not known")

    def no_sleep(seconds: float) -> None:
        raise AssertionError("looks from time to time")

    monkeypatch.setattr(time, "sleep", no_sleep)
    assert run_step(sh("sleep 0.3; exit 4"), lambda done, total: None)[2] == 4


def test_a_step_that_has_ended_leaves_no_stream_open() -> None:
    step = begin_step(sh("echo a word; echo one more >&2"), lambda done, total: None)
    step.finish()
    assert step.child.stdout and step.child.stderr
    assert (step.child.stdout.closed, step.child.stderr.closed) == (True, True)


def test_where_nothing_tells_of_a_steps_end_it_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(pid: int, flags: int = 0) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
    assert run_step(sh("sleep 0.3; exit 4"), lambda done, total: None)[2] == 4


def test_a_missing_launcher_is_named() -> None:
    with pytest.raises(StageError, match="/no/such/launcher"):
        run_step(["/no/such/launcher"], lambda done, total: None)


def test_a_node_that_had_begun_and_is_lost_is_another_error_than_silence() -> None:
    script = "echo 'pulse 0 2 here' >&2; echo 'pulse 1 2 there' >&2; exec sleep 60"
    with pytest.raises(LostNodeError, match="no word from here"):
        run_step(sh(script), lambda done, total: None, 6.0)
    with pytest.raises(StageError) as silent:
        run_step(sh("exec sleep 60"), lambda done, total: None, 0.5)
    assert not isinstance(silent.value, LostNodeError)


def test_a_step_is_told_one_word_and_then_the_end_of_its_input() -> None:
    step = begin_step(sh('read word; echo "{\\"word\\": \\"$word\\"}"; cat'), quiet, told=True)
    step.tell("go\nand more")
    assert step.finish() == ([{"word": "go"}], "and more", 0)
    nothing = begin_step(sh("read word || exit 7"), quiet, told=True)
    nothing.tell("")
    assert nothing.finish()[2] == 7


def test_a_step_that_has_ended_before_it_is_told_says_how_by_itself() -> None:
    step = begin_step(sh("exit 3"), quiet, told=True)
    step.child.wait()
    step.tell("go\n")
    assert step.finish()[2] == 3


def quiet(done: int, total: int) -> None:
    """Shows no progress."""


def test_variables_of_srun_that_label_or_redirect_are_not_for_our_own_steps() -> None:
    streams = ("LABELIO", "STDOUTMODE", "STDERRMODE", "STDINMODE")
    given = {"SLURM_JOB_ID": "7", "PATH": "/bin", **{f"SLURM_{name}": "1" for name in streams}}
    assert step_environment(given) == {
        "SLURM_JOB_ID": "7",
        "PATH": "/bin",
        "I_MPI_JOB_RESPECT_PROCESS_PLACEMENT": "off",
    }
