"""A benchmark that is asked to end ends what it has started, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brigade.bench import run
from brigade.bench.all import run as run_all

# A launcher that ends its ranks, which it has none of, when it is asked to.
LAUNCHER = """
import pathlib, signal, sys, time

def end(signum, frame):
    (here / "ended").touch()
    sys.exit(1)

here = pathlib.Path(sys.argv[1])
signal.signal(signal.SIGTERM, end)
(here / "started").touch()
while True:
    time.sleep(0.1)
"""
# A compiler that makes nothing of anything.
COMPILER = """#!/bin/sh
while [ $# -gt 0 ]; do
    [ "$1" = -o ] && : > "$2"
    shift
done
"""
KINDS = {
    "checkpoint": ["--variants", "posix-fpp", "--rival", "1"],
    "align": [],
    "overlap": [],
    "interfere": [],
    "ior": [],
    "ior --json": [],
    "ior --compare": [],
    "ior -o file": [],
    "all --quick --only overlap": [],
    "cload": ["--libraries", "1", "--functions", "4"],
}


def until(found: Path, child: subprocess.Popen[str]) -> None:
    while not found.exists() and child.poll() is None:
        time.sleep(0.02)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.all)]
)
def test_a_signal_ends_the_launcher_and_removes_the_folder(
    kind: str, number: int, tmp_path: Path
) -> None:
    launcher, compiler, folder = (tmp_path / name for name in ("launcher.py", "mpicc", "files"))
    launcher.write_text(LAUNCHER)
    compiler.write_text(COMPILER)
    compiler.chmod(0o700)
    folder.mkdir()
    variables = {"MPICC": str(compiler), "BRIGADE_CACHE": str(tmp_path / "cache")}
    words = [*kind.split(), "--dir", str(folder), *KINDS[kind]]
    started = [sys.executable, str(launcher), str(tmp_path)]
    child = subprocess.Popen(
        [sys.executable, "-m", "brigade", "bench", *words, "--", *started],
        env={**os.environ, **variables}, cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(tmp_path / "started", child)
    child.send_signal(number)
    _, said = child.communicate(timeout=100)
    assert child.returncode == 128 + number, said
    assert "Traceback" not in said
    assert (tmp_path / "ended").exists(), "the launcher is not left alone"
    if kind != "cload":  # whose world stays
        assert list(folder.iterdir()) == []


def test_a_launcher_that_does_not_heed_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PATIENCE_S", 0.2)
    deaf = "trap '' TERM; echo deaf; while :; do sleep 1; done"
    child = subprocess.Popen(["sh", "-c", deaf], stdout=subprocess.PIPE, text=True)
    assert child.stdout and child.stdout.readline() == "deaf\n"
    run.end(child)
    assert child.returncode == -signal.SIGKILL


def test_nothing_is_left_of_a_benchmark_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_all, "PATIENCE_S", 1.0)
    open_there = tmp_path / "fifo"
    os.mkfifo(open_there)
    reader = os.open(open_there, os.O_RDONLY | os.O_NONBLOCK)
    begun = f"sh -c 'exec sleep 999' > {open_there} & wait"
    assert run_all._command(["sh", "-c", begun], 2.0)[0] is None
    left, until_s = True, time.monotonic() + 30
    while left and time.monotonic() < until_s:
        try:
            left = os.read(reader, 1) != b""
        except BlockingIOError:  # somebody has it open for writing
            time.sleep(0.05)
    os.close(reader)
    assert not left
