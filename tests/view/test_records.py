"""The recorder writes down every look-up, loses nothing, and changes nothing."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from world import ODD, World, compile_c, everything, grow, run

from brigade.imports import table
from brigade.paths import native
from brigade.trial.record import LOOKUPS, Trial, load

_CALL = re.compile(r'^(?:\d+ +)?(\w+)\((?:(?:AT_FDCWD|\d+)[^,"]*, )?"([^"]*)"(.*)$')


def recorder(folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    return [str(native("brigade-rank")), "--record", str(folder), "--view", "interpose", "--"]


def found(trial: Trial, *kinds: str) -> set[tuple[str, str, int]]:
    return {(r.kind, r.path, r.status) for _, r in trial.records() if r.kind in kinds}


def test_everything_that_strace_sees_is_recorded(world: World, probe: Path) -> None:
    grow(world)
    (world.tree / "mod.py").write_text("import json, os\nfrom pkg import part\n")
    (world.tree / "pkg").mkdir()
    (world.tree / "pkg" / "__init__.py").write_text("")
    (world.tree / "pkg" / "part.py").write_text("print(open(__file__).read()[:5])\n")
    paths = everything(world) + [f"{world.tree}/{name}" for name in ODD]
    trace = world.base / "trace"
    asked = " ".join(map(repr, paths))
    script = f"{probe} {asked}; PYTHONPATH={world.tree} python3 -c 'import mod'"
    done = run(["strace", "-f", "-e", "trace=%file", "-s", "5000", "-o", str(trace),
                *recorder(world.base / "rec"), "/bin/sh", "-c", script])  # fmt: skip
    assert done.returncode == 0, done.stderr
    trial = load(world.base / "rec")
    assert trial.damaged == 0
    recorded = {r.path: set() for _, r in trial.records()}
    for _, r in trial.records():
        recorded[r.path].add(r.status)
    whole = "\n".join(recorded) + "\n"
    seen = 0
    for line in trace.read_text(errors="replace").splitlines():
        call = _CALL.match(line)
        if not call or not call[2].startswith(f"{world.tree}/"):
            continue
        path, rest = call[2].encode().decode("unicode_escape"), call[3]
        path = path.encode("latin-1").decode("utf-8", "surrogateescape")
        if path not in recorded:  # realpath looks at parents of the path it was asked for
            assert call[1].startswith("readlink") or path.rstrip("/") in whole, line
            continue
        failed = re.search(r"= -1 (E\w+)", rest)
        status = getattr(errno, failed[1]) if failed else 0
        assert status in recorded[path] or call[1].startswith(("readlink", "execve")), line
        seen += 1
    assert seen > 1000


def test_the_recorder_changes_no_answer(world: World, probe: Path) -> None:
    grow(world)
    paths = everything(world) + [f"{world.tree}/{name}" for name in ODD]
    plain = world.plain(probe, *paths)
    _, recorded = world.record(probe, *paths)
    assert (recorded.stdout, recorded.returncode) == (plain.stdout, plain.returncode)


def test_paths_are_absolute_and_keep_their_spelling(world: World) -> None:
    grow(world)
    source = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
    struct stat s;
    int d = open("sub", O_RDONLY | O_DIRECTORY);
    stat("sub/../file", &s); fstatat(d, "deep", &s, 0); chdir("sub"); access("script", X_OK);
    fopen("../file", "r"); creat("made", 0600); rename("made", "other"); unlink("other");
    return 3;
}
"""
    trial, _ = world.record(compile_c(source, world.base / "p"), cwd=world.tree)
    t = str(world.tree)
    assert found(trial, *LOOKUPS, "write") == {
        ("open", f"{t}/sub", 0), ("stat", f"{t}/sub/../file", 0), ("stat", f"{t}/sub/deep", 0),
        ("stat", f"{t}/sub", 0), ("access", f"{t}/sub/script", 0), ("open", f"{t}/sub/../file", 0),
        ("write", f"{t}/sub/made", 0), ("write", f"{t}/sub/other", 0),
    }  # fmt: skip
    extras = {(r.kind, r.extra) for _, r in trial.records() if r.kind in ("access", "write")}
    assert extras == {("access", "1"), ("write", "open"), ("write", "rename"), ("write", "unlink")}
    program = trial.processes[-1]
    assert (program.exit_status, program.cwd, program.exe) == (3, t, str(world.base / "p"))


def test_search_records_say_who_asked_and_what_was_found(world: World) -> None:
    compile_c("int b;", world.tree / "lib" / "libb.so", "-shared")
    compile_c("int a;", world.tree / "lib" / "liba.so", "-shared", f"-L{world.tree}/lib",
              "-Wl,--no-as-needed", "-lb", "-Wl,-rpath,$ORIGIN/none:$ORIGIN")  # fmt: skip
    source = ('#include <dlfcn.h>\nint main(void) { dlopen("liba.so", 1); dlopen("liba.so", 1); '
              'dlopen("libnone.so", 1); return 0; }')  # fmt: skip
    exe = compile_c(source, world.tree / "bin" / "p", f"-Wl,-rpath,{world.tree}/lib")
    trial, _ = world.record(exe)
    searches = {(r.by, r.path): r.extra for _, r in trial.records() if r.kind == "search"}
    lib = f"{world.tree}/lib"
    assert searches[(str(exe), "liba.so")] == f"{lib}/liba.so"
    assert searches[(f"{lib}/liba.so", "libb.so")] == f"{lib}/libb.so"
    assert searches[(str(exe), "libnone.so")] == ""
    assert searches[(str(exe), "libc.so.6")].endswith("/libc.so.6")
    loads = [r.path for _, r in trial.records() if r.kind == "load"]
    assert f"{lib}/liba.so" in loads and f"{lib}/libb.so" in loads


def test_programs_and_what_was_tried_before_them_are_recorded(world: World) -> None:
    grow(world)
    path = f"{world.tree}/empty:{world.tree}/sub:/usr/bin:/bin"
    trial, done = world.record("script", env={**os.environ, "PATH": path})
    assert done.stdout == "hello\n"
    assert {
        ("exec", f"{world.tree}/empty/script", errno.ENOENT),
        ("exec", f"{world.tree}/sub/script", 0),
        ("exec", "/bin/sh", 0),
    } <= found(trial, "exec")


@pytest.mark.parametrize("call", ["subprocess.run([p])",
                                  "os.waitpid(os.posix_spawnp('true', ['true'], {}), 0)",
                                  "os.fork() or os._exit(os.path.exists(p) and 5)"])  # fmt: skip
def test_children_have_files_of_their_own(world: World, call: str) -> None:
    script = f"import os, subprocess\np = '/bin/true'\n{call}\n"
    trial, done = world.record("/usr/bin/python3", "-S", "-c", script)
    assert done.returncode == 0, done.stderr
    pids = {p.pid for p in trial.processes}
    assert len(pids) >= 2
    python = next(p for p in trial.processes if "python" in p.exe)
    assert any(p.parent == python.pid for p in trial.processes)


def test_kill_minus_nine_loses_nothing(world: World) -> None:
    grow(world)
    source = """
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char path[4096];
    struct stat s;
    for (int i = 0; i < 500; i++) {
        snprintf(path, sizeof path, "%s/%d", argv[1], i);
        stat(path, &s);
    }
    puts("done"); fflush(stdout);
    for (;;) pause();
}
"""
    exe = compile_c(source, world.base / "p")
    child = subprocess.Popen([*recorder(world.base / "rec"), exe, world.tree],
                             stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert child.stdout and child.stdout.readline() == "done\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    trial = load(world.base / "rec")
    assert trial.damaged == 0
    assert {(f"{world.tree}/{i}", errno.ENOENT) for i in range(500)} <= {
        (path, status) for _, path, status in found(trial, "stat")
    }


REPEATS = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static void *many(void *path)
{
    struct stat s;
    for (int i = 0; i < 1000; i++) { stat(path, &s); lstat(path, &s); }
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t thread[4];
    if (argc > 2 && strcmp(argv[2], "threads") == 0) {
        for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, many, argv[1]);
        for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    } else {
        many(argv[1]);
    }
    if (argc > 2 && strcmp(argv[2], "kill") == 0) raise(SIGKILL);
    if (argc > 2 && strcmp(argv[2], "exec") == 0) execl(argv[0], argv[0], argv[1], NULL);
    if (argc > 2 && strcmp(argv[2], "fork") == 0) { if (fork()) wait(NULL); else many(argv[1]); }
    return 0;
}
"""


@pytest.mark.parametrize(
    ("end", "times"), [("exit", 1), ("kill", 1), ("exec", 2), ("fork", 2), ("threads", 4)]
)
def test_the_same_look_up_is_one_record_that_counts(world: World, end: str, times: int) -> None:
    program = compile_c(REPEATS, world.base / "p", "-pthread")
    trial, _ = world.record(program, world.tree, end)
    mine = [r for _, r in trial.records() if r.path == str(world.tree)]
    for kind in ("stat", "lstat"):
        assert sum(r.times for r in mine if r.kind == kind) == 1000 * times
    assert len(mine) <= 2 * times
    assert trial.damaged == 0


NO_SHARED_MAPS = """
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MAP_SHARED | MAP_FIXED, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENODEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter)) return 77;
    execv(argv[1], argv + 1);
    return 1;
}
"""


@pytest.mark.parametrize("end", ["exit", "exec", "kill"])
def test_a_file_that_cannot_be_mapped_is_written(world: World, end: str) -> None:
    program = compile_c(REPEATS, world.base / "p", "-pthread")
    refuse = compile_c(NO_SHARED_MAPS, world.base / "refuse")
    done = run([refuse, *recorder(world.base / "rec"), program, world.tree, end])
    if done.returncode == 77:
        pytest.skip("needs seccomp filters")
    trial = load(world.base / "rec")
    assert trial.damaged == 0
    times = [r.times for _, r in trial.records() if r.path == str(world.tree)]
    expected = {"exit": [1000] * 2, "exec": [1000] * 4, "kill": [1] * 2}
    assert times == expected[end]  # repeats are written at the end


def test_libraries_that_ld_so_tried_are_counted_each_time(world: World) -> None:
    compile_c("int a;", world.tree / "lib" / "liba.so", "-shared")
    source = """#include <dlfcn.h>
int main(void)
{
    for (int i = 0; i < 10; i++) { dlclose(dlopen("liba.so", 1)); dlopen("libnone.so", 1); }
    return 0;
}"""
    (world.tree / "first").mkdir()
    run_path = f"-Wl,-rpath,{world.tree}/first:{world.tree}/lib"
    exe = compile_c(source, world.tree / "p", run_path)
    trace = world.base / "trace"
    wanted = re.compile(f"{world.tree}/(first|lib)/(.*/)?lib(a|none)\\.so")
    run(["strace", "-f", "-e", "trace=openat", "-s", "5000", "-o", str(trace),
         *recorder(world.base / "rec"), exe])  # fmt: skip
    opened: dict[tuple[str, int], int] = {}
    for line in trace.read_text().splitlines():
        call = _CALL.match(line)
        if call and wanted.fullmatch(call[2]):
            key = (call[2], errno.ENOENT if "ENOENT" in call[3] else 0)
            opened[key] = opened.get(key, 0) + 1
    counted: dict[tuple[str, int], int] = {}
    for _, r in load(world.base / "rec").records():
        if r.kind == "probe" and wanted.fullmatch(r.path):
            counted[r.path, r.status] = counted.get((r.path, r.status), 0) + r.times
    assert counted == opened
    assert counted[f"{world.tree}/lib/liba.so", 0] == 10


def test_records_of_many_threads_stay_whole(world: World) -> None:
    source = """
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
static char *tree;
static void *many(void *name)
{
    char path[4096];
    struct stat s;
    for (int i = 0; i < 2000; i++) {
        snprintf(path, sizeof path, "%s/%s/%0*d", tree, (char *)name, 1 + i % 90, i);
        stat(path, &s);
    }
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t thread[4];
    tree = argv[1];
    for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, many, argv[2 + i]);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    return 0;
}
"""
    program = compile_c(source, world.base / "p", "-pthread")
    trial, _ = world.record(program, world.tree, "a", "b", "c", "d")
    mine = {(r.path, r.times) for _, r in trial.records() if r.kind == "stat"}
    expected = {(f"{world.tree}/{n}/{i:0{1 + i % 90}d}", 1) for n in "abcd" for i in range(2000)}
    assert expected <= mine
    assert trial.damaged == 0


def test_recording_costs_few_calls(world: World) -> None:
    """Each call on the record file may be a request to a file server."""
    script = f"import os\nfor i in range(5000): os.path.exists('{world.tree}/' + str(i))"
    trace = world.base / "trace"
    done = run(["strace", "-f", "-y", "-o", str(trace), *recorder(world.base / "rec"),
                "/usr/bin/python3", "-S", "-c", script])  # fmt: skip
    assert done.returncode == 0, done.stderr
    on_file = [line for line in trace.read_text().splitlines() if f"{world.base}/rec/" in line]
    size = sum(file.stat().st_size for file in (world.base / "rec").glob("*.rec"))
    assert size > 5000 * 100
    assert len(on_file) < 40 + 8 * size / 65536, on_file[:100]


def test_the_file_of_a_program_that_goes_on_looking_grows_within_a_second(world: World) -> None:
    script = ("import os, sys, time\n"
              "for i in range(1000):\n"
              "    os.path.exists(sys.argv[1] + '/' + str(i)); time.sleep(0.05)\n")  # fmt: skip
    child = subprocess.Popen([*recorder(world.base / "rec"), "/usr/bin/python3", "-S", "-c",
                              script, world.tree])  # fmt: skip
    sizes = []
    for _ in range(4):
        time.sleep(1)
        sizes.append(sum(f.stat().st_size for f in (world.base / "rec").glob("*.rec")))
    child.kill()
    child.wait()
    assert len(set(sizes[1:])) == len(sizes[1:]), sizes


def test_a_small_file_size_limit_does_not_end_the_program(world: World) -> None:
    done = run([*recorder(world.base / "rec"), "/bin/sh", "-c", "ulimit -f 0; ls -d /; echo $?"])
    assert (done.stdout, done.returncode) == ("/\n0\n", 0)


def test_a_program_that_takes_the_descriptor_gets_no_records_in_its_file(world: World) -> None:
    script = ("import os, sys\n"
              "for n in range(3, 1024):\n"
              "    try: os.fstat(n)\n"
              "    except OSError: continue\n"
              "    os.dup2(os.open(sys.argv[1] + '/mine', os.O_CREAT | os.O_RDWR), n)\n"
              "os.path.exists(sys.argv[1] + '/later')\n"
              "os.closerange(3, 1024)\n"
              "os.path.exists(sys.argv[1] + '/latest')\n")  # fmt: skip
    trial, done = world.record("/usr/bin/python3", "-S", "-c", script, world.tree)
    assert done.returncode == 0, done.stderr
    assert (world.tree / "mine").read_bytes() == b""
    paths = {path for _, path, _ in found(trial, "stat")}
    assert {f"{world.tree}/later", f"{world.tree}/latest"} <= paths


def test_records_carry_rank_environment_and_time(world: World) -> None:
    env = {**os.environ, "PMIX_RANK": "7", "LD_LIBRARY_PATH": "/none", "VIRTUAL_ENV": "/v"}
    before = time.time_ns()
    trial, _ = world.record("/bin/sh", "-c", ":", env=env)
    shell = trial.processes[-1]
    assert shell.rank == 7
    assert shell.env["LD_LIBRARY_PATH"] == "/none"
    assert shell.env["VIRTUAL_ENV"] == "/v"
    assert shell.argv == ["/bin/sh", "-c", ":"]
    assert before < shell.start_ns < time.time_ns()
    assert all(0 <= r.time_ns < 60e9 for r in shell.records)


def test_the_number_that_brigade_gives_counts_before_an_inherited_one(world: World) -> None:
    env = {**os.environ, "SLURM_PROCID": "0", "PMI_RANK": "0", "BRIGADE_RANK": "2"}
    trial, _ = world.record("/bin/sh", "-c", ":", env=env)
    assert trial.processes[-1].rank == 2


@pytest.mark.parametrize("last", ["pass", "os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_imports_stand_among_the_records_of_their_process(world: World, last: str) -> None:
    (world.tree / "part.py").write_text("")
    script = f"import os, sys\nsys.path.append({str(world.tree)!r})\nimport part\n{last}\n"
    site = Path(table.__file__).parent / "site"
    wrapper = [str(native("brigade-rank")), "--record", str(world.base / "rec"), "--python-view"]
    (world.base / "rec").mkdir()
    run([*wrapper, str(site), "--", "/usr/bin/python3", "-c", script])
    assert not list((world.base / "rec").glob("*.py.rec"))
    trial = load(world.base / "rec")
    assert trial.damaged == 0
    imported = {r.path: r.extra for _, r in trial.records() if r.kind == "import"}
    assert imported["part"] == f"{world.tree}/part.py"
    kinds = [r.kind for _, r in trial.records()]
    assert kinds.count("interpreter") == 1 and "path-entry" in kinds
    asked = [r.path for _, r in trial.records() if r.kind in LOOKUPS]
    assert not [path for path in asked if path.startswith("/.brigade")]


def test_the_mounts_of_a_node_are_kept_once(world: World) -> None:
    for _ in range(2):
        trial, _ = world.record("/bin/true")
        (kept,) = Path(trial.folder).glob("*.mountinfo")
        assert kept.name == f"{os.uname().nodename}.mountinfo"
        assert kept.read_bytes() == Path("/proc/self/mountinfo").read_bytes()


def test_an_unwritable_folder_leaves_the_program_alone(world: World) -> None:
    wrapper = [str(native("brigade-rank")), "--record", "/proc/none", "--view", "interpose", "--"]
    done = run([*wrapper, "/bin/echo", "hello"])
    assert (done.stdout, done.stderr, done.returncode) == ("hello\n", "", 0)


@pytest.mark.parametrize(("named", "walks"), [("path", 1), ("name", 2)])
def test_a_program_is_found_and_read_by_few_walks_of_its_path(
    tmp_path: Path, named: str, walks: int
) -> None:
    """Each is a request for every folder on a shared file system. It is looked at and read."""
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    rank = [str(native("brigade-rank")), "--inspect"]
    asked = str(program) if named == "path" else "program"
    trace = tmp_path / "trace"
    env = {"PATH": f"{os.environ['PATH']}:{tmp_path}"}
    done = run(["strace", "-e", "trace=%file", "-o", str(trace), *rank, asked], env=env)
    assert done.stdout == "joins\n"
    calls = [line for line in trace.read_text().splitlines() if not line.startswith("execve")]
    assert sum(f'"{program}"' in line for line in calls) == walks
