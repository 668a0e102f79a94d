"""brigade-trace sees every call, and the program behaves as without it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from processes import field, until
from tracing import TRACER, compile_c, counts, environment, is_traced, paths, straced, traced, whole

BOTH = pytest.mark.parametrize("options", [(), ("--all-stops",)], ids=["filter", "all-stops"])

#: Opens one name from each of: the leader, a thread, a vfork, a fork; the thread then executes.
KINDS_OF_TASKS = """
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *thread(void *path)
{
    open("/by/thread", O_RDONLY);
    pid_t child = vfork();
    if (child == 0) { open("/by/vfork", O_RDONLY); _exit(3); }
    waitpid(child, NULL, 0);
    if (fork() == 0) { open("/by/fork", O_RDONLY); kill(getpid(), 9); }
    wait(NULL);
    execl(path, "told", "again", (char *)NULL);
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t t;
    if (argc == 2) { open("/by/exec", O_RDONLY); puts(argv[0]); return 4; }
    open("/by/leader", O_RDONLY);
    pthread_create(&t, NULL, thread, argv[0]);
    for (;;) pause();
}
"""


@BOTH
def test_threads_forks_and_an_exec_by_a_thread_are_followed(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    program = compile_c(KINDS_OF_TASKS, tmp_path / "p", "-pthread")
    trace, done = traced(tmp_path, program, options=options)
    assert (done.returncode, done.stdout) == (4, "told\n")
    asked = [(p, e) for p, e in trace.events() if e.path.startswith("/by/")]
    assert [e.path[4:] for _, e in asked] == ["leader", "thread", "vfork", "fork", "exec"]
    by = {e.path[4:]: p for p, e in asked}
    assert by["leader"] is by["thread"]
    assert by["exec"] is not by["leader"] and by["exec"].pid == by["leader"].pid
    assert (by["exec"].status, by["vfork"].status, by["fork"].status) == (4, 3, -9)
    assert by["leader"].status is None and by["leader"].end_ns == by["exec"].start_ns
    assert by["vfork"].parent == by["fork"].parent == by["leader"].pid
    assert (by["exec"].argv, by["exec"].exe) == (["told", "again"], str(program))
    assert by["exec"].events[0].call == "execve"
    assert {e.tid for _, e in asked if e.path == "/by/thread"} != {by["leader"].pid}


@BOTH
def test_many_short_processes_are_all_seen(tmp_path: Path, options: tuple[str, ...]) -> None:
    script = "i=0; while [ $i -lt 60 ]; do /bin/true & /bin/true; i=$((i+1)); done; wait"
    trace, done = traced(tmp_path, "sh", "-c", script, options=options)
    assert done.returncode == 0
    ended = Counter((os.path.basename(p.exe), p.status) for p in trace.processes)
    assert ended["true", 0] == 120 and sum(p.argv[0] == "sh" for p in trace.processes) == 121
    assert len({p.pid for p in trace.processes}) == 121
    assert all(p.end_ns is not None for p in trace.processes)


def test_every_field_is_what_the_program_did(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("0123456789")
    (tmp_path / "link").symlink_to("data")
    script = """if True:
        import os, mmap
        fd = os.open("data", os.O_RDONLY)
        os.read(fd, 4), os.pread(fd, 100, 8)
        mmap.mmap(fd, 10, prot=mmap.PROT_READ)
        here = os.open(".", os.O_RDONLY)
        os.chdir("/")
        os.stat("odd\\t\\n\\\\", dir_fd=here) if os.access("no such", os.W_OK) else None
        try: os.stat("odd\\t\\n\\\\", dir_fd=here)
        except OSError: pass
        os.readlink("link", dir_fd=here)
        os.rename("data", "/TMP/b", src_dir_fd=here)
        os.symlink("to", "/TMP/c")
        os.listdir(here)
        os.write(1, b"hello")
        os.fstat(0)
    """.replace("/TMP", str(tmp_path))
    at = os.readlink("/usr/bin/python3")
    words = ["/usr/bin/python3", "-I", "-S", "-c", script]
    trace, done = traced(tmp_path, *words, cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert (done.stdout, done.stderr) == ("hello", "")
    (process,) = trace.processes
    assert (os.path.basename(process.exe), process.argv) == (at, words)
    assert process.cwd == str(tmp_path)
    assert process.env["PATH"] == os.environ["PATH"]
    own = process.events[[e.path for e in process.events].index(f"{tmp_path}/data") :]
    t = str(tmp_path)
    got = {(e.call, e.path, e.by_fd, e.error, e.result if e.kind != "map" else 0, e.flags, e.other)
           for e in own}  # fmt: skip
    assert got >= {
        ("openat", f"{t}/data", False, 0, 3, os.O_CLOEXEC, ""),
        ("read", f"{t}/data", True, 0, 4, 0, ""),
        ("pread64", f"{t}/data", True, 0, 2, 0, ""),
        ("mmap", f"{t}/data", True, 0, 0, 10, ""),
        ("chdir", "/", False, 0, 0, 0, ""),
        ("access", "/no such", False, 2, -1, os.W_OK, ""),
        ("newfstatat", f"{t}/odd\t\n\\", False, 2, -1, 0, ""),
        ("readlinkat", f"{t}/link", False, 0, 4, 0, "data"),
        ("renameat", f"{t}/data", False, 0, 0, 0, f"{t}/b"),
        ("symlink", f"{t}/c", False, 0, 0, 0, "to"),
    }
    # how os.fstat() asks is libc's choice
    asked = (("newfstatat", 0x1000), ("fstat", 0))
    assert got & {(call, "/dev/null", True, 0, 0, flags, "") for call, flags in asked}
    listed = [e for e in own if e.kind == "list"]
    assert [e.path for e in listed] == [t, t] and listed[-1].result == 0 < listed[0].result
    pipe = next(e for e in own if e.call == "write")
    assert pipe.path.startswith("pipe:[") and pipe.bytes == 5
    times = [e.time_ns for e in process.events]
    assert times == sorted(times) and all(e.took_ns > 0 for e in process.events)


@BOTH
def test_signals_and_stops_are_the_programs_own(tmp_path: Path, options: tuple[str, ...]) -> None:
    script = "trap 'echo usr1' USR1; kill -USR1 $$; echo up; read line; echo $line; kill -TERM $$"
    (tmp_path / "trace").mkdir()
    child = subprocess.Popen(
        [TRACER, "--out", tmp_path / "trace", *options, "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert [child.stdout.readline() for _ in range(2)] == ["usr1\n", "up\n"]
    child.send_signal(signal.SIGSTOP)
    until(lambda: field(child.pid, "State")[0] in "tT")
    stopped, status = os.waitpid(child.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGSTOP
    child.send_signal(signal.SIGCONT)
    assert child.communicate("word\n", timeout=60)[0] == "word\n"
    assert child.returncode == -signal.SIGTERM
    assert whole(tmp_path / "trace").processes[0].status == -signal.SIGTERM


def test_the_programs_process_number_and_parent_are_those_of_the_tracer(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    script = "echo $$ $PPID; ls -l /proc/self/fd | wc -l; wait; echo $?"
    words = ["sh", "-c", script]
    child = subprocess.Popen([TRACER, "--out", tmp_path / "trace", *words], stdout=subprocess.PIPE)
    out = child.communicate(timeout=60)[0].split()
    plain = subprocess.run(words, stdout=subprocess.PIPE).stdout.split()
    assert out[:2] == [str(child.pid).encode(), str(os.getpid()).encode()]
    assert out[2:] == plain[2:]


def test_a_daemon_does_not_hold_the_job_up_and_is_traced_to_its_end(tmp_path: Path) -> None:
    script = "(read x <gate; cat late) </dev/null >/dev/null 2>&1 & exit 6"
    os.mkfifo(tmp_path / "gate")
    (tmp_path / "trace").mkdir()
    words = [TRACER, "--out", tmp_path / "trace", "setsid", "sh", "-c", script]
    assert subprocess.run(words, cwd=tmp_path, stdout=subprocess.PIPE, timeout=60).returncode == 6
    (file,) = (tmp_path / "trace").glob("*.trace")
    assert not file.read_bytes().endswith(b"\nZ\n")
    with open(tmp_path / "gate", "w") as gate:
        gate.write("go\n")
    assert f"{tmp_path}/late" in paths(whole(tmp_path / "trace"), "openat")


def test_arguments_and_paths_of_any_length_are_kept(tmp_path: Path) -> None:
    many = [f"{n:04}" + "x" * 96 for n in range(2000)]
    deep = "/" + "/".join(["d" * 200] * 20)  # 4020 bytes: the kernel takes it
    trace, done = traced(tmp_path, "/bin/ls", deep, *many)
    assert done.returncode == 2
    process = trace.processes[0]
    assert process.argv == ["/bin/ls", deep, *many]
    assert deep in paths(trace)


def test_the_exit_codes_of_a_shell_say_what_could_not_be_started(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no program")
    for words, code in (["no-such-program"], 127), ([str(tmp_path / "plain")], 126):
        trace, done = traced(tmp_path, *words)
        assert done.returncode == code and words[0] in done.stderr
        assert trace.processes == []
    script = tmp_path / "script"
    script.write_text("exit 9\n")  # no #!: as execvp, a shell reads it
    script.chmod(0o755)
    assert traced(tmp_path, script)[1].returncode == 9
    assert subprocess.run([TRACER], capture_output=True).returncode == 2
    assert b"--out FOLDER" in subprocess.check_output([TRACER, "--help"])


def test_what_is_not_on_the_search_path_is_not_started_from_the_working_directory(
    tmp_path: Path,
) -> None:
    script = tmp_path / "here"
    script.write_text("#!/bin/sh\necho started\n")
    script.chmod(0o755)
    for places, code in (("/bin", 127), ("/bin:", 0)):
        done = subprocess.run(
            [TRACER, "--out", tmp_path, "here"], env={"PATH": places}, cwd=tmp_path,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == code, done
        assert done.stdout == ("" if code else "started\n")


def test_a_folder_that_is_not_there_leaves_the_program_untraced(tmp_path: Path) -> None:
    words = [TRACER, "--out", tmp_path / "none", "echo", "hello"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert "untraced" in done.stderr


@BOTH
def test_kill_minus_nine_of_the_tracer(tmp_path: Path, options: tuple[str, ...]) -> None:
    """With the filter the program must not go on: its calls would fail with ENOSYS."""
    (tmp_path / "trace").mkdir()
    words = [TRACER, "--out", tmp_path / "trace", *options, "sh", "-c", "read x; cat data"]
    child = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    (tmp_path / "data").write_text("as ever\n")
    (file,) = until(lambda: list((tmp_path / "trace").glob("*.trace")))
    until(lambda: b"openat" in file.read_bytes())
    os.kill(until(lambda: is_traced(child.pid)), signal.SIGKILL)
    until(lambda: not is_traced(child.pid))
    try:
        out = child.communicate("go\n", timeout=60)[0]
    except BrokenPipeError:
        out = child.stdout.read()
    ended = child.wait(60)
    assert (ended, out) == ((0, "as ever\n") if options else (-signal.SIGKILL, ""))
    trace = native_load(tmp_path / "trace")
    assert paths(trace) and any("tracer was killed" in text for text in trace.mechanism.lost)


def native_load(folder: Path):
    from brigade.trace import native

    return native.load(folder)


@BOTH
def test_what_is_restarted_counts_once_and_what_never_ends_not_at_all(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    source = """
    #include <signal.h>
    #include <unistd.h>
    static void nothing(int n) { (void)n; }
    int main(void)
    {
        int ends[2];
        char byte;
        struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
        sigaction(SIGUSR1, &action, NULL);
        if (pipe(ends)) return 1;
        if (fork() == 0) {
            usleep(100000); kill(getppid(), SIGUSR1); usleep(100000);
            return write(ends[1], "x", 1) != 1;
        }
        if (read(ends[0], &byte, 1) != 1) return 2;
        ualarm(100000, 0);
        return (int)read(ends[0], &byte, 1);
    }
    """
    program = compile_c(source, tmp_path / "p")
    trace, done = traced(tmp_path, program, options=options)
    assert done.returncode == -signal.SIGALRM
    pipes = [e for _, e in trace.events() if e.path.startswith("pipe:") and e.call == "read"]
    assert [(e.error, e.result) for e in pipes] == [(0, 1)]
    assert pipes[0].took_ns > 50_000_000


@pytest.mark.parametrize("closed", ["0<&-", "0<&- 1>&-", "0<&- 2>&-", "1>&- 2>&-"])
def test_a_program_whose_streams_are_closed_is_traced_as_any(tmp_path: Path, closed: str) -> None:
    """It also finds the same numbers free as without a tracer."""
    source = """
    #include <fcntl.h>
    #include <unistd.h>
    int main(void) { access("/it/is/there", F_OK); return 10 + dup(open("/", O_RDONLY)); }
    """
    program = compile_c(source, tmp_path / "p")
    plain = subprocess.run(["sh", "-c", f'exec "$0" {closed}', program], timeout=60)
    script = f'exec "$@" {closed}'
    trace, done = traced(tmp_path, program, front=("sh", "-c", script, "sh"), capture_output=False)
    assert done.returncode == plain.returncode
    assert "/it/is/there" in paths(trace) and not trace.mechanism.lost


def test_without_a_rank_in_the_environment_there_is_none(tmp_path: Path) -> None:
    trace, _ = traced(tmp_path, "true", env={"PATH": "/bin"})
    assert trace.processes[0].rank is None
    trace, _ = traced(tmp_path, "sh", "-c", "/bin/true; :", env={"PATH": "/bin", "PMIX_RANK": "5"})
    assert {p.rank for p in trace.processes} == {None, 5} != {p.rank for p in trace.processes[1:]}
    inherited = {"PATH": "/bin", "SLURM_PROCID": "0", "BRIGADE_RANK": "2"}
    assert traced(tmp_path, "true", env=inherited)[0].processes[-1].rank == 2


def test_calls_paths_and_flags_are_those_that_strace_names(tmp_path: Path) -> None:
    """Files that have been removed, memory with a descriptor, links, folders left and entered."""
    script = """if True:
        import os, json
        fd = os.open("gone", os.O_CREAT | os.O_RDWR)
        os.unlink("gone")
        os.write(fd, b"x")
        memory = os.memfd_create("memory")
        os.write(memory, b"yy")
        os.mkdir("new"); os.chdir("new"); os.symlink("/etc", "link")
        os.rename("link", "../moved"); os.readlink("../moved")
        os.listdir("../moved/ssl"); os.chdir("../moved"); os.stat("hostname"); os.access(".", 7)
        os.rmdir(os.path.join(os.environ["TOP"], "new")); os.unlink(os.environ["TOP"] + "/moved")
        os.open("nothing", os.O_RDONLY, dir_fd=os.open("/", os.O_RDONLY))
    """
    words = ["/usr/bin/python3", "-I", "-c", script]
    where = {"cwd": tmp_path, "env": environment(TOP=str(tmp_path))}
    got, wanted = traced(tmp_path, *words, **where)[0], straced(tmp_path, *words, **where)

    def told(trace):
        own = [e for _, e in trace.events() if e.path[:1] == "/" or e.path.startswith("memfd:")]
        number = re.compile(r"^/proc/\d+/")  # newer libffis ask for the maps of their process
        return Counter(
            (e.call, e.error, number.sub("/proc/PID/", e.path), e.by_fd, e.flags, e.other)
            for e in own
        )

    assert told(got) == told(wanted)
    named = {e.path for _, e in got.events()}
    assert {f"{tmp_path}/gone", "memfd:memory", "/nothing", f"{tmp_path}/new/../moved"} <= named


def test_the_counts_of_a_program_are_those_of_strace(tmp_path: Path) -> None:
    words = ["/usr/bin/python3", "-c", "import json, subprocess; subprocess.run(['true'])"]
    env = environment()
    wanted = [counts(straced(tmp_path, *words, env=env)) for _ in range(2)]
    got, _ = traced(tmp_path, *words, env=env)
    assert wanted[0] == wanted[1] == counts(got)


@BOTH
def test_signals_while_it_is_taken_do_not_hold_the_program_up(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Each stops it, and the tracer too has to wait for it then."""
    (tmp_path / "trace").mkdir()
    words = [TRACER, "--out", tmp_path / "trace", *options, "sh", "-c", "exit 5"]
    for _ in range(10):
        child = subprocess.Popen(words)
        end = time.monotonic() + 0.02
        while time.monotonic() < end:
            child.send_signal(signal.SIGWINCH)
        assert ended(child) == 5


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_at_any_moment_of_its_start_ends_the_program(tmp_path: Path, signum: int) -> None:
    (tmp_path / "trace").mkdir()
    for i in range(80):
        child = subprocess.Popen([TRACER, "--out", tmp_path / "trace", "sleep", "100"])
        time.sleep(i * 5e-5)
        child.send_signal(signum)
        assert ended(child) == -signum


def ended(child: subprocess.Popen[bytes]) -> int:
    """How it ends; a program that does not is ended with its tracer."""
    try:
        return child.wait(20)
    except subprocess.TimeoutExpired:
        os.kill(is_traced(child.pid), signal.SIGKILL)
        child.kill()
        child.wait()
        raise


def test_a_search_path_with_tokens_reaches_the_program_as_it_was(tmp_path: Path) -> None:
    """It has another name while a static program's C library starts, which may crash at it."""
    path = "$ORIGIN/../lib:/x/${LIB}"
    env = {**os.environ, "LD_LIBRARY_PATH": path}
    _, done = traced(tmp_path, "/usr/bin/env", env=env)
    assert f"LD_LIBRARY_PATH={path}" in done.stdout.splitlines()
