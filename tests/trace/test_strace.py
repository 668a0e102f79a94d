"""What `strace -f` wrote, in its usual shapes, becomes a trace."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from brigade.errors import BrigadeError
from brigade.trace import flags, strace
from brigade.trace.events import Event, Trace

SHELL = "cat /etc/hostname | tr a b; cd /; readlink bin >/dev/null; cat no_such; exit 3"

#: Threads, an exec that others interrupt, a signal that restarts a read, a path with every escape.
WRITTEN = r"""
100 170000001.000001 execve("/usr/bin/app", ["app", "-x"], 0x7ffe /* 39 vars */) = 0 <0.000200>
100 170000001.001000 openat(AT_FDCWD, "/odd \"\t\\\303\244, (x)", O_RDONLY|O_CLOEXEC) = 3 <0.00001>
100 170000001.001100 read(3, "\"), 5) = 9, ", 64) = 12 <0.00001>
100 170000001.001150 dup2(3, 7) = 7 <0.00001>
100 170000001.001160 close(3) = 0 <0.00001>
100 170000001.001170 fstat(7, {st_mode=S_IFREG|0644, st_size=12, ...}) = 0 <0.00001>
100 170000001.001200 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0} <unfinished ...>
101 170000001.001210 newfstatat(AT_FDCWD, "no/such",  <unfinished ...>
100 170000001.001220 <... clone3 resumed> => {parent_tid=[101]}, 88) = 101 <0.000020>
101 170000001.001230 <... newfstatat resumed>0x7ffc, 0) = -1 ENOENT (No such file) <0.000020>
100 170000001.001300 read(0, 0x1, 10) = ? ERESTARTSYS (To be restarted if SA_RESTART) <0.000001>
100 170000001.001310 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=9} ---
100 170000001.001320 read(0, "", 10) = 0 <0.00001>
100 170000001.001350 mmap(NULL, 80, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f00 <0.00001>
100 170000001.001360 mmap(NULL, 300, PROT_READ, MAP_PRIVATE, 7</f<char 1:3>>, 0) = 0x7f00 <0.00001>
100 170000001.001370 readlink("/l", "/target", 4095) = 7 <0.00001>
100 170000001.001380 rename("/a", "/b") = 0 <0.00001>
100 170000001.001390 sendfile(1, 7, NULL, 100) = 12 <0.00001>
100 170000001.001400 openat(7, "below", O_RDONLY) = -1 ENOTDIR (Not a directory) <0.00001>
101 170000001.001500 read(7,  <unfinished ...>
100 170000001.001600 exit_group(4) = ?
101 170000001.001610 <... read resumed> <unfinished ...>) = ?
101 170000001.001620 +++ exited with 4 +++
100 170000001.001700 +++ exited with 4 +++
"""


def of_text(text: str, folder: Path) -> Trace:
    (folder / "out").write_text(text)
    return strace.load(folder / "out")


def run_strace(folder: Path, *options: str, script: str = SHELL) -> Trace:
    """strace's own output of a shell script; the folder of -ff files, if `options` make them."""
    out = folder / "x"
    subprocess.run(
        ["strace", "-f", *options, "-o", out, "sh", "-c", script],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return strace.load(folder if "-ff" in options else out)


def test_every_field_of_an_event_is_what_strace_wrote(tmp_path: Path) -> None:
    trace = of_text(WRITTEN, tmp_path)
    (process,) = trace.processes
    assert (process.pid, process.exe, process.argv) == (100, "/usr/bin/app", ["app", "-x"])
    assert (process.status, trace.start_ns) == (4, 170_000_001_000_001_000)
    odd = '/odd "\t\\ä, (x)'
    got = [(e.call, e.path, e.by_fd, e.error, e.result, e.flags, e.other) for e in process.events]
    close_exec = os.O_CLOEXEC
    assert got == [
        ("execve", "/usr/bin/app", False, 0, 0, 0, ""),
        ("openat", odd, False, 0, 3, close_exec, ""),
        ("read", odd, True, 0, 12, 0, ""),
        ("fstat", odd, True, 0, 0, 0, ""),
        ("newfstatat", "no/such", False, errno.ENOENT, -1, 0, ""),
        ("read", "", True, 0, 0, 0, ""),
        ("mmap", "/f", True, 0, 0x7F00, 300, ""),
        ("readlink", "/l", False, 0, 7, 0, "/target"),
        ("rename", "/a", False, 0, 0, 0, "/b"),
        ("sendfile", odd, True, 0, 12, 0, ""),
        ("openat", f"{odd}/below", False, errno.ENOTDIR, -1, 0, ""),
    ]
    assert process.events[1][:2] == (999_000, 10_000)
    assert {e.tid for e in process.events} == {100, 101}
    assert any("1 calls that did not end" in text for text in trace.mechanism.lost)


SHAPES = [
    *(["-ttt", "-T", "-y"], ["-tt", "-T", "-yy", "-s", "4096", "-v"], ["-t", "-n"], ["-r"]),
    *([], ["-i", "-x"], ["-r", "-tt"], ["-ff", "-ttt", "-y"], ["-ff", "-r"], ["-ff"]),
]


@pytest.mark.parametrize("options", SHAPES, ids=lambda words: " ".join(words) or "none")
def test_all_shapes_of_the_output_tell_the_same(tmp_path: Path, options: list[str]) -> None:
    trace = run_strace(tmp_path, *options)
    ended = [f"{os.path.basename(p.exe)} {p.status}" for p in trace.processes]
    assert sorted(ended) == ["cat 0", "cat 1", "readlink 0", "sh 3", *["sh None"] * 4, "tr 0"]
    shell = trace.processes[0]
    assert {p.parent for p in trace.processes[1:]} == {shell.pid}
    assert shell.events[0].call == "execve"
    link = next(p for p in trace.processes if p.exe.endswith("readlink"))
    assert (link.argv, link.cwd) == (["readlink", "bin"], "/")
    asked = next(e for e in link.events if e.kind == "link")
    assert (asked.path, asked.other, asked.result) == ("/bin", "usr/bin", 7)
    reads = [e for p, e in trace.events() if e.path == "/etc/hostname" and e.call == "read"]
    assert reads and all(e.by_fd for e in reads)
    times = [e.time_ns for e in shell.events]
    assert times == sorted(times)
    if "-y" in options:
        assert shell.cwd == str(tmp_path)


def test_the_counts_are_those_of_the_text(tmp_path: Path) -> None:
    """Lines are counted here the plain way, by their first word."""
    trace = run_strace(tmp_path, "-e", "trace=openat,execve,clone,vfork")
    text = (tmp_path / "x").read_text()
    for call in ("openat", "execve"):
        whole = text.count(f" {call}(")
        failed = sum("= -1 E" in line and f"{call}" in line for line in text.splitlines())
        found = [e for _, e in trace.events() if e.call == call]
        assert (len(found), sum(e.error > 0 for e in found)) == (whole, failed) != (0, 0)


def test_stderr_with_lines_of_attaching_is_understood(tmp_path: Path) -> None:
    done = subprocess.run(
        ["strace", "-f", "sh", "-c", "true; /bin/true; /bin/true"], capture_output=True, text=True
    )
    assert "attached" in done.stderr and "[pid" in done.stderr
    trace = of_text(done.stderr, tmp_path)
    named = [os.path.basename(p.exe) for p in trace.processes if p.status == 0]
    assert sorted(named) == ["sh", "true", "true"]


def test_midnight_does_not_turn_time_back(tmp_path: Path) -> None:
    text = '7 23:59:59.9 chdir("/") = 0 <0.1>\n7 00:00:00.1 stat("x", 0x1) = -1 EACCES (P) <0.1>\n'
    first, second = (e for _, e in of_text(text, tmp_path).events())
    assert second.time_ns - first.time_ns == 200_000_000
    assert (second.path, second.error) == ("/x", errno.EACCES)


def test_what_is_no_output_of_strace_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("hello\n")
    for path in (tmp_path / "out", tmp_path, tmp_path / "none"):
        with pytest.raises(BrigadeError) as caught:
            strace.load(path)
        assert str(path) in str(caught.value)


def test_an_event_has_the_kind_and_bytes_of_its_call() -> None:
    read = Event(0, 0, 1, "pread64", 0, 17, "/x", True)
    failed = read._replace(error=5, result=-1)
    assert (read.kind, read.bytes, failed.bytes) == ("read", 17, 0)


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("AT_SYMLINK_NOFOLLOW|AT_EMPTY_PATH", 0x1100),
        ("AT_SYMLINK_NOFOLLOW|0x8000", 0x8100),
        ("0x8000 /* AT_??? */", 0x8000),
        ("AT_EMPTY_PATH|0x10000 /* AT_??? */", 0x11000),
        ("0x1100 /* AT_SYMLINK_NOFOLLOW|AT_EMPTY_PATH */", 0x1100),
        ("017", 15),
        ("0", 0),
        ("AT_UNHEARD_OF", 0),
    ],
)
def test_flags_are_numbers_whatever_strace_says_of_those_it_does_not_know(word, number) -> None:
    assert flags.at_flags(word) == number
