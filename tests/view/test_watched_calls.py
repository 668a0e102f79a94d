"""What a program does is recorded, in a trial that watches, and only there."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from libc_version import GLIBC
from test_exports import SOURCES, exported
from world import World, compile_c, run

from brigade.paths import native
from brigade.trial.record import Trial, load

CALLS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
extern char **environ;
static void *nothing(void *unused) { return unused; }
int main(int argc, char **argv)
{
    struct timespec now; struct timeval tv; struct utsname host; char text[256];
    struct rlimit limit = {0, 0}; struct sched_param how = {0};
    pthread_t thread; sem_t sem; cpu_set_t cpus; pid_t pid; const char *do_ = argv[1];
    char *const ls[] = {"true", NULL};
    (void)argc;
#define DO(name) else if (!strcmp(do_, name))
    if (!strcmp(do_, "")) return 0;
    DO("getenv") { getenv("HOME"); getenv("NONE"); }
    DO("secure_getenv") secure_getenv("HOME");
    DO("changed") { setenv("HOME", "/elsewhere", 1); setenv("NEW", "1", 1); unsetenv("USER_X");
                    getenv("HOME"); getenv("NEW"); getenv("USER_X"); }
    DO("clock_gettime") { clock_gettime(CLOCK_REALTIME, &now); time(NULL); }
    DO("time") { time(NULL); time(NULL); }
    DO("gettimeofday") { gettimeofday(&tv, NULL); time(NULL); }
    DO("processor time") { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
                           clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); }
    DO("processor time by number") syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    DO("clock") clock();
    DO("times") { struct tms t; times(&t); }
    DO("what it used") { struct rusage r; getrusage(RUSAGE_SELF, &r); }
    DO("another's processor time") { clockid_t id; pthread_getcpuclockid(pthread_self(), &id);
                                     clock_gettime(id, &now); }
    DO("what settles") { time(NULL); clock_gettime(-2, &now); clock_gettime(-2, &now); }
    DO("a wait's end") { sem_init(&sem, 0, 1); clock_gettime(CLOCK_MONOTONIC, &now);
                         sem_timedwait(&sem, &now); }
    DO("before a wait without an end") { sem_init(&sem, 0, 2); clock_gettime(CLOCK_REALTIME, &now);
                                         sem_trywait(&sem); sem_wait(&sem); time(NULL); }
    DO("getpid") getpid();
    DO("getppid") getppid();
    DO("syscall") syscall(SYS_getpid);
    DO("uname") uname(&host);
    DO("gethostname") gethostname(text, sizeof text);
    DO("getrandom") getrandom(text, 8, 0);
    DO("getentropy") getentropy(text, 8);
    DO("urandom") close(open("/dev/urandom", O_RDONLY));
    DO("a device") close(open("/dev/kmsg", O_WRONLY));
    DO("null") { close(open("/dev/null", O_RDWR)); fclose(fopen("/dev/zero", "r")); }
    DO("own files") close(open("/proc/self/status", O_RDONLY));
    DO("the machine") close(open("/proc/cpuinfo", O_RDONLY));
    DO("thread") { pthread_create(&thread, NULL, nothing, NULL); pthread_join(thread, NULL); }
    DO("fork") { if (!(pid = fork())) { getpid(); getenv("HOME"); _exit(0); }
                 waitpid(pid, NULL, 0); }
    DO("vfork") { if (!(pid = vfork())) { execv("/bin/true", ls); _exit(1); }
                  waitpid(pid, NULL, 0); }
    DO("vfork that looks") { if (!(pid = vfork())) { close(open("/proc/self/fd", O_RDONLY));
                                                     execv("/bin/true", ls); _exit(1); }
                             waitpid(pid, NULL, 0); }
    DO("spawn") { posix_spawn(&pid, "/bin/true", NULL, NULL, ls, environ); waitpid(pid, NULL, 0); }
    DO("system") { if (system(":")) return 1; }
    DO("popen") pclose(popen(":", "r"));
    DO("socket") close(socket(AF_INET, SOCK_DGRAM, 0));
    DO("chdir") { if (chdir("/")) return 1; }
    DO("affinity") sched_getaffinity(0, sizeof cpus, &cpus);
    DO("limits") { setrlimit(RLIMIT_CORE, &limit); prlimit(0, RLIMIT_CORE, &limit, NULL); }
    DO("a question") { getrlimit(RLIMIT_CORE, &limit); prlimit(0, RLIMIT_CORE, NULL, &limit);
                       getpriority(PRIO_PROCESS, 0); if (nice(0)) return 1; }
    DO("priority") setpriority(PRIO_PROCESS, 0, 1);
    DO("nice") { if (nice(1) == -1) return 1; }
    DO("policy") sched_setscheduler(0, SCHED_BATCH, &how);
    DO("a thread's policy") pthread_setschedparam(pthread_self(), SCHED_BATCH, &how);
    DO("limits by number") syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limit, NULL);
    DO("a question by number") syscall(SYS_prlimit64, 0, RLIMIT_CORE, NULL, &limit);
    DO("binds") { CPU_ZERO(&cpus); CPU_SET(sched_getcpu(), &cpus);
                  if (sched_setaffinity(0, sizeof cpus, &cpus)) return 1; }
    DO("binds its thread") { CPU_ZERO(&cpus); CPU_SET(sched_getcpu(), &cpus);
                             return pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus); }
    DO("binds by number") syscall(SYS_sched_setaffinity, 0, 0, NULL);
    DO("binds its memory") syscall(SYS_set_mempolicy, 0, NULL, 0);
    DO("isatty") isatty(0);
    DO("tcgetattr") { struct termios t; tcgetattr(1, &t); }
    DO("how wide it is") { struct winsize w; ioctl(2, TIOCGWINSZ, &w); }
    DO("what else a descriptor is asked") { int n; ioctl(0, FIONREAD, &n); ioctl(0, FIOCLEX); }
    DO("a file is no terminal") isatty(77);
    DO("write a file") close(open("made", O_CREAT | O_WRONLY, 0600));
    DO("make a folder") mkdir("made", 0700);
    DO("write") { if (write(1, "x", 1) != 1) return 1; }
    DO("writev") { struct iovec part = {"x", 1}; if (writev(2, &part, 1) != 1) return 1; }
    DO("puts") puts("x");
    DO("printf") printf("%d %s %f\n", argc, do_, 1.5);
    DO("stderr") fprintf(stderr, "%d\n", argc);
    DO("fwrite") fwrite("x", 1, 1, stdout);
    DO("nothing") {
        const char *volatile none = "";
        printf("%s", none); fprintf(stderr, "%s", none); fputs(none, stdout);
        fwrite("x", 1, 0, stdout); if (write(1, "x", 0) != 0) return 1;
    }
    DO("a stream of a file") { FILE *f = tmpfile(); fprintf(f, "x"); fclose(f); }
    else return 2;
    return 0;
}
"""
# what the program does: the events that are recorded, (what, detail)
EXPECTED: dict[str, list[tuple[str, str]]] = {
    "getenv": [("getenv", "HOME"), ("getenv", "NONE")],
    "secure_getenv": [("getenv", "HOME")],
    "changed": [("getenv", "HOME!"), ("getenv", "NEW!"), ("getenv", "USER_X!")],
    "clock_gettime": [("clock", "")],
    "time": [("clock", "")],
    "gettimeofday": [("clock", "")],
    "processor time": [("clock", "processor")],
    "processor time by number": [("clock", "processor")],
    "clock": [("clock", "processor")],
    "times": [("clock", "processor")],
    "what it used": [("clock", "processor")],
    "another's processor time": [("clock", "processor")],
    "what settles": [("clock", "")],
    "a wait's end": [],
    "before a wait without an end": [("clock", "")],
    "limits": [("limits", "")],
    "a question": [],
    "priority": [("limits", "")],
    "nice": [("limits", "")],
    "policy": [("limits", "")],
    "a thread's policy": [("limits", "")],
    "limits by number": [("limits", "")],
    "a question by number": [],
    "binds": [("cpus", "EXE"), ("bind", "call")],
    "binds its thread": [("cpus", "EXE"), ("bind", "call")],
    "binds by number": [("bind", "call")],
    "binds its memory": [("bind", "")],
    "getpid": [("pid", "")],
    "getppid": [("pid", "")],
    "syscall": [("pid", "")],
    "uname": [("host", "")],
    "gethostname": [("host", "")],
    "getrandom": [("random", "")],
    "getentropy": [("random", "")],
    "urandom": [("random", "/dev/urandom")],
    "a device": [("device", "/dev/kmsg")],
    "null": [],
    "own files": [("process", "/proc/self/status")],
    "the machine": [],
    "thread": [("thread", "EXE")],
    "fork": [("child", "")],
    "vfork": [("child", "/bin/true")],
    "vfork that looks": [("child", "/bin/true")],
    "spawn": [("child", "/bin/true")],
    "system": [("child", "")],
    "popen": [("child", "")],
    "socket": [("socket", "2")],
    "chdir": [("folder", "/")],
    "affinity": [("cpus", "EXE")],
    "isatty": [("terminal", "")],
    "tcgetattr": [("terminal", "")],
    "how wide it is": [("terminal", "")],
    "what else a descriptor is asked": [],
    "a file is no terminal": [],
    "write a file": [("write", "CWD/made")],
    "make a folder": [("write", "CWD/made")],
    "write": [("output", "1")],
    "writev": [("output", "2")],
    "puts": [("output", "1")],
    "printf": [("output", "1")],
    "stderr": [("output", "2")],
    "fwrite": [("output", "1")],
    "nothing": [],
    "a stream of a file": [],
}


def watch(folder: Path, *command: object, salt: str = "salt", **options) -> tuple[Trial, str]:
    """The records of a program that is watched, and what it said."""
    records = folder / "records"
    records.mkdir(parents=True, exist_ok=True)
    wrapper = [str(native("brigade-rank")), "--record", str(records), "--watch", salt]
    done = run([*wrapper, "--view", "interpose", "--", *map(str, command)], **options)
    assert done.returncode == 0, done.stderr
    return load(records), done.stdout


def events(trial: Trial, exe: object) -> list[tuple[str, str]]:
    return [
        (record.path, record.extra)
        for process, record in trial.records()
        if record.kind == "event" and process.exe == str(exe)
    ]


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(CALLS, tmp_path_factory.mktemp("calls") / "calls", "-pthread")


@pytest.mark.parametrize("what", EXPECTED)
def test_what_a_program_does_is_recorded(world: World, calls: Path, what: str) -> None:
    if what == "a device" and not os.access("/dev/kmsg", os.W_OK):
        pytest.skip("needs the right to write to /dev/kmsg")
    env = {**os.environ, "USER_X": "1"}
    idle, _ = watch(world.base / "idle", calls, "", env=env)
    trial, _ = watch(world.base, calls, what, env=env, cwd=world.base)
    always = events(idle, calls)
    expected = [
        (kind, detail.replace("EXE", str(calls)).replace("CWD", str(world.base)))
        for kind, detail in EXPECTED[what]
    ]
    assert [event for event in events(trial, calls) if event not in always] == expected


@pytest.mark.skipif(GLIBC < (2, 30), reason="the C library has no sem_clockwait")
@pytest.mark.parametrize(
    ("has", "waits", "expected"),
    [
        ("Py_Version", "sem_clockwait(&sem, CLOCK_MONOTONIC, &now)", []),
        ("Py_Version", "sem_timedwait(&sem, &now)", [("clock", "")]),
        ("Py_Older", "sem_clockwait(&sem, CLOCK_MONOTONIC, &now)", [("clock", "")]),
    ],
)
def test_only_pythons_that_ask_before_each_wait_lose_nothing_by_it(
    world: World, has: str, waits: str, expected: list[tuple[str, str]]
) -> None:
    """The time that is asked for before a wait without an end is the wait's only in those."""
    source = f"""
    #include <semaphore.h>
    #include <time.h>
    unsigned long {has} = 1;
    int main(int argc, char **argv)
    {{
        struct timespec now; sem_t sem; sem_init(&sem, 0, 1);
        if (argc > 5) return {waits};
        clock_gettime(CLOCK_MONOTONIC, &now); sem_trywait(&sem); sem_destroy(&sem);
        struct timespec later; clock_gettime(-2, &later); /* settles */
        return 0;
    }}"""
    exe = compile_c(source, world.base / "exe", "-pthread", "-rdynamic")
    trial, _ = watch(world.base, exe)
    assert [event for event in events(trial, exe) if event[0] == "clock"] == expected


def test_a_trial_that_does_not_watch_records_none(world: World, calls: Path) -> None:
    trial, done = world.record(calls, "getenv", env={**os.environ, "BRIGADE_RECORD_FORK": "x"})
    assert done.returncode == 0
    assert not {r.kind for _, r in trial.records()} & {"event", "watch", "digest"}


def test_a_watched_process_says_so_and_a_child_of_fork_is_none(world: World, calls: Path) -> None:
    trial, _ = watch(world.base, calls, "fork")
    said = [(p.pid, r.kind) for p, r in trial.records() if r.kind in ("watch", "event")]
    (parent,) = {pid for pid, kind in said if kind == "watch"}
    assert {pid for pid, _ in said} == {parent}


def test_what_happens_is_the_module_s_whose_import_was_announced(world: World) -> None:
    source = r"""
    #include <stdlib.h>
    #include <unistd.h>
    static void tell(const char *message) { char b[8]; if (readlink(message, b, 8) > 8) abort(); }
    int main(void)
    {
        getenv("A");
        tell("/.brigade/record/importing\x1f" "0\x1f\x1fpkg.one\x1f");
        getenv("B");
        tell("/.brigade/record/importing\x1f" "0\x1f\x1fpkg\x1f");
        getenv("C");
        tell("/.brigade/record/importing\x1f" "0\x1f\x1f\x1f");
        getenv("D");
    }
    """
    exe = compile_c(source, world.base / "p")
    trial, _ = watch(world.base, exe)
    said = [(r.by, r.extra) for _, r in trial.records() if r.path == "getenv"]
    assert said == [("", "A"), ("pkg.one", "B"), ("pkg", "C"), ("", "D")]


def test_a_library_may_wait_as_it_loads_for_a_thread_that_asks(world: World) -> None:
    """ld.so is held by who executes constructors: nothing may ask it then from another thread."""
    source = r"""
    #include <pthread.h>
    #include <sched.h>
    #include <sys/random.h>
    static void *ask(void *unused)
    {
        char bytes[8];
        cpu_set_t cpus;
        getrandom(bytes, sizeof bytes, 0);
        sched_getaffinity(0, sizeof cpus, &cpus);
        return unused;
    }
    __attribute__((constructor)) static void begin(void)
    {
        pthread_t thread;
        pthread_create(&thread, NULL, ask, NULL);
        pthread_join(thread, NULL);
    }
    """
    library = compile_c(source, world.base / "libasks.so", "-shared", "-pthread")
    main = "#include <dlfcn.h>\nint main(int n, char **v) { return n > 9 || !dlopen(v[1], 2); }"
    exe = compile_c(main, world.base / "p", "-ldl")
    said = events(watch(world.base, exe, library, timeout=20)[0], exe)
    assert {("random", str(library)), ("cpus", str(library))} <= set(said)


def test_variables_are_told_apart_and_not_told(world: World) -> None:
    def digests(salt: str, **values: str) -> dict[str, str]:
        folder = world.base / "-".join([salt, *values.values()])
        folder.mkdir()
        trial, _ = watch(folder, "/bin/true", salt=salt, env={**os.environ, **values})
        (file,) = (folder / "records").glob("*.rec")
        assert b"hunter2" not in file.read_bytes()
        return {r.path: r.extra for _, r in trial.records() if r.kind == "digest"}

    one, two = digests("a", SECRET="hunter2", X="1"), digests("a", SECRET="hunter2", X="2")
    assert one["SECRET"] == two["SECRET"] and one["X"] != two["X"]
    assert digests("b", SECRET="hunter2", X="3")["SECRET"] != one["SECRET"]
    assert all(re.fullmatch("[0-9]{1,10}", digest) for digest in one.values())


def test_words_that_are_formatted_are_what_they_would_be(world: World, calls: Path) -> None:
    for flags in ((), ("-O2", "-D_FORTIFY_SOURCE=2")):
        exe = compile_c(CALLS, world.base / f"p{len(flags)}", "-pthread", *flags)
        assert watch(world.base, exe, "printf")[1] == world.plain(exe, "printf").stdout


def test_a_library_may_have_functions_by_the_names_of_err_h(world: World) -> None:
    """They take what it likes: a library in front of it must not stand for them."""
    source = r"""
    #include <stdarg.h>
    #include <stdio.h>
    int warnx = 5;
    void warn(int level, const char *format, ...)
    {
        va_list args;
        va_start(args, format);
        printf("[%d] ", level + warnx++);
        vprintf(format, args);
        va_end(args);
    }
    void vwarn(void) { warn(1, "step %d of %.1f\n", 7, 8.5); }
    void error(const char *text) { puts(text); }
    int work(void) { vwarn(); error("bad"); return 3; }
    """
    library = compile_c(source, world.base / "libmsg.so", "-shared", "-fno-builtin")
    main = "int work(void);\nint main(void) { return work() - 3; }"
    paths = [f"-L{library.parent}", "-lmsg", f"-Wl,-rpath,{library.parent}"]
    exe = compile_c(main, world.base / "p", *paths)
    plain = world.plain(exe)
    assert (plain.returncode, plain.stdout) == (0, "[6] step 7 of 8.5\nbad\n"), plain
    assert watch(world.base, exe)[1] == plain.stdout


def test_the_watching_library_exports_its_list_and_needs_only_the_libc() -> None:
    text = re.sub(r"/\*.*?\*/", "", (SOURCES / "watch.def").read_text(), flags=re.S)
    listed = set(re.findall(r"WATCH(?:_OUTPUT)?\([^,]+,\s*(\w+),", text))
    assert exported("libbrigade-preload-watch.so") == listed | {"brigade_handoff"}
    needed = run(["readelf", "-dW", str(native("libbrigade-preload-watch.so"))]).stdout
    assert set(re.findall(r"NEEDED.*\[(.*)\]", needed)) <= {"libc.so.6", "libdl.so.2"}


def test_ranks_of_a_job_and_plain_trials_do_without_the_watching_library(world: World) -> None:
    world.put()
    for done in (
        world.run("/bin/cat", "/proc/self/maps"),
        world.record("cat", "/proc/self/maps")[1],
    ):
        assert "libbrigade-preload.so" in done.stdout
        assert "preload-watch" not in done.stdout
