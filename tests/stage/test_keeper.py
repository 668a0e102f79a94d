"""A killed staging process leaves nothing: what it made is taken away by the one beside it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from brigade.job.step import PULSE, run_step
from brigade.paths import native

from .conftest import LAUNCHERS, Bench, need_launcher

N = 3
LAST_STEP = 4  #: agreements before the last one


def left(bench: Bench, nodes: int = N) -> list[list[str]]:
    """What is there when the launcher's processes have had their time to end."""
    until = time.monotonic() + 20
    while any(bench.left_on(node) for node in range(nodes)) and time.monotonic() < until:
        time.sleep(0.05)
    return [bench.left_on(node) for node in range(nodes)]


def stage(bench: Bench, mpi: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """As `brigade run` does it; returns why it failed, or "" """
    for node in range(N):
        bench.base(node).mkdir(exist_ok=True)
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("OMPI_MCA_btl_vader_backing_directory", str(bench.work))
    monkeypatch.setenv("BRIGADE_FAULT", fault)
    command = [*LAUNCHERS[mpi], str(N), *bench.command(), *PULSE]
    start = time.monotonic()
    results, _, _ = run_step(command, lambda done, total: None, patience_s=30.0)
    assert time.monotonic() - start < 30
    return str(next((r["reason"] for r in results if not r["ok"]), ""))


@pytest.mark.all
@pytest.mark.parametrize("step", range(LAST_STEP + 1))
def test_a_process_killed_before_any_agreement_leaves_nothing_on_any_node(
    bench: Bench, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first reader and others in turn."""
    need_launcher("openmpi")
    why = stage(bench, "openmpi", f"stage.step:{step}@{step % N}", monkeypatch)
    assert why
    assert left(bench) == [[]] * N


@pytest.mark.parametrize(
    "fault",
    [
        "stage.kill:5@2",
        pytest.param("stage.step:2@0", marks=pytest.mark.all),
        pytest.param("stage.step:4@1", marks=pytest.mark.all),
    ],
)
def test_so_it_does_whatever_the_launcher(
    bench: Bench, mpi: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stage(bench, mpi, fault, monkeypatch), "MPI may fail on other nodes before we hear of it"
    assert left(bench) == [[]] * N


def test_an_older_job_keeps_its_image_when_a_newer_ones_process_is_killed(bench: Bench) -> None:
    bench.put(1, "none", job="older")
    process = bench.start(1, "none", "--pulse", "1", job="newer", fault="stage.step:0")
    process.communicate(timeout=60)
    assert process.returncode == 3
    assert os.listdir(bench.staged(0) / "jobs") == ["older"]
    bench.check_same(0)


def keeper_and_worker(process: subprocess.Popen[str], bench: Bench) -> tuple[int, int]:
    """When blocks are on their way."""
    until = time.monotonic() + 20
    while not bench.left_on(0) and time.monotonic() < until:
        time.sleep(0.01)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return process.pid, int(children[0])


def test_a_killed_keeper_is_outlived_by_a_worker_that_cleans_up(bench: Bench) -> None:
    process = bench.start(1, "none", "--pulse", "1", fault="stage.slow:200000")
    keeper, _ = keeper_and_worker(process, bench)
    os.kill(keeper, signal.SIGKILL)
    process.communicate(timeout=60)
    assert left(bench, 1) == [[]]


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_keeper_alone_ends_both_in_order(
    bench: Bench, number: signal.Signals
) -> None:
    process = bench.start(
        1, "none", "--pulse", "1", fault="stage.slow:200000",
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # CI's shell may ignore Ctrl-C
    )  # fmt: skip
    keeper, _ = keeper_and_worker(process, bench)
    os.kill(keeper, number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 3 and f"signal {number:d}" in out
    assert bench.left_on(0) == []


def test_what_launchers_pass_on_makes_every_node_give_up(bench: Bench, mpi: str) -> None:
    """`brigade run` tells the launcher; the launcher its processes."""
    process = bench.start(N, mpi, "--pulse", "1", fault="stage.slow:200000")
    until = time.monotonic() + 20
    while not all(bench.left_on(node) for node in range(N)) and time.monotonic() < until:
        time.sleep(0.01)
    assert all(bench.left_on(node) for node in range(N))
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert left(bench) == [[]] * N


def test_every_process_has_a_pulse_and_says_when_it_ends(bench: Bench, mpi: str) -> None:
    process = bench.start(N, mpi, "--pulse", "1", fault="stage.slow:30000")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    told = re.findall(r"pulse (\d) (\d) (\S+?)( end)?$", err, re.MULTILINE)
    host = os.uname().nodename
    assert {(rank, size, name) for rank, size, name, _ in told} == {
        (str(rank), str(N), host) for rank in range(N)
    }
    assert sorted(rank for rank, _, _, end in told if end) == [str(rank) for rank in range(N)]


def test_a_young_job_of_another_run_is_not_taken_for_dead(bench: Bench) -> None:
    """Its `brigade run` may have begun after the list was made."""
    host = os.uname().nodename
    bench.put(1, "none", job=f"{host}-1")
    bench.put(1, "none", "--launcher", host, "--live", f"{host}-2", job=f"{host}-2")
    assert sorted(os.listdir(bench.staged(0) / "jobs")) == [f"{host}-1", f"{host}-2"]


@pytest.mark.all
def test_a_dead_job_of_the_same_launcher_goes_with_the_next(bench: Bench) -> None:
    host = os.uname().nodename
    for job in (f"{host}-1", f"{host}-3", "elsewhere-1"):
        bench.put(1, "none", job=job)
    time.sleep(22)  # src/stage/dead.c: a moment
    bench.put(1, "none", "--launcher", host, "--live", f"{host}-2,{host}-3", job=f"{host}-2")
    assert sorted(os.listdir(bench.staged(0) / "jobs")) == [
        "elsewhere-1", f"{host}-2", f"{host}-3",
    ]  # fmt: skip
    drop = [str(native("brigade-stage")), "drop", "--image-id", bench.id, "--job", f"{host}-2"]
    subprocess.run([*drop, "--base", str(bench.base(0)), "--launcher", host], check=True)
    assert os.listdir(bench.staged(0) / "jobs") == ["elsewhere-1"]


def forget(bench: Bench, job: str) -> None:
    tool = [str(native("brigade-stage")), "forget", "--job", job, "--base", str(bench.base(0))]
    subprocess.run(tool, check=True, timeout=60)


def test_what_both_left_when_both_were_killed_is_forgotten_on_request(bench: Bench) -> None:
    bench.put(1, "none", job="older")
    bench.put(1, "none", job="newer")
    process = bench.start(1, "none", "--pulse", "1", "--changed", "0", job="newest")
    process.communicate(timeout=60)
    assert sorted(os.listdir(bench.staged(0) / "jobs")) == ["newer", "newest", "older"]
    forget(bench, "newest")
    assert sorted(os.listdir(bench.staged(0) / "jobs")) == ["newer", "older"]
    forget(bench, "newer")
    bench.check_same(0)
    forget(bench, "older")
    assert bench.left_on(0) == []
    slow = bench.start(1, "none", "--pulse", "1", fault="stage.slow:200000", job="cut")
    for pid in keeper_and_worker(slow, bench):
        os.kill(pid, signal.SIGKILL)
    slow.communicate(timeout=60)
    assert len(bench.left_on(0)) == 1
    forget(bench, "cut")
    assert bench.left_on(0) == []
