"""What other processes and made-up files show is seen as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from buffer_world import buffered, run

PROC = """
import os
fd = os.open("/proc/self/stat", os.O_RDONLY)
for i in range(5): os.read(fd, 4)
"""
POLL = """
import os, sys
other = os.open("poll.dat", os.O_RDONLY)
for line in sys.stdin:
    os.lseek(other, 0, 0)
    print("".join(os.read(other, 10)[:1].decode() for _ in range(6)), flush=True)
"""
# reads three pieces, then, each time it is told to, the next one
FOLLOW = """
import os, sys
fd = os.open("next.dat", os.O_RDONLY)
for i in range(3): os.read(fd, 64)
print(flush=True)
for line in sys.stdin: print(os.read(fd, 64)[:1].decode(), flush=True)
"""
SHARED = """
import os, sys, time
fd = os.open("log.dat", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for i in range(3000):
    os.write(fd, (sys.argv[1] * 39 + "\\n").encode())
    if i % 300 == 0: time.sleep(0.03)
os.close(fd)
"""


def test_files_of_proc_are_never_buffered(tmp_path):
    report = tmp_path / "report"
    report.mkdir()
    env = buffered("*:fresh=1000", BRIGADE_BUFFER_REPORT=str(report))
    assert run([sys.executable, "-c", PROC], tmp_path, env).returncode == 0
    entries = [json.loads(path.read_text())["files"] for path in report.iterdir()]
    assert not any(entry["path"].startswith("/proc") for files in entries for entry in files)


def test_what_is_read_again_is_what_another_process_has_written(tmp_path):
    path = tmp_path / "poll.dat"
    path.write_text("a" * 5000)
    command = [sys.executable, "-c", POLL]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    env = buffered("*.dat:fresh=1000")
    with subprocess.Popen(command, cwd=tmp_path, env=env, **pipes) as reader:
        for letter in "abcd":
            path.write_text(letter * 5000)
            reader.stdin.write("\n")
            reader.stdin.flush()
            assert reader.stdout.readline() == letter * 6 + "\n"


def test_with_fresh_0_the_next_read_finds_what_another_process_wrote_a_moment_ago(tmp_path):
    path = tmp_path / "next.dat"
    path.write_text("." * 6400)
    command = [sys.executable, "-c", FOLLOW]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    env = buffered("*.dat:fresh=0")
    with subprocess.Popen(command, cwd=tmp_path, env=env, **pipes) as reader:
        assert reader.stdout.readline() == "\n"
        with path.open("r+b", buffering=0) as file:
            for i in range(3, 60):
                os.pwrite(file.fileno(), b"new" * 20, i * 64)
                reader.stdin.write("\n")
                reader.stdin.flush()
                assert reader.stdout.readline() == "n\n"


def test_lines_that_several_processes_append_stay_whole(tmp_path):
    env = buffered("*.dat:size=4K")
    command = [sys.executable, "-c", SHARED]
    writers = [subprocess.Popen([*command, c], cwd=tmp_path, env=env) for c in "abc"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    lines = (tmp_path / "log.dat").read_text().splitlines()
    assert sorted(lines) == ["a" * 39] * 3000 + ["b" * 39] * 3000 + ["c" * 39] * 3000


def test_another_process_sees_what_is_older_than_the_delay(tmp_path):
    program = "import os,time;fd=os.open('w.dat',65);os.write(fd,b'x'*100);time.sleep(0.6)\n"
    look = "print(len(open('w.dat').read()), flush=True)"
    script = f'(sleep 0.45; {sys.executable} -c "{look}") & {sys.executable} -c "{program}"; wait'
    done = run(["sh", "-c", script], tmp_path, buffered("*.dat:delay=0.1"))
    assert done.stdout == "100\n", done.stderr
    assert os.path.getsize(tmp_path / "w.dat") == 100
