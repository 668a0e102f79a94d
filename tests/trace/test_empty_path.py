"""Calls that are given an empty path."""

from __future__ import annotations

import shutil
from pathlib import Path

from tracing import compile_c, straced, traced


def test_an_empty_path_names_nothing_unless_a_descriptor_stands_beside_it(tmp_path: Path) -> None:
    source = """
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <sys/stat.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    int main(void)
    {
        struct stat st;
        chdir("/usr");
        syscall(SYS_newfstatat, AT_FDCWD, "", &st, 0);
        openat(AT_FDCWD, "", O_RDONLY | O_DSYNC);
        access("", F_OK);
        return syscall(SYS_newfstatat, AT_FDCWD, "", &st, AT_EMPTY_PATH) |
               syscall(SYS_newfstatat, open("/etc", O_RDONLY), "", &st, AT_EMPTY_PATH);
    }
    """
    program = compile_c(source, tmp_path / "p")
    trace, done = traced(tmp_path, program)
    assert done.returncode == 0 and not trace.mechanism.lost
    last = [(e.path, e.by_fd, e.error) for e in trace.processes[0].events][-6:]
    wanted = [("", False, 2)] * 3 + [("/usr", True, 0), ("/etc", False, 0), ("/etc", True, 0)]
    assert sorted(last) == sorted(wanted)
    if shutil.which("strace"):
        again = straced(tmp_path, program).processes[0].events[-6:]
        assert [(e.path, e.by_fd, e.error) for e in again] == last
