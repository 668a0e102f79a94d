"""What a trace consists of: one event a system call, one process a program image.

`brigade.trace.native` reads what `brigade-trace` wrote, `brigade.trace.strace` what `strace -f`
wrote; both give a `Trace`, and everything after (profile, page, model) works on that alone.

What must stay true: times are nanoseconds since `Trace.start_ns`; paths are absolute, as the
program meant them (joined to its working directory or descriptor), with links, "." and ".." left
as they were; an event stands once in exactly one process.

An exec that worked is the first event of the image that it started. A call that a signal
interrupted and the kernel started again counts once; one whose end nobody saw is no event. What a
descriptor refers to and is no file has the kernel's name for it ("pipe:[123]", "socket:[7]"), so a
path that does not start with "/" is on no mount. Anonymous mmap is no event.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from brigade.trace.flags import AT_SYMLINK_NOFOLLOW

# The kinds of the reports. What each stands for at a metadata server is the model's business.
KINDS: dict[str, tuple[str, ...]] = {
    "open": ("open", "openat", "openat2", "creat"),
    "stat": (
        *("stat", "lstat", "fstat", "newfstatat", "statx", "access", "faccessat", "faccessat2"),
        *("statfs", "fstatfs", "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr"),
        "flistxattr",
    ),
    "read": ("read", "pread64", "readv", "preadv", "preadv2", "sendfile", "copy_file_range"),
    "map": ("mmap",),
    "list": ("getdents", "getdents64"),
    "link": ("readlink", "readlinkat"),
    "exec": ("execve", "execveat"),
    "write": ("write", "pwrite64", "writev", "pwritev", "pwritev2"),
    "change": (
        *("mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2"),
        *("link", "linkat", "symlink", "symlinkat", "truncate", "ftruncate", "chmod", "fchmod"),
        *("fchmodat", "chown", "lchown", "fchown", "fchownat", "utimensat", "mknod", "mknodat"),
        *("setxattr", "lsetxattr", "fsetxattr", "fsync", "fdatasync", "fallocate"),
    ),
    "folder": ("chdir", "fchdir"),
}
KIND_OF: dict[str, str] = {call: kind for kind, calls in KINDS.items() for call in calls}

# Calls that never follow a link at their path's end. Of fchownat and utimensat nothing is known.
_OF_THE_LINK = frozenset(
    (
        *("readlink", "readlinkat", "lstat", "lgetxattr", "llistxattr", "lsetxattr", "lchown"),
        *("mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2"),
        *("link", "linkat", "symlink", "symlinkat", "mknod", "mknodat"),
    )
)


class Event(NamedTuple):
    """One system call that named a file, or used a descriptor of one."""

    time_ns: int  # of its start
    took_ns: int  # until its end, what tracing costs included
    tid: int
    call: str  # the kernel's name: "openat"; its kind is KIND_OF[call]
    error: int  # errno, 0: it worked
    result: int  # what it returned: bytes of a read, descriptor of an open; -1 on error
    path: str  # of a call by descriptor: the file's; "" if not known
    by_fd: bool = False  # asked about a descriptor (fstat, read): no path was searched
    flags: int = 0  # of open, newfstatat, statx; mode of access, length of mmap
    other: str = ""  # second path of rename, link, symlink; target of readlink that worked

    @property
    def kind(self) -> str:
        return KIND_OF[self.call]

    @property
    def follows(self) -> bool:
        """Whether the call is about what a link at the path's end leads to, not about the link."""
        if self.call in ("newfstatat", "statx"):
            return not self.flags & AT_SYMLINK_NOFOLLOW
        if self.call in KINDS["open"]:
            return not self.flags & os.O_NOFOLLOW
        return self.call not in _OF_THE_LINK

    @property
    def bytes(self) -> int:
        """Bytes moved by a read or write, or mapped."""
        if self.error or self.kind not in ("read", "write", "map"):
            return 0
        return self.flags if self.kind == "map" else max(0, self.result)


@dataclass
class TracedProcess:
    """One program image: a pid between two execs. A child of fork is a process of its own, and
    has its parent's `exe` until it calls exec."""

    host: str
    pid: int
    parent: int  # pid
    rank: int | None  # the launcher's number; children of a rank have its number
    start_ns: int
    exe: str = ""  # resolved
    argv: list[str] = field(default_factory=list)
    cwd: str = ""
    env: dict[str, str] = field(default_factory=dict)  # only what decides searches
    entry_ns: int | None = None  # ld.so was done: the program's own entry point was reached
    end_ns: int | None = None
    status: int | None = None  # exit status, or -signal; None: replaced by exec, or still running
    events: list[Event] = field(default_factory=list)


@dataclass
class Mechanism:
    """How a trace was seen; every report says so."""

    name: str  # "seccomp", "ptrace", "strace"
    seen: list[str] = field(default_factory=list)  # sentences
    lost: list[str] = field(default_factory=list)  # sentences: what it could not see
    stops: int = 0  # how often a traced task was stopped
    stopped_ns: int = 0  # for how long, in all
    complete: bool = True  # False: of some program that was started not all was seen to its end


@dataclass
class Trace:
    """All processes of a traced job in the order of their start."""

    start_ns: int  # CLOCK_REALTIME
    mechanism: Mechanism
    processes: list[TracedProcess] = field(default_factory=list)
    mountinfo: dict[str, str] = field(default_factory=dict)  # host -> /proc/self/mountinfo

    def events(self) -> Iterator[tuple[TracedProcess, Event]]:
        for process in self.processes:
            for event in process.events:
                yield process, event
