"""A read that hangs with its file system holds up its own thread, and neither an end nor a look."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from buffer_world import buffered, run

# as long as no test waits
HANGS = {"BRIGADE_FAULT": "buffer-slow-read:3000000000"}
START = """
import ctypes, os, signal, sys, threading, time
libc = ctypes.CDLL(None)
fd, other = os.open("r.dat", os.O_RDWR), os.open("w.dat", os.O_RDWR | os.O_CREAT)
begun = threading.Event()
def hang():
    begun.set()
    {read}
threading.Thread(target=hang, daemon=True).start()
begun.wait()
time.sleep(0.2)
os.write(other, b"hello")
"""
READS = ["os.read(fd, 10)", "os.pread(fd, 10, 0)"]
LATE = """
os.write(fd, b"new")
late = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: os.write(fd, b", late") and None)
libc.__cxa_at_quick_exit(late, None)
libc.quick_exit(0)
"""
#: what is done meanwhile -> how the program ends
ENDS = {
    "os._exit(3)": 3,
    "libc.quick_exit(3)": 3,
    "libc.exit(3)": 3,
    "libc.syscall(231 if os.uname().machine == 'x86_64' else 94, 3)": 3,
    "sys.exit(3)": 3,
    "os.abort()": -6,
    "os.kill(os.getpid(), signal.SIGTERM)": -15,
    "os.execv('/bin/sh', ['sh', '-c', 'exit 3'])": 3,
    "open('/proc/self/stat').read(); os._exit(3)": 3,
    "os.system('true'); os._exit(3)": 3,
}


def ended(folder: Path, read: str, code: str) -> Any:
    (folder / "r.dat").write_bytes(b"0123456789")
    env = buffered("*.dat:delay=1000", **HANGS)
    return run([sys.executable, "-c", START.format(read=read) + code], folder, env)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("end", ENDS)
def test_it_holds_up_no_end_and_nothing_is_lost(tmp_path, read, end):
    done = ended(tmp_path, read, end)
    assert (done.returncode, done.stdout) == (ENDS[end], ""), done.stderr
    assert (tmp_path / "w.dat").read_bytes() == b"hello"


@pytest.mark.parametrize("end", ENDS)
def test_what_was_written_to_the_file_that_is_read_is_not_lost(tmp_path, end):
    done = ended(tmp_path, READS[1], "os.write(fd, b'new'); " + end)
    assert done.returncode == ENDS[end], done.stderr
    assert (tmp_path / "r.dat").read_bytes() == b"new3456789"


def test_what_comes_after_the_beginning_of_the_end_is_not_lost_either(tmp_path):
    done = ended(tmp_path, READS[1], LATE)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.dat").read_bytes() == b"new, late9"
