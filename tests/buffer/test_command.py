"""`brigade buffer`: starts the program, keeps its status, and says what was done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from brigade.buffer.advice import LABELS, advice, merge, typical
from brigade.buffer.table import print_files

WRITER = """
import os
fd = os.open("w.dat", os.O_RDWR | os.O_CREAT)
for i in range(5000): os.write(fd, b"0123456789")
os.lseek(fd, 0, 0)
while os.read(fd, 10): pass
"""


def brigade(folder, *words):
    command = [sys.executable, "-m", "brigade", "buffer", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_report_counts_calls_bytes_and_what_came_from_memory(tmp_path):
    done = brigade(tmp_path, "--json", "r.json", "--", sys.executable, "-c", WRITER)
    assert done.returncode == 0, done.stderr
    files = json.loads((tmp_path / "r.json").read_text())["files"]
    (entry,) = [entry for entry in files if entry["path"] == "w.dat"]
    assert (entry["writes"], entry["write_bytes"]) == (5000, 50000)
    assert (entry["reads"], entry["read_bytes"]) == (5001, 50000)
    assert entry["write_hits"] > 4900 and entry["read_hits"] > 4900
    assert entry["write_sizes"][0] == 5000 and typical(entry["write_sizes"]) == "<64"
    assert entry["flushes"] < 10 and entry["left"] is None
    assert sorted(os.listdir(tmp_path)) == ["r.json", "w.dat"], "nothing else is left behind"


def test_the_table_is_for_people(tmp_path):
    done = brigade(tmp_path, "--files", "w.dat", "--report", "--", sys.executable, "-c", WRITER)
    assert "w.dat (write)" in done.stderr and "5,000" in done.stderr
    assert done.stdout == ""


def test_a_job_without_counters_is_said_to_have_left_none(tmp_path):
    done = brigade(tmp_path, "--report", "--", "true")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no process has left counters" in done.stderr


def test_counters_that_cannot_be_read_are_counted_and_a_line_without_its_end_is_none(tmp_path):
    code = """
import os
with open(os.environ["BRIGADE_BUFFER_REPORT"] + "/other.json", "w") as f:
    f.write('{"files": [{"path": "x", "read_s": 0,5}]}\\n\\xff\\n{"host": "h", "pi')
"""
    done = brigade(tmp_path, "--report", "--", sys.executable, "-c", code)
    assert (done.returncode, done.stdout) == (0, "")
    assert "brigade: the counters of 2 processes cannot be read" in done.stderr


def test_the_status_of_the_program_is_kept(tmp_path):
    assert brigade(tmp_path, "--", "sh", "-c", "exit 7").returncode == 7
    assert brigade(tmp_path, "--report", "--", "sh", "-c", "exit 7").returncode == 7
    killed = brigade(tmp_path, "--report", "--", "sh", "-c", "kill -TERM $$")
    assert killed.returncode == -signal.SIGTERM


@pytest.mark.parametrize(
    ("path", "why"),
    [("/nonexistent/x", "No such file or directory"), ("/dev/full", "No space left on device")],
)
def test_where_the_counters_cannot_be_written_the_status_is_kept_too(tmp_path, path, why):
    done = brigade(tmp_path, "--json", path, "--", "sh", "-c", "exit 4")
    assert (done.returncode, done.stderr) == (4, f"brigade: {path}: {why}\n")
    killed = brigade(tmp_path, "--json", path, "--", "sh", "-c", "kill -TERM $$")
    assert killed.returncode == -signal.SIGTERM


def test_a_library_that_is_preloaded_already_stays(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "brigade", "buffer", "--", "sh", "-c", "echo $LD_PRELOAD"],
        env={**os.environ, "LD_PRELOAD": "libdl.so.2"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip().endswith("libbrigade_buffer.so:libdl.so.2")


def test_explain_says_how_rules_are_understood(tmp_path):
    done = brigade(
        tmp_path, "--explain", "--files", "*.h5:size=8M:count=8:direct:noflush,*.log:off"
    )
    assert "*.h5: 8 buffers of 8M" in done.stdout and "noflush: " in done.stdout
    assert "read past the page cache" in done.stdout
    assert "*.log: left alone" in done.stdout


def entry(**more):
    zero = ("reads read_hits writes syncs direct_writes flushes ahead ahead_used errors "
            "read_s write_s wait_s").split()  # fmt: skip
    return {"path": "f", "left": None, "error": 0, **dict.fromkeys(zero, 0), **more}


@pytest.mark.parametrize(
    ("counters", "word"),
    [
        ({"errors": 1}, "failed in the background"),
        ({"left": "mmap", "reads": 5}, "left to the kernel (mmap) after 5 calls"),
        ({"write_s": 4, "wait_s": 3, "writes": 9}, "3.0 of 4.0 s were spent waiting"),
        ({"writes": 1000, "syncs": 900}, "synced"),
        ({"writes": 1000, "direct_writes": 900}, "at once"),
        ({"writes": 1000, "flushes": 900}, "do not follow each other"),
        ({"reads": 1000, "read_hits": 10}, "reads do not follow"),
        ({"ahead": 100, "ahead_used": 1}, "prefetch=0"),
    ],
)
def test_what_would_have_helped_follows_from_the_counters(counters, word):
    (said,) = advice(entry(**counters))
    assert word in said


def test_nothing_is_advised_where_all_is_well():
    assert advice(entry(writes=10**6, flushes=10, reads=10**6, read_hits=999990)) == []


def test_counters_of_several_processes_are_summed_and_the_slowest_file_comes_first():
    one = {**entry(writes=1, write_s=1.0), "sizes": [1, 0]}
    other = {**entry(writes=2, write_s=2.0), "sizes": [0, 5]}
    slow = {**entry(write_s=9.0), "path": "g"}
    found = merge([{"files": [one]}, {"files": [other, slow]}])
    assert [file["path"] for file in found] == ["g", "f"]
    assert found[1]["writes"] == 3 and found[1]["sizes"] == [1, 5] and found[1]["processes"] == 2
    assert len(LABELS) == 12


def test_names_are_shown_as_they_are_whatever_is_in_them(capsys):
    """No markup, no emoji, nothing that moves the cursor."""
    names = {"[/x]": "[/x]", "run[1].dat": "run[1].dat", "[red]a": "[red]a",
             ":smile:": ":smile:", "a\x1b[31m": "a\\x1b[31m", "\udc80": "\\udc80"}  # fmt: skip
    sizes = {"read_sizes": [200] + [0] * 11, "read_bytes": 200, "background_s": 0.0}
    print_files([{**entry(reads=200), **sizes, "path": name} for name in names], 1)
    lines = capsys.readouterr().err.splitlines()
    rows = [line.split(" ")[1] for line in lines if "(read)" in line]
    assert rows == list(names.values())
    assert [line.split(": reads")[0] for line in lines if ": reads" in line] == rows
