"""Threads that write to one file, or read it together, by one descriptor lose nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from buffer_world import buffered, compile_c, run

#: rules -> bytes of a record, records of each of four threads: more than the buffers hold
RULES = {
    "*:size=4K:count=1": (200, 3000),
    "*:size=8K:count=2": (5000, 1000),
    "*:size=64K": (700, 3000),
    "*": (5000, 1500),
}
HOW = ["write", "append", "pwrite", "writev", "read"]
# a thread writes faster than the file takes it, until the main thread has looked ten times
LOOK = """
import os, threading
fd, n, looked = os.open("l.dat", os.O_RDWR | os.O_CREAT), 0, False
def go_on():
    global n
    while not looked and n < 3000:
        os.write(fd, b"x" * 1000)
        n += 1
writer = threading.Thread(target=go_on)
writer.start()
while n < 20: pass
for i in range(10): %s
looked = True
writer.join()
print(n < 3000)
"""
LOOKS = ["os.fstat(fd)", "os.stat('l.dat')", "os.fsync(fd)", "os.pread(fd, 5000, (n - 6) * 1000)"]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c("several_driver", tmp_path_factory.mktemp("several"))


def records(
    driver: Path, folder: Path, rules: str, how: str, meanwhile: str = "nothing"
) -> dict[str, int]:
    """Run it buffered: all records must be there, once. Returns the counters of the file."""
    report = folder / "report"
    report.mkdir()
    n_bytes, count = RULES[rules]
    env = buffered(rules, BRIGADE_BUFFER_REPORT=str(report))
    done = run([driver, folder / "a.dat", how, n_bytes, count, meanwhile], folder, env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{4 * count} of {4 * count}, 0 bad\n"
    counters: dict[str, int] = {}
    for path in report.iterdir():
        for entry in json.loads(path.read_text().splitlines()[0])["files"]:
            counters = entry if entry["path"].endswith("a.dat") else counters
    return counters


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("how", HOW)
def test_no_record_of_several_threads_is_lost(driver, tmp_path, rules, how):
    found = records(driver, tmp_path, rules, how)
    assert found["reads" if how == "read" else "flushes"] > 0, "nothing was buffered"


@pytest.mark.parametrize("meanwhile", ["close", "open", "read", "sync", "fork", "system"])
@pytest.mark.parametrize("how", ["write", "append", "pwrite"])
def test_none_is_lost_while_the_file_is_read_closed_or_left(driver, tmp_path, how, meanwhile):
    found = records(driver, tmp_path, "*:size=8K:count=2", how, meanwhile)
    assert found["flushes"] > 0, "nothing was buffered"


@pytest.mark.parametrize("look", LOOKS)
def test_who_looks_waits_for_what_was_written_before_not_for_what_comes(tmp_path, look):
    env = buffered("*.dat:size=4K", BRIGADE_FAULT="buffer-slow:5000")
    done = run([sys.executable, "-c", LOOK % look], tmp_path, env)
    assert (done.stdout, done.stderr) == ("True\n", "")
