"""An error met in the background is told once, by the next call on that file, fsync or close."""

from __future__ import annotations

import errno
import json
import os

import pytest
from buffer_world import buffered, run

#: Writes 100 bytes `n` times, syncs, closes; prints each error as "call: name".
PROGRAM = """
import os, errno, time, sys
fd = os.open("f.dat", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
def attempt(what, call):
    try:
        call()
    except OSError as e:
        print(what, errno.errorcode[e.errno], flush=True)
for i in range(int(sys.argv[1])):
    attempt("write", lambda: os.write(fd, b"x" * 100))
    if "slow" in sys.argv and i == 20:
        time.sleep(0.5)
if "sync" in sys.argv:
    attempt("fsync", lambda: os.fsync(fd))
if "dup" in sys.argv:
    other = os.dup(fd)
    attempt("close other", lambda: os.close(other))
if "fork" in sys.argv:
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    attempt("write after", lambda: os.write(fd, b"y"))
if "vfork" in sys.argv:
    import subprocess
    subprocess.run(["true"], stdout=fd)  # the child has it, and closes it
if "look" in sys.argv:
    os.close(os.dup(fd))
    print(os.fstat(fd).st_size)
if "lock" in sys.argv:
    import fcntl
    attempt("flock", lambda: fcntl.flock(fd, fcntl.LOCK_EX))
attempt("close", lambda: os.close(fd))
"""


#: What is done to `fd` and cannot tell what failed: then another descriptor of its file does.
UNTOLD = """
import ctypes, errno, fcntl, os, resource, socket, sys
libc, pair = ctypes.CDLL(None), socket.socketpair()
fd = os.open("f.dat", os.O_RDWR | os.O_CREAT)
other = os.open("f.dat", os.O_RDWR) if {other} else fd
os.write(fd, b"x" * 100)
{call}
try:
    os.write(other, b"y")
except OSError as e:
    print(errno.errorcode[e.errno])
print(os.write(other, b"z"))
"""
BEYOND = """
try: resource.setrlimit(resource.RLIMIT_NOFILE, (65546, 65546))
except (ValueError, OSError): sys.exit(77)
fcntl.fcntl(fd, fcntl.F_DUPFD, 65540)
"""


def told(tmp_path, *words, fault="buffer-enospc:0", rules="*.dat:size=4K:delay=0.1"):
    env = buffered(rules, BRIGADE_FAULT=fault)
    done = run(["python3", "-c", PROGRAM, *words], tmp_path, env)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["10"], ["close ENOSPC"]),
        (["10", "sync"], ["fsync ENOSPC"]),
        (["10", "dup"], ["close other ENOSPC"]),
        (["10", "fork"], ["write after ENOSPC"]),
        (["10", "vfork"], ["close ENOSPC"]),
        (["10", "vfork", "look"], ["0", "close ENOSPC"]),
        (["10", "lock"], ["flock ENOSPC"]),
        (["60", "slow"], ["write ENOSPC"]),
    ],
)
def test_it_is_told_once_by_the_call_that_comes_next(tmp_path, words, expected):
    assert told(tmp_path, *words) == expected


@pytest.mark.parametrize(
    ("call", "other"),
    [
        ("os.closerange(fd, fd + 1)", True),
        ("os.dup2(0, fd)", True),
        ("other = os.dup(fd); os.closerange(fd, fd + 1)", False),
        (BEYOND, False),
        ("socket.send_fds(pair[0], [b'f'], [fd])", False),
        ("libc.fdopen(fd, b'a')", False),
    ],
)
def test_what_a_call_cannot_tell_is_told_by_the_next_that_can(tmp_path, call, other):
    env = buffered("*.dat:delay=1000", BRIGADE_FAULT="buffer-enospc:0")
    done = run(["python3", "-c", UNTOLD.format(call=call, other=other)], tmp_path, env)
    if done.returncode == 77:
        pytest.skip("needs a hard limit of 65546 open files, or the right to raise it")
    assert done.stdout == "ENOSPC\n1\n", done.stderr


def test_another_error_keeps_its_name(tmp_path):
    assert told(tmp_path, "10", fault="buffer-eio:0") == ["close EIO"]


def test_a_short_write_is_gone_on_with(tmp_path):
    assert told(tmp_path, "100", fault="buffer-short:0") == []
    assert (tmp_path / "f.dat").read_bytes() == b"x" * 10000


def test_a_stream_is_told_too(tmp_path):
    program = (
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.fopen.restype = ctypes.c_void_p\n"
        "f = ctypes.c_void_p(libc.fopen(b'f.dat', b'w'))\n"
        "print(libc.fputs(b'hello', f) >= 0, libc.fclose(f))"
    )
    env = buffered("*.dat", BRIGADE_FAULT="buffer-eio:0")
    assert run(["python3", "-c", program], tmp_path, env).stdout == "True -1\n"


def test_a_file_system_that_is_really_full_is_told(tmp_path):
    program = "dd if=/dev/zero of=m/f.dat bs=1000 count=3000 2>&1; echo status $?"
    script = f"mkdir m && mount -t tmpfs -o size=1M none m && {program}"
    wrapped = ["unshare", "-rm", "sh", "-c", script]
    done = run(wrapped, tmp_path, buffered("*.dat:size=64K"))
    if "status" not in done.stdout:
        pytest.skip(f"no private mounts here: {done.stderr.strip()}")
    assert os.strerror(errno.ENOSPC) in done.stdout and "status 1" in done.stdout


def test_a_limit_of_the_size_of_files_is_met_at_the_call_itself(tmp_path):
    program = """
import os, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10050, resource.RLIM_INFINITY))
fd = os.open("f.dat", os.O_WRONLY | os.O_CREAT)
for i in range(200):
    try:
        n = os.write(fd, b"x" * 100)
        if n != 100: print(i, n)
    except OSError as e:
        print(i, e.errno)
        break
os.close(fd)
"""
    plain = run(["python3", "-c", program], tmp_path)
    found = run(["python3", "-c", program], tmp_path, buffered("*.dat"))
    assert plain.stdout == f"100 50\n101 {errno.EFBIG}\n"
    assert found.stdout == plain.stdout


def test_the_report_names_an_error_that_nobody_could_be_told(tmp_path):
    folder = tmp_path / "report"
    folder.mkdir()
    program = "import os; fd = os.open('f.dat', os.O_WRONLY | os.O_CREAT); os.write(fd, b'x')"
    env = buffered("*.dat", BRIGADE_FAULT="buffer-eio:0", BRIGADE_BUFFER_REPORT=str(folder))
    run(["python3", "-c", program], tmp_path, env)
    (entry,) = json.loads(next(folder.iterdir()).read_text())["files"]
    assert (entry["error"], entry["errors"]) == (errno.EIO, 1)
