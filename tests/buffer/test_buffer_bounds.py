"""Where memory or the table of descriptors ends, calls do what they do without buffers."""

from __future__ import annotations

import sys

import pytest
from buffer_world import buffered, run

# the first block is full in the middle of the call, and the only one
WRITEV = """
import os
fd = os.open("w.dat", os.O_WRONLY | os.O_CREAT)
os.write(fd, b"-" * 1000)
pieces = [bytes([65 + i % 26]) * 20 for i in range(180)]
print(os.writev(fd, pieces), os.lseek(fd, 0, 1))
os.close(fd)
print(open("w.dat", "rb").read() == b"-" * 1000 + b"".join(pieces))
"""
MANY = 65536 + 100
# all descriptors of the table are taken, then the file is opened again
HIGH = f"""
import os, resource, sys
try: resource.setrlimit(resource.RLIMIT_NOFILE, ({MANY}, {MANY}))
except (ValueError, OSError): sys.exit(77)
fd = os.open("h.dat", os.O_RDWR | os.O_CREAT)
os.write(fd, b"before")
nothing = os.open("/dev/null", os.O_RDONLY)
while os.dup(nothing) < 65536: pass
other = os.open("h.dat", os.O_RDWR)
print(other > 65536, os.pread(other, 100, 0))
os.write(fd, b", after")
print(os.pread(other, 100, 0))
os.pwrite(other, b"B", 0)
print(os.pread(fd, 100, 0))
"""


def test_a_call_that_finds_no_memory_in_its_middle_writes_all_its_pieces(tmp_path):
    env = buffered(
        "*.dat:size=4K", BRIGADE_BUFFER_MEMORY="4096", BRIGADE_FAULT="buffer-slow:200000"
    )
    done = run([sys.executable, "-c", WRITEV], tmp_path, env)
    assert (done.stdout, done.stderr) == ("3600 4600\nTrue\n", "")


def test_an_open_beyond_the_table_sees_what_is_buffered_and_is_seen(tmp_path):
    done = run([sys.executable, "-c", HIGH], tmp_path, buffered("*.dat:delay=1000"))
    if done.returncode == 77:
        pytest.skip(f"needs a hard limit of {MANY} open files, or the right to raise it")
    assert done.stdout == "True b'before'\nb'before, after'\nb'Before, after'\n", done.stderr
