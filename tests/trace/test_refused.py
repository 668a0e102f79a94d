"""What refuses, limits or nests tracing: programs run as ever, and the trace says what it lost."""

from __future__ import annotations

import json
import os
import platform
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from tracing import TRACER, compile_c, paths, traced, whole

from brigade.doctor.verdict import judge
from brigade.paths import native as part
from brigade.trace import native

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="int 0x80 is x86-64's")
NOBODY = 65534

#: Executes argv[2...] with one system call (argv[1]) failing with EPERM.
REFUSE = """
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(argv[1]), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    (void)argc;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program)) return 99;
    execvp(argv[2], argv + 2);
    return 98;
}
"""


def number(call: str, folder: Path) -> str:
    """The number of a system call on this machine."""
    source = f"""
    #include <stdio.h>
    #include <sys/syscall.h>
    int main(void) {{ return printf("%d", SYS_{call}) < 0; }}
    """
    return subprocess.check_output([compile_c(source, folder / "number")], text=True)


def run_refusing(folder: Path, call: str) -> tuple[str, str]:
    """How `cat` was traced where a system call is forbidden, and what it printed."""
    (folder / "trace").mkdir()
    (folder / "data").write_text("as ever\n")
    refuse = compile_c(REFUSE, folder / "refuse")
    words = [refuse, number(call, folder), TRACER, "--out", folder / "trace", "cat", "data"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return whole(folder / "trace").mechanism.name, done.stdout


def test_where_filters_are_forbidden_every_call_is_stopped(tmp_path: Path) -> None:
    assert run_refusing(tmp_path, "seccomp") == ("ptrace", "as ever\n")
    assert f"{tmp_path}/data" in paths(native.load(tmp_path / "trace"), "openat")


def test_where_memory_can_only_be_read_by_words_paths_are_whole(tmp_path: Path) -> None:
    assert run_refusing(tmp_path, "process_vm_readv") == ("seccomp", "as ever\n")
    assert f"{tmp_path}/data" in paths(native.load(tmp_path / "trace"), "openat")


def test_where_ptrace_is_forbidden_the_program_runs_untraced(tmp_path: Path) -> None:
    assert run_refusing(tmp_path, "ptrace") == ("none", "as ever\n")
    (lost,) = native.load(tmp_path / "trace").mechanism.lost
    assert "could not be traced" in lost and "ptrace" in lost


def test_the_doctor_says_whether_programs_can_be_traced(tmp_path: Path) -> None:
    refuse = compile_c(REFUSE, tmp_path / "refuse")
    probe = [str(part("brigade-rank")), "--probe", "/dev/shm"]
    free = json.loads(subprocess.check_output(probe, timeout=60))
    assert free["trace"] is True and not any("traced" in hint for hint in judge(free).hints)
    words = [refuse, number("ptrace", tmp_path), *probe]
    refused = json.loads(subprocess.check_output(words, timeout=60))
    assert refused["trace"] == "Operation not permitted"
    assert any("cannot be traced" in hint for hint in judge(refused).hints)


def test_a_program_that_has_a_tracer_already_says_so(tmp_path: Path) -> None:
    """brigade-trace under strace, and under itself."""
    inner, outer = tmp_path / "inner", tmp_path / "trace"
    inner.mkdir()
    tracer = [TRACER, "--out", inner, "echo", "hello"]
    strace = ["strace", "-f", "-o", "/dev/null", *tracer]
    assert subprocess.check_output(strace, text=True, timeout=60) == "hello\n"
    trace, done = traced(tmp_path, *tracer)
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert any(p.exe.endswith("/echo") for p in trace.processes)
    says = whole(inner).mechanism
    assert says.name == "none" and "debugger" in says.lost[0]
    assert outer.is_dir()


def test_a_program_with_a_filter_of_its_own_keeps_it(tmp_path: Path) -> None:
    refuse = compile_c(REFUSE, tmp_path / "refuse")
    words = [refuse, number("mkdir", tmp_path), "sh", "-c", "mkdir new || cat data"]
    (tmp_path / "data").write_text("as ever\n")
    plain = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    trace, done = traced(tmp_path, *words, cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("as ever\n", plain.stderr, 0)
    assert "not permitted" in plain.stderr
    assert f"{tmp_path}/data" in paths(trace, "openat")


#: cap_net_raw+ep, as `setcap` writes it.
CAPABLE = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)


@ROOT
@pytest.mark.parametrize("mode", [0o4755, 0o4711, 0o755], ids=oct)
def test_an_ordinary_user_is_traced_and_what_set_uid_loses_is_said(
    tmp_path: Path, mode: int
) -> None:
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    tmp_path.chmod(0o755)
    for folder in list(tmp_path.parents)[:3]:
        if folder.stat().st_uid == 0 and str(folder) != "/tmp":
            folder.chmod(folder.stat().st_mode | 0o011)
    own = shutil.copy(shutil.which("id"), tmp_path / "id")
    os.chmod(own, mode)
    by = "set-uid or set-gid bit"
    if mode == 0o755:
        by = "file capabilities"
        try:
            os.setxattr(own, "security.capability", CAPABLE)
        except OSError as error:
            pytest.skip(f"no file capabilities here: {error}")
    tool = shutil.copy(TRACER, tmp_path / "brigade-trace")  # where that user may execute it
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace").chmod(0o777)
    words = [tool, "--out", tmp_path / "trace", "sh", "-c", f"{own} -u; cat {tmp_path}/none"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, **user)
    assert done.stdout == f"{NOBODY}\n"
    trace = whole(tmp_path / "trace")
    assert trace.mechanism.name == "seccomp"
    assert f"{tmp_path}/none" in paths(trace, "openat")
    assert f"the rights that {own} has by its {by}" in trace.mechanism.lost


@ROOT
@pytest.mark.parametrize("options", [(), ("--all-stops",)], ids=["filter", "all-stops"])
def test_paths_that_a_program_lets_nobody_read_are_counted_as_lost(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    source = """
    #include <fcntl.h>
    #include <sys/prctl.h>
    int main(void)
    {
        prctl(PR_SET_DUMPABLE, 0);
        open((char *)1, O_RDONLY); /* its own mistake is no loss */
        return open("/kept/secret", O_RDONLY) != -1;
    }
    """
    program = compile_c(source, tmp_path / "p")
    tool = shutil.copy(TRACER, tmp_path / "brigade-trace")
    out = tmp_path / "trace"
    out.mkdir()
    for folder, mode in (out, 0o777), (tmp_path, 0o755):
        folder.chmod(mode)
    words = [tool, "--out", out, *options, program]
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    assert subprocess.run(words, timeout=60, **user).returncode == 0
    trace = whole(out)
    assert paths(trace, "openat")[-2:] == ["", ""]
    says = "the paths of 1 calls: their programs let nobody read them"
    assert trace.mechanism.lost == [says]


def test_a_path_that_is_too_long_for_the_kernel_is_no_loss(tmp_path: Path) -> None:
    source = """
    #include <errno.h>
    #include <fcntl.h>
    #include <string.h>
    int main(void)
    {
        char path[5000];
        memset(path, '/', sizeof path);
        path[sizeof path - 1] = 0;
        return open(path, O_RDONLY) != -1 || errno != ENAMETOOLONG;
    }
    """
    trace, done = traced(tmp_path, compile_c(source, tmp_path / "p"))
    assert done.returncode == 0 and paths(trace, "openat")[-1] == ""
    assert trace.mechanism.lost == []


def test_more_threads_than_descriptors_cost_no_path(tmp_path: Path) -> None:
    source = """
    #include <pthread.h>
    #include <unistd.h>
    static pthread_barrier_t all;
    static void *look(void *unused)
    {
        pthread_barrier_wait(&all);
        access("none", F_OK);
        pthread_barrier_wait(&all);
        return unused;
    }
    int main(void)
    {
        pthread_t threads[100];
        pthread_barrier_init(&all, 0, 100);
        for (int i = 0; i < 100; i++) pthread_create(&threads[i], 0, look, 0);
        for (int i = 0; i < 100; i++) pthread_join(threads[i], 0);
        return execl("/bin/cat", "cat", "/dev/null", (char *)0);
    }
    """
    program = compile_c(source, tmp_path / "p", "-pthread")
    front = ("sh", "-c", 'ulimit -n 40; exec "$@"', "sh")
    trace, done = traced(tmp_path, program, front=front, cwd=tmp_path)
    assert done.returncode == 0 and not trace.mechanism.lost
    assert paths(trace, "access", "faccessat").count(f"{tmp_path}/none") == 100
    assert trace.processes[1].argv == ["cat", "/dev/null"]


@ROOT
def test_processes_in_a_namespace_of_their_own_are_followed(tmp_path: Path) -> None:
    script = "echo $$; cat no_such; cd /; cat none"
    words = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script]
    trace, done = traced(tmp_path, *words, cwd=tmp_path)
    assert done.stdout == "1\n"
    assert {f"{tmp_path}/no_such", "/none"} <= set(paths(trace, "openat"))
    assert all(p.pid > 1 for p in trace.processes)


@X86
@pytest.mark.parametrize("options", [(), ("--all-stops",)], ids=["filter", "all-stops"])
def test_calls_of_another_architecture_go_through_and_are_counted_as_lost(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    source = """
    #include <fcntl.h>
    int main(void)
    {
        int pid;
        for (int i = 0; i < 3; i++)
            __asm__ volatile("int $0x80" : "=a"(pid) : "a"(20) : "memory");
        return open("/after/it", O_RDONLY) != -1 || pid <= 1;
    }
    """
    trace, done = traced(tmp_path, compile_c(source, tmp_path / "p"), options=options)
    if done.returncode == -11:
        pytest.skip("this kernel has no i386 calls")
    assert done.returncode == 0
    assert "/after/it" in paths(trace)
    assert trace.mechanism.lost == ["3 calls in i386 or x32 mode"]


@pytest.mark.parametrize("options", [(), ("--all-stops",)], ids=["filter", "all-stops"])
def test_rings_of_io_uring_are_said_to_be_lost(tmp_path: Path, options: tuple[str, ...]) -> None:
    source = """
    #include <sys/syscall.h>
    #include <unistd.h>
    int main(void) { return syscall(425, 0, (void *)0) != -1; }
    """
    trace, done = traced(tmp_path, compile_c(source, tmp_path / "p"), options=options)
    assert done.returncode == 0
    says = "what programs did through io_uring: 1 rings were asked for"
    assert trace.mechanism.lost == [says]


def test_a_full_disk_ends_the_trace_and_not_the_program(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk."""
    words = ["sh", "-c", f"ulimit -f 8; exec {TRACER} --out {tmp_path} find /usr/include"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    plain = subprocess.run(["find", "/usr/include"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    trace = native.load(tmp_path)
    assert 0 < sum(len(p.events) for p in trace.processes) < 200
    assert any("no room for more" in text for text in trace.mechanism.lost)
    (file,) = tmp_path.glob("*.trace")
    assert file.read_bytes()[-1:] == b" ", "which tells it from one whose tracer was killed"
