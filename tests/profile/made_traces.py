"""Traces made by hand: a process is a text of calls, one a line.

stat  ENOENT /usr/lib/python311.zip
open  0      /usr/lib/python3.11/os.py
fread 832    /usr/lib/libm.so.6             by descriptor: bytes that it gave
"""

from __future__ import annotations

import errno

from brigade.profile.build import Built, build
from brigade.trace.events import Event, Mechanism, Trace, TracedProcess

CALLS = {
    "open": "openat", "stat": "newfstatat", "fstat": "newfstatat", "fread": "read",
    "fwrite": "write", "fmap": "mmap", "flist": "getdents64", "link": "readlink",
    "exec": "execve", "access": "access", "lstat": "lstat", "unlink": "unlink",
}  # fmt: skip
STEP_NS = 1_000_000  # from call to call
TOOK_NS = 100_000
MOUNTS = """\
21 1 8:1 / / rw - ext4 /dev/sda1 rw
22 21 0:5 / /proc rw - proc proc rw
23 21 0:6 / /dev/shm rw - tmpfs tmpfs rw
24 21 0:7 / /mnt/soft rw - nfs4 server:/soft rw
25 21 0:8 / /scratch rw - lustre mds@o2ib:/scratch rw
"""


def events(text: str, start_ns: int = 0, tid: int = 100) -> list[Event]:
    made = []
    for number, line in enumerate(filter(str.strip, text.splitlines())):
        word, answer, path, *rest = line.split()
        by_fd = word.startswith("f") and word in CALLS and word != "faccess"
        error = getattr(errno, answer, 0) if answer.startswith("E") else 0
        result = -1 if error else int(answer)
        made.append(
            Event(
                time_ns=start_ns + number * STEP_NS,
                took_ns=TOOK_NS,
                tid=tid,
                call=CALLS[word],
                error=error,
                result=result,
                path=path,
                by_fd=by_fd,
                flags=result if word == "fmap" else 0,
                other=rest[0] if rest else "",
            )
        )
    return made


def process(text: str = "", *, pid: int = 100, parent: int = 1, start_ns: int = 0, **more):
    """A process; `more` are fields of TracedProcess."""
    made = events(text, start_ns, pid)
    more.setdefault("rank", None)
    more.setdefault("exe", "/mnt/soft/app/bin/app")
    more.setdefault("argv", [more["exe"]])
    more.setdefault("cwd", "/scratch/run")
    more.setdefault("env", {"PATH": "/usr/bin:/bin"})
    more.setdefault("end_ns", start_ns + len(made) * STEP_NS)
    return TracedProcess(
        host=more.pop("host", "n0"), pid=pid, parent=parent, start_ns=start_ns, events=made, **more
    )


def trace(*processes: TracedProcess, mounts: str = MOUNTS) -> Trace:
    hosts = {one.host for one in processes} if mounts else ()
    return Trace(0, Mechanism("made"), list(processes), dict.fromkeys(hosts, mounts))


def built(*processes: TracedProcess, mounts: str = MOUNTS, **more) -> Built:
    more = {"command": ["app"], "program": ["app"], "launcher": None, **more}
    return build(trace(*processes, mounts=mounts), **more)


PYTHON = """
exec 0 /mnt/soft/py/bin/python3
open 3 /etc/ld.so.cache
open 3 /lib/x86_64-linux-gnu/libc.so.6
fread 832 /lib/x86_64-linux-gnu/libc.so.6
stat ENOENT /mnt/soft/py/bin/pyvenv.cfg
stat ENOENT /mnt/soft/py/lib/python311.zip
stat 0 /mnt/soft/py/lib/python3.11
stat 0 /mnt/soft/py/lib/python3.11
stat 0 /mnt/soft/py/lib/python3.11
open 3 /mnt/soft/py/lib/python3.11
flist 900 /mnt/soft/py/lib/python3.11
stat ENOENT /mnt/soft/py/lib/python3.11/encodings/__init__.abi3.so
stat ENOENT /mnt/soft/py/lib/python3.11/encodings/__init__.so
stat 0 /mnt/soft/py/lib/python3.11/encodings/__init__.py
open 3 /mnt/soft/py/lib/python3.11/encodings/__pycache__/__init__.cpython-311.pyc
fread 600 /mnt/soft/py/lib/python3.11/encodings/__pycache__/__init__.cpython-311.pyc
open 3 /scratch/run/app.py
fread 80 /scratch/run/app.py
stat 0 /mnt/soft/site
stat 0 /mnt/soft/site
stat 0 /mnt/soft/site
open 3 /mnt/soft/site
flist 70 /mnt/soft/site
stat 0 /mnt/soft/py/lib/python3.11
stat 0 /mnt/soft/py/lib/python3.11/json.py
open ENOENT /mnt/soft/py/lib/python3.11/__pycache__/json.cpython-311.pyc
open 3 /mnt/soft/py/lib/python3.11/json.py
fread 900 /mnt/soft/py/lib/python3.11/json.py
open 3 /scratch/run/input.dat
fread 4096 /scratch/run/input.dat
"""


def python(text: str = PYTHON, **more) -> TracedProcess:
    """A Python program that imports json, with PYTHONPATH=/mnt/soft/site."""
    more.setdefault("env", {"PYTHONPATH": "/mnt/soft/site", "PATH": "/usr/bin"})
    more.setdefault("argv", ["python3", "app.py"])
    return process(text, exe="/mnt/soft/py/bin/python3", **more)
