"""Each process counts what it does itself, and leaves its counters however it ends by itself."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from buffer_world import buffered, run
from decimal_comma import decimal_comma

from brigade.buffer.advice import merge

#: 1000 writes, then three children that do nothing
PARENT = """
import os
f = os.open("y.dat", os.O_CREAT | os.O_RDWR)
for i in range(1000): os.write(f, b"0123456789")
os.close(f)
for i in range(3):
    if os.fork() == 0: {end}
    os.wait()
"""
WORKERS = """
import multiprocessing as mp
def work(i):
    f = open(f"mp{i}.dat", "wb", buffering=0)
    for k in range(1000): f.write(b"x" * 64)
    f.close()
fork = mp.get_context("fork")
workers = [fork.Process(target=work, args=(i,)) for i in range(2)]
for worker in workers: worker.start()
for worker in workers: worker.join()
"""
ENDS = {
    "exit": "ctypes.CDLL(None).exit(0)",
    "_exit": "os._exit(0)",
    "quick_exit": "ctypes.CDLL(None).quick_exit(0)",
    "_exit in a handler": "signal.signal(10, lambda *_: os._exit(0)); os.kill(os.getpid(), 10)",
}


def counted(folder: Path, code: str, **more: str) -> tuple[list[dict[str, Any]], str]:
    """The files of all processes, and what they said."""
    report = folder / "report"
    report.mkdir()
    env = buffered("*.dat:verbose", BRIGADE_BUFFER_REPORT=str(report), **more)
    done = run([sys.executable, "-c", code], folder, env)
    assert done.returncode == 0, done.stderr
    lines = [line for path in report.iterdir() for line in path.read_text().splitlines()]
    return merge([json.loads(line) for line in lines]), str(done.stderr)


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_does_not_count_again_what_its_parent_did(tmp_path, end):
    files, said = counted(tmp_path, "import sys" + PARENT.format(end=end))
    assert [(file["path"], file["writes"], file["processes"]) for file in files] == [
        ("y.dat", 1000, 1)
    ]
    assert said.count("brigade buffer: y.dat") == 1


def test_workers_that_end_by_the_system_call_are_counted(tmp_path):
    files, said = counted(tmp_path, WORKERS)
    assert sorted((file["path"], file["writes"]) for file in files) == [
        ("mp0.dat", 1000),
        ("mp1.dat", 1000),
    ]
    assert said.count("brigade buffer: mp") == 2


@pytest.mark.parametrize("end", ENDS)
def test_counters_are_left_once_whatever_the_end(tmp_path, end):
    code = "import ctypes, os, signal\nf = os.open('e.dat', 66)\nos.write(f, b'hello')\n"
    files, said = counted(tmp_path, code + ENDS[end])
    assert [(file["writes"], file["left"], file["processes"]) for file in files] == [(1, None, 1)]
    assert said.count("brigade buffer: e.dat") == 1
    assert (tmp_path / "e.dat").read_bytes() == b"hello"


def test_what_a_handler_of_quick_exit_writes_is_kept(tmp_path):
    code = """
import ctypes, os
f = os.open("e.dat", 66)
os.write(f, b"hello")
libc = ctypes.CDLL(None)
late = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: os.write(f, b", late") and None)
libc.__cxa_at_quick_exit(late, None)
libc.quick_exit(0)
"""
    counted(tmp_path, code)
    assert (tmp_path / "e.dat").read_bytes() == b"hello, late"


def test_a_child_of_vfork_that_cannot_start_a_program_leaves_no_counters(tmp_path):
    code = """
import os, subprocess
f = os.open("v.dat", 66)
os.write(f, b"hello")
try: subprocess.run(["/no/such/program"])
except OSError: pass
os.write(f, b"hello")
g = os.open("w.dat", 66)
os.write(g, b"hello")
"""
    files, said = counted(tmp_path, code)
    assert sorted((file["path"], file["writes"]) for file in files) == [("v.dat", 1), ("w.dat", 1)]


def test_a_child_by_clone_does_not_count_again_what_its_parent_did(tmp_path):
    code = """
import ctypes, os
f = os.open("c.dat", 66)
os.write(f, b"hello")
start = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: os._exit(3))
stack = ctypes.create_string_buffer(1 << 20)
top = (ctypes.addressof(stack) + (1 << 20)) & ~63
pid = ctypes.CDLL(None).clone(start, ctypes.c_void_p(top), 17, None)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
"""
    files, said = counted(tmp_path, code)
    assert [(file["writes"], file["processes"]) for file in files] == [(1, 1)]
    assert said.count("brigade buffer: c.dat") == 1


def test_counters_have_a_decimal_point_whatever_the_language_of_the_program(tmp_path):
    code = """
import locale, os
locale.setlocale(locale.LC_ALL, "")
assert locale.localeconv()["decimal_point"] == ","
f = os.open("l.dat", 66)
for i in range(8): os.write(f, b"hello")
"""
    files, said = counted(tmp_path, code, **decimal_comma(tmp_path / "locales"))
    assert [(file["writes"], type(file["write_s"])) for file in files] == [(8, float)]
    assert "100.0% into memory" in said and not re.search(r"\d,\d", said)
