"""Where the kernel has no PTRACE_GET_SYSCALL_INFO (before Linux 5.3), registers tell the same."""

from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

import pytest
from test_tracer import BOTH, KINDS_OF_TASKS
from tracing import compile_c, counts, environment, traced

from brigade.trace.events import Trace

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="there nothing but that call tells"
)

#: A kernel that does not know one call, with one first argument.
REFUSE = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define LOOK(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define UNLESS(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 1, 0)
#define SAY(what) BPF_STMT(BPF_RET | BPF_K, what)
static int refuse(unsigned number, unsigned first, unsigned error)
{
    struct sock_filter steps[] = {
        LOOK(offsetof(struct seccomp_data, nr)), UNLESS(number), SAY(SECCOMP_RET_ALLOW),
        LOOK(offsetof(struct seccomp_data, args)), UNLESS(first), SAY(SECCOMP_RET_ALLOW),
        SAY(SECCOMP_RET_ERRNO | error),
    };
    struct sock_fprog all = {sizeof steps / sizeof *steps, steps};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}
"""
#: Executes a program in front of which that request is refused.
REFUSES = f"""{REFUSE}
int main(int argc, char **argv)
{{
    if (refuse(SYS_ptrace, 0x420e, EIO))
        return 111;
    execv(argv[1], argv + 1);
    return 112;
}}
"""
#: Calls that fail as one does that is unknown, which is what registers say where a call begins.
ODD_ENDS = f"""{REFUSE}
static void ask(void)
{{
    for (int i = 0; i < 3; i++) {{
        syscall(SYS_openat, AT_FDCWD, "/not/there", O_RDONLY);
        syscall(SYS_readlinkat, 77, "unknown", "", 0); /* ENOSYS */
        syscall(SYS_openat, AT_FDCWD, "/not/there/either", O_RDONLY);
        syscall(SYS_renameat2, AT_FDCWD, "/not/a", AT_FDCWD, "/not/b", 1 << 20); /* EINVAL */
    }}
}}
int main(void)
{{
    if (refuse(SYS_readlinkat, 77, ENOSYS))
        return 111;
    ask();
    return 5;
}}
"""


@BOTH
@pytest.mark.parametrize("name", ["tasks", "odd ends", "python"])
def test_what_is_seen_is_the_same(tmp_path: Path, name: str, options: tuple[str, ...]) -> None:
    refuses = compile_c(REFUSES, tmp_path / "refuses")
    made = {"tasks": (KINDS_OF_TASKS, "-pthread"), "odd ends": (ODD_ENDS,)}.get(name)
    program: list[str | Path] = [sys.executable, "-I", "-c", "import json, subprocess, threading"]
    if made:
        program = [compile_c(made[0], tmp_path / "p", *made[1:])]
    new, done = traced(tmp_path, *program, options=options, env=environment())
    (tmp_path / "old").mkdir()
    old, old_done = traced(
        tmp_path / "old", *program, options=options, front=(refuses,), env=environment()
    )
    assert (old_done.returncode, old_done.stdout) == (done.returncode, done.stdout), old_done
    assert counts(old) == counts(new) and sum(counts(new).values()) > 5
    assert told(old) == told(new)


def told(trace: Trace) -> list[tuple[str, str, int]]:
    """Each call, without the numbers of pipes."""
    return [(e.call, re.sub(r"\[\d+\]", "", e.path), e.error) for _, e in trace.events()]
