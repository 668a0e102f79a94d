"""Programs are started from node memory, whoever starts them and however, and notice nothing."""

from __future__ import annotations

import os
import shutil
import stat
import struct
import subprocess
import time
from pathlib import Path

import pytest
from libc_version import GLIBC
from world import JOB, World, compile_c, run

SELF = """
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char exe[PATH_MAX], real[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n] = 0;
    printf("exe %s real %s name %s\\n", exe, realpath("/proc/self/exe", real),
           program_invocation_name);
    printf("a staged name is shown: %d\\n", strstr((char *)getauxval(AT_EXECFN), "/stage/") != 0);
    for (int i = 0; i < argc; i++) printf("[%s]", argv[i]);
    printf("\\n");
    fflush(stdout);
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[5000];
    fgets(line, sizeof line, maps);
    fprintf(stderr, "%d", strstr(line, "/stage/root/") != 0);
    return 7;
}
"""


@pytest.fixture
def programs(world: World) -> World:
    bins = world.tree / "bin"
    compile_c(SELF, bins / "self")
    (bins / "link").symlink_to("self")
    (bins / "local").symlink_to("/bin/echo")
    (bins / "sh").symlink_to("/bin/sh")
    for name, text in {
        "script": f"#!{bins}/self  one argument \necho no\n",
        "twice": f"#!{bins}/script second\n",
        "shell": '#!/bin/sh\necho "$0" "$@"\n',
        "linked": f'#!{bins}/sh\necho "$0" "$@"\n',
        "env": "#!/usr/bin/env self\n",
        "bare": 'echo bare "$0" "$@"\n',
        "nowhere": "#!/no/such/interpreter\n",
        "self.txt": "not to be executed",
    }.items():
        (bins / name).write_text(text)
        (bins / name).chmod(0o644 if name.endswith("txt") else 0o755)
    (bins / "dir").mkdir()
    (world.tree / "more").mkdir()
    (world.tree / "more" / "shell").write_text("not executable")
    return world.put()


def test_brigade_rank_starts_each_kind(programs: World) -> None:
    bins = programs.tree / "bin"
    env = {**os.environ, "PATH": f"{programs.tree}/more:{bins}:{os.environ['PATH']}"}
    for name in ("self", "link", "local", "script", "twice", "shell", "linked", "env"):
        for command in (name, f"{bins}/{name}", f"./{name}", f"../bin/{name}"):
            plain = programs.plain(command, "a", "b c", env=env, cwd=bins)
            viewed = programs.run(command, "a", "b c", env=env, cwd=bins)
            assert viewed.stdout == plain.stdout
            assert viewed.returncode == plain.returncode
            if "exe " in plain.stdout:
                assert viewed.stderr == "1", "it was mapped from the stage"


@pytest.mark.parametrize(
    ("name", "status"),
    [("none", 127), ("self.txt", 126), ("dir", 126), ("nowhere", 127), ("none/x", 127), ("", 127)],
)
def test_brigade_rank_fails_as_a_shell_does(programs: World, name: str, status: int) -> None:
    bins = programs.tree / "bin"
    for command in (f"{bins}/{name}", name):
        done = programs.run(command, env={"PATH": str(bins)}, cwd=programs.base)
        assert done.returncode == (status if name or command else 127) or command.endswith("/")
        assert done.stderr.startswith(f"brigade-rank: {command}: ")


EXECS = {
    "execv": "execv(path, args)",
    "execve": "execve(path, args, env)",
    "execvp": "execvp(name, args)",
    "execvpe": "execvpe(name, args, env)",
    "execl": 'execl(path, args[0], "a", NULL)',
    "execlp": 'execlp(name, args[0], "a", NULL)',
    "execle": 'execle(path, args[0], "a", NULL, env)',
    "execveat": "execveat(AT_FDCWD, path, args, env, 0)",
    "fexecve": "fexecve(open(path, O_RDONLY), args, env)",
    "posix_spawn": "posix_spawn(&pid, path, NULL, NULL, args, env), wait4(pid, &st, 0, 0)",
    "posix_spawnp": "posix_spawnp(&pid, name, NULL, NULL, args, env), wait4(pid, &st, 0, 0)",
    "vfork": "(pid = vfork()) ? wait4(pid, &st, 0, 0) : execve(path, args, env)",
    "system": "system(path)",
}


@pytest.mark.parametrize("call", EXECS)
def test_children_start_from_memory_and_keep_the_view(programs: World, call: str) -> None:
    if call == "execveat" and GLIBC < (2, 34):
        pytest.skip("the C library has no execveat")
    source = """
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    const char *path = argv[1], *name = strrchr(path, '/') + 1;
    char *args[] = {"zero", "a", NULL}, *env[] = {"LD_PRELOAD=", "KEPT=1", NULL};
    pid_t pid; int st;
    long result = (CALL);
    if (result < 0) perror("CALL");
    return 0;
}
""".replace("CALL", EXECS[call], 1).replace("CALL", call)
    caller = compile_c(source, programs.base / "caller")
    bins = programs.tree / "bin"
    env = {**os.environ, "PATH": f"{bins}:/usr/bin:/bin"}
    for name in ("self", "link", "script", "shell", "linked", "env"):
        plain = programs.plain(caller, bins / name, env=env)
        viewed = programs.run(caller, bins / name, env=env)
        assert viewed.stdout == plain.stdout
        by_kernel = call == "fexecve" and name in ("script", "linked")  # it has only a descriptor
        if "exe " in plain.stdout and not by_kernel:
            assert viewed.stderr == "1", "it was mapped from the stage"


def test_the_view_outlives_a_cleaned_environment(programs: World) -> None:
    """Three generations, each started with an environment of its own making."""
    bins = programs.tree / "bin"
    script = ("import os, subprocess, sys\n"
              "n = int(sys.argv[1])\n"
              "c = [sys.executable, '-S', __file__, str(n - 1)] if n else [sys.argv[2]]\n"
              "subprocess.run(c + sys.argv[2:], env={'MINE': str(n)})\n"
              "os.posix_spawn('/usr/bin/env', ['env', '-i', sys.argv[2]], {})\n"
              "os.wait()\n")  # fmt: skip
    file = programs.base / "gen.py"
    file.write_text(script)
    done = programs.run("/usr/bin/python3", "-S", file, "2", bins / "self")
    assert done.stderr == "1111"
    assert programs.counts().processes == 3 + 3 + 1 + 3


def test_the_users_own_variables_survive(programs: World) -> None:
    """What the wrapper changes is saved, and each value has the user's own behind Brigade's."""
    lib = compile_c("int nothing;", programs.base / "libmine.so", "-shared")
    env = {"LD_PRELOAD": str(lib), "GLIBC_TUNABLES": "glibc.malloc.check=0", "PATH": "/bin"}
    seen = dict(
        line.split("=", 1) for line in programs.run("/usr/bin/env", env=env).stdout.splitlines()
    )
    assert seen["LD_PRELOAD"].endswith(f":{lib}")
    assert seen["BRIGADE_SAVED_LD_PRELOAD"] == str(lib)
    assert seen["BRIGADE_SAVED_GLIBC_TUNABLES"] == env["GLIBC_TUNABLES"]
    assert seen["GLIBC_TUNABLES"].endswith(":glibc.malloc.check=0")
    assert "glibc.rtld.optional_static_tls=32768" in seen["GLIBC_TUNABLES"]
    assert "BRIGADE_SAVED_LD_AUDIT" not in seen
    tunables = "glibc.rtld.optional_static_tls=65536:glibc.malloc.check=0"
    env["GLIBC_TUNABLES"] = tunables
    assert f"GLIBC_TUNABLES={tunables}\n" in programs.run("/usr/bin/env", env=env).stdout


def test_slots_carry_rank_and_start(programs: World) -> None:
    before = time.time_ns()
    for rank in range(3):
        programs.run("/bin/true", env={"PMIX_RANK": str(rank)})
    slots = programs.slots()
    assert [slot[1] for slot in slots] == [0, 1, 2]
    assert all(before < slot[2] < time.time_ns() for slot in slots)
    assert len({slot[0] for slot in slots}) == 3


def test_a_static_program_runs(programs: World) -> None:
    exe = compile_c("#include <stdio.h>\nint main(void) { puts(\"static\"); return 0; }",
                    programs.tree / "bin" / "static", "-static")  # fmt: skip
    programs.put()
    assert programs.run(exe).stdout == "static\n"


def give_chown(program: Path) -> None:
    """As `setcap cap_chown+ep`: revision 2, in effect at once."""
    try:
        os.setxattr(program, "security.capability", struct.pack("<5I", 0x02000001, 1, 0, 0, 0))
    except OSError as error:
        pytest.skip(f"needs a file system whose files can have capabilities: {error}")


def test_a_set_user_id_program_is_executed_in_place(programs: World) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to make a set-user-id program")
    exe = compile_c("#include <stdio.h>\n#include <unistd.h>\n"
                    "int main(void) { printf(\"%d %d\\n\", getuid(), geteuid()); return 0; }",
                    programs.tree / "bin" / "setuid")  # fmt: skip
    exe.chmod(0o4755)
    programs.put()
    (programs.stage / "root" / str(exe)[1:]).chmod(0o755)  # a user's copy cannot be root's
    for folder in [programs.base, *programs.base.parents]:
        if not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | 0o055)
    with programs.staged_by(65534):
        done = programs.run(exe, user=65534, group=65534, extra_groups=[])
    assert done.stdout == "65534 0\n"


def test_a_program_with_capabilities_is_executed_in_place(programs: World) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to give a program capabilities")
    exe = compile_c("#include <stdio.h>\n#include <string.h>\n"
                    "int main(void) { char line[200];"
                    " FILE *f = fopen(\"/proc/self/status\", \"r\");"
                    " while (fgets(line, sizeof line, f))"
                    " if (!strncmp(line, \"CapEff\", 6)) fputs(line, stdout); return 0; }",
                    programs.tree / "bin" / "capable")  # fmt: skip
    give_chown(exe)
    programs.put()
    for folder in [programs.base, *programs.base.parents]:
        if not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | 0o055)
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    plain = programs.plain(exe, **nobody)
    with programs.staged_by(65534):
        done = programs.run(exe, strict=True, **nobody)
    assert plain.stdout.split() == ["CapEff:", f"{1:016x}"]
    assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)
    assert programs.counts().misses == {"UNSUPPORTED": 1}


def test_closing_every_descriptor_does_no_harm(programs: World) -> None:
    script = (
        "import os, sys\n"
        "t = sys.argv[1]\n"
        "os.closerange(3, 70000)\n"
        "print(open(t + '/bin/shell').read(), os.listdir(t + '/more'))\n"
    )
    command = ["/usr/bin/python3", "-c", script, str(programs.tree)]
    assert programs.run(*command).stdout == programs.plain(*command).stdout


def test_threads_that_look_up_while_others_fork(programs: World) -> None:
    source = """
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static const char *path; static int bad;
static void *look(void *unused)
{
    struct stat s; char missing[4096];
    snprintf(missing, sizeof missing, "%s/none", path);
    for (int i = 0; i < 20000; i++) {
        if (stat(path, &s) || !S_ISDIR(s.st_mode)) bad++;
        errno = 0;
        if (stat(missing, &s) == 0 || errno != ENOENT) bad++;
    }
    return 0;
}
int main(int argc, char **argv)
{
    pthread_t t[4];
    path = argv[1];
    for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, look, 0);
    for (int i = 0; i < 50; i++) {
        pid_t pid = fork();
        struct stat s;
        if (!pid) _exit(stat(path, &s) ? 1 : 0);
        int st; waitpid(pid, &st, 0);
        if (st) bad++;
    }
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    printf("bad %d\\n", bad);
    return 0;
}
"""
    exe = compile_c(source, programs.base / "threads", "-pthread")
    assert programs.run(exe, programs.tree, strict=True).stdout == "bad 0\n"
    assert programs.counts().hits == 4 * 40000 + 50
    records, done = programs.record(exe, programs.tree)
    assert done.stdout == "bad 0\n"
    assert records.damaged == 0


def test_a_constructor_may_look_up_before_ours_has_run(world: World) -> None:
    lib = compile_c("#include <stdio.h>\n#include <sys/stat.h>\n__attribute__((constructor)) "
                    "static void early(void) { struct stat s; printf(\"early %d\\n\", "
                    f"stat(\"{world.tree}/libearly.so\", &s)); }}",
                    world.tree / "libearly.so", "-shared")  # fmt: skip
    world.put()
    exe = compile_c("int main(void) { return 0; }", world.base / "p", "-Wl,--no-as-needed",
                    f"-L{world.tree}", "-learly", f"-Wl,-rpath,{world.tree}")  # fmt: skip
    world.hide()
    assert world.run(exe, strict=True).stdout == "early 0\n"
    world.show()
    assert lib.exists()


def test_a_signal_handler_may_look_up(programs: World) -> None:
    source = """
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
static const char *path; static volatile long n, bad;
static void tick(int s) { struct stat st; n++; if (stat(path, &st)) bad++; }
int main(int argc, char **argv)
{
    struct itimerval every = {{0, 200}, {0, 200}};
    struct stat st;
    path = argv[1];
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &every, 0);
    while (n < 300) if (stat(path, &st)) bad++;
    printf("bad %ld\\n", bad);
    return 0;
}
"""
    exe = compile_c(source, programs.base / "ticks")
    assert programs.run(exe, programs.tree, strict=True).stdout == "bad 0\n"
    assert programs.record(exe, programs.tree)[1].stdout == "bad 0\n"


def test_the_wrapper_starts_in_a_millisecond_or_so(programs: World) -> None:
    """Counted, not timed: the system calls of the wrapper before it executes the program."""
    trace = programs.base / "trace"
    run(["strace", "-o", str(trace), programs.rank, "--job", JOB, "--", "/bin/true"])
    calls = trace.read_text().split('execve("/bin/true"')[0].splitlines()
    assert len(calls) < 60


def test_a_copy_of_the_wrapper_elsewhere_runs_the_program_plainly(programs: World) -> None:
    lost = Path(shutil.copy(programs.rank, programs.base / "brigade-rank"))
    done = subprocess.run([lost, "--job", JOB, "--", "/bin/echo", "hello"], capture_output=True)
    assert (done.stdout, done.stderr) == (b"hello\n", b"")


def test_a_wrong_command_line_is_refused(programs: World) -> None:
    for wrong in ([], ["--job"], ["--no-such", "x"]):
        done = run([programs.rank, *wrong])
        assert done.returncode == 2
        assert done.stderr.startswith("usage: brigade-rank")
