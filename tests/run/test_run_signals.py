"""Signals around several processes without a launcher: as plainly, and each process once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from project import Site

COUNTS = """\
import os, signal, time
import pkg
seen = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: seen.append(int(number)))
os.write(1, b"ready\\n")
until = time.monotonic() + 30
while not seen and time.monotonic() < until:
    time.sleep(0.02)
time.sleep(0.5)
os.write(1, b"%r\\n" % seen)
"""
WAITS = "import os, time, pkg; os.write(1, b'ready\\n'); time.sleep(1); os.write(1, b'over\\n')"


def start(site: Site, ranks: int, **options: object) -> subprocess.Popen[str]:
    """A group of its own, as a shell makes it for a job; when all ranks are ready."""
    cache, nodes = str(site.base / "cache"), str(site.nodes)
    words = [str(site.python), str(site.app)]
    job = subprocess.Popen(
        [sys.executable, "-m", "brigade", "run", "-q", "-n", str(ranks), "--", *words],
        env={**os.environ, "BRIGADE_CACHE": cache, "BRIGADE_NODE_DIR": nodes},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        **options,  # type: ignore[call-overload]
    )  # fmt: skip
    assert job.stdout
    assert [job.stdout.readline() for _ in range(ranks)] == ["ready\n"] * ranks
    return job


def test_an_interrupt_of_the_whole_group_reaches_each_rank_once(site: Site) -> None:
    site.app.write_text(COUNTS)
    job = start(site, 2)
    os.killpg(job.pid, signal.SIGINT)
    out, said = job.communicate(timeout=60)
    assert (out, job.returncode) == (f"[{int(signal.SIGINT)}]\n" * 2, 0), said


def test_a_signal_that_asks_brigade_to_end_reaches_each_rank_once(site: Site) -> None:
    site.app.write_text(COUNTS)
    job = start(site, 2)
    job.send_signal(signal.SIGTERM)
    out, said = job.communicate(timeout=60)
    assert (out, job.returncode) == (f"[{int(signal.SIGTERM)}]\n" * 2, 0), said


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT], ids=["nohup", "background"])
def test_what_the_caller_had_ignored_ends_nobody(site: Site, ranks: int, number: int) -> None:
    site.app.write_text(WAITS)
    job = start(site, ranks, preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
    os.killpg(job.pid, number)
    out, said = job.communicate(timeout=60)
    assert (out, job.returncode) == ("over\n" * ranks, 0), said


def handled(said: str) -> list[tuple[str, int]]:
    """What the lines of `grep` say, without signals 32 and 33, of which posix_spawn takes care."""
    lines = [line.split() for line in said.splitlines()]
    return sorted((name, int(bits, 16) & ~(3 << 31)) for name, bits in lines)


@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_have_the_signals_that_the_program_has_by_itself(site: Site, ranks: int) -> None:
    """Python ignores SIGPIPE; whoever it starts is not to."""
    words = ["grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"]
    plain = subprocess.run(words, capture_output=True, text=True, check=True)
    under = site.brigade_of(words, ("-q", "-n", str(ranks)))
    assert handled(under.stdout) == handled(plain.stdout * ranks)


def test_a_rank_that_fails_first_decides_though_others_go_on(site: Site) -> None:
    code = "n=$BRIGADE_RANK; sleep 0.$n; exit $((n + 3))"
    begin = time.monotonic()
    assert site.brigade_of(["sh", "-c", code], ("-q", "-n", "3")).returncode == 3
    assert time.monotonic() - begin < 60
