"""Where a system call has its paths and descriptors: the argument numbers of each call.

`src/trace/calls.def` says the same to the tracer; tests/trace/test_shapes.py compares them.
"""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    """Argument numbers, -1: it has none. `fd` is what a relative `path` starts from, or, without
    a path, the file itself."""

    fd: int = -1
    path: int = -1
    flags: int = -1
    other_fd: int = -1
    other: int = -1


_BY_FD = (
    *("fstat", "fstatfs", "fgetxattr", "flistxattr", "read", "pread64", "readv", "preadv"),
    *("preadv2", "copy_file_range", "getdents", "getdents64", "write", "pwrite64", "writev"),
    *("pwritev", "pwritev2", "ftruncate", "fchmod", "fchown", "fsetxattr", "fsync", "fdatasync"),
    *("fallocate", "fchdir"),
)
_BY_PATH = (
    *("creat", "stat", "lstat", "statfs", "getxattr", "lgetxattr", "listxattr", "llistxattr"),
    *("execve", "mkdir", "rmdir", "unlink", "truncate", "chmod", "chown", "lchown", "mknod"),
    *("setxattr", "lsetxattr", "chdir"),
)
_BY_AT = (*("execveat", "mkdirat", "unlinkat", "fchmodat", "fchownat", "utimensat", "mknodat"),)

SHAPES: dict[str, Shape] = {
    **{call: Shape(fd=0) for call in _BY_FD},
    **{call: Shape(path=0) for call in _BY_PATH},
    **{call: Shape(fd=0, path=1) for call in _BY_AT},
    "open": Shape(path=0, flags=1),
    "openat": Shape(fd=0, path=1, flags=2),
    "openat2": Shape(fd=0, path=1, flags=2),  # the flags are the first word of a struct
    "newfstatat": Shape(fd=0, path=1, flags=3),
    "statx": Shape(fd=0, path=1, flags=2),
    "access": Shape(path=0, flags=1),
    "faccessat": Shape(fd=0, path=1, flags=2),
    "faccessat2": Shape(fd=0, path=1, flags=2),
    "sendfile": Shape(fd=1),
    "mmap": Shape(fd=4, flags=1),
    "readlink": Shape(path=0, other=1),
    "readlinkat": Shape(fd=0, path=1, other=2),
    "rename": Shape(path=0, other=1),
    "renameat": Shape(fd=0, path=1, other_fd=2, other=3),
    "renameat2": Shape(fd=0, path=1, other_fd=2, other=3),
    "link": Shape(path=0, other=1),
    "linkat": Shape(fd=0, path=1, other_fd=2, other=3),
    "symlink": Shape(path=1, other=0),  # the path is the link's, `other` what it leads to
    "symlinkat": Shape(fd=1, path=2, other=0),
}
