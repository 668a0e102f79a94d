"""A rank that is forked from a program stopped before main, or before constructors, is what it is
when it is started by itself; nothing of one rank is another's."""

from __future__ import annotations

import os
import re
import resource
import signal
from pathlib import Path

import pytest
from libc_version import stops_before_constructors
from program_world import KINDS, ProgramSite

# what a constructor does, by where the program is stopped for it
DOES = {"main": "own = strlen(order);", "preinit": "own = getpid();"}
SAYS = """\
    static char line[1 << 16]; char text[4096], name[64]; size_t n = 0; sigset_t mask;
    #define SAY(...) n += snprintf(line + n, sizeof line - n, __VA_ARGS__)
    SAY("argc %d ", argc);
    for (char **a = argv; *a; a++) SAY("[%s] ", *a);
    SAY("name %s %s ", program_invocation_name, program_invocation_short_name);
    SAY("execfn %s ", (char *)getauxval(AT_EXECFN));
    char **all = *(char ***)dlsym(RTLD_DEFAULT, "environ"); /* by name: nothing else can see it */
    SAY("third %d behind %d ", envp == all, envp == argv + argc + 1);
    for (char **e = envp; *e; e++)
        if (strncmp(*e, "BRIGADE_", 8) || !strncmp(*e, "BRIGADE_RANK", 12)) {
            char *value = strchr(*e, '=') + 1;
            snprintf(name, sizeof name, "%.*s", (int)(value - 1 - *e), *e);
            SAY("%s%d ", *e, getenv(name) == value);
        }
    for (int fd = 0; fd < 64; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t got = readlink(name, text, sizeof text - 1);
        if (got > 0) SAY("fd%d %.5s %d ", fd, text, fcntl(fd, F_GETFD));
    }
    for (int what = 0; what < RLIM_NLIMITS; what++) {
        struct rlimit limit; getrlimit(what, &limit);
        SAY("%ld:%ld ", (long)limit.rlim_cur, (long)limit.rlim_max);
    }
    mode_t was = umask(0); umask(was); SAY("umask %o ", was);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int s = 1; s < 65; s++) {
        struct sigaction action; sigaction(s, NULL, &action);
        SAY("%d%d", sigismember(&mask, s), action.sa_handler == SIG_IGN);
    }
    SAY(" session %d ", getsid(0));
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t got = fread(text, 1, sizeof text, f); fclose(f);
    for (size_t i = 0; i < got; i++) SAY("%c", text[i] ? text[i] : '|');
    f = fopen("/proc/self/environ", "r"); long size = 0, sum = 0;
    while (fgetc(f) != EOF) size++;
    fclose(f);
    for (char **e = envp; *e; e++) sum += strlen(*e) + 1;
    SAY("environ %d ", sum == size);
    f = popen("echo child $WORD", "r"); got = fread(text, 1, sizeof text, f); pclose(f);
    SAY("%.*s", (int)got - 1, text);
    SAY(" order %s read %d own %d told %d\\n", order, getchar(), own == KEPT,
        told == envp);
    return write(1, line, n) != (ssize_t)n;
"""
# glibc before 2.39 cuts them in the environment that the kernel shows
TUNABLES = {"GLIBC_TUNABLES": "glibc.malloc.check=0:glibc.malloc.arena_max=2"}
KEPT = {"main": 'strlen("lib9 ")', "preinit": "getpid()"}
ORDER = [*(f"lib{n}" for n in reversed(range(10))), "own"]  # in which constructors run


TOLD = """char **told; __attribute__((constructor))
    static void is_told(int argc, char **argv, char **envp) { told = envp; }"""


def by_any_image(lines: list[str]) -> list[str]:
    """Without the ids of staged images: unforked ranks have one with contents."""
    return [re.sub(r"/[0-9a-f]{32}/", "/ID/", line) for line in lines]


@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_is_what_it_is_by_itself(tmp_path: Path, kind: str) -> None:
    def set_up() -> None:
        os.umask(0o27)
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        resource.setrlimit(resource.RLIMIT_CORE, (0, 1 << 20))

    says = SAYS.replace("KEPT", KEPT[kind])
    site = ProgramSite(tmp_path).make(f"extern char **told; {says}", DOES[kind], outside=TOLD)
    with open(tmp_path / "open", "w") as file:
        given = {
            "stdin": -3, "pass_fds": [file.fileno()], "preexec_fn": set_up,
            "env": {"WORD": "said", **TUNABLES},
        }  # fmt: skip
        site.said("a", "b c", **given)
        forked = site.said("a", "b c", **given)
        told = site.fork()
        plain = site.said("a", "b c", run=(), **given)
    assert (told["kind"], told["ranks"], told["plain"]) == (kind, 3, []), told
    assert by_any_image(forked) == by_any_image(plain)
    assert " own 1 told 1" in plain[0] and "child said" in plain[0]
    assert [f"BRIGADE_RANK={rank}1 " in line for rank, line in enumerate(plain)] == [True] * 3


def test_constructors_run_once_in_each_rank_and_what_they_drew_is_its_own(tmp_path: Path) -> None:
    """The program stops before them, because they did so in the trial."""
    drawn = "getrandom(&own, sizeof own, 0);"
    site = ProgramSite(tmp_path).make('printf("%lx %s\\n", own, order); return 0;', drawn)
    site.said()
    said = [line.split(" ", 1) for line in site.said(ranks=4)]
    assert (site.fork()["kind"], site.fork()["ranks"]) == ("preinit", 4)
    assert len({number for number, _ in said}) == 4
    (order,) = {order for _, order in said}
    assert order.split() == ORDER


@pytest.mark.parametrize("kind", KINDS)
def test_main_runs_as_often_as_there_are_ranks(tmp_path: Path, kind: str) -> None:
    notes = tmp_path / "notes"
    text = f"""int fd = open("{notes}", O_WRONLY | O_CREAT | O_APPEND, 0600);
        return write(fd, getenv("BRIGADE_RANK"), 1) != 1;"""
    site = ProgramSite(tmp_path).make(text, DOES[kind])
    site.said()
    notes.unlink()
    site.said(ranks=5)
    assert (site.fork()["kind"], site.fork()["ranks"]) == (kind, 5)
    assert sorted(notes.read_text()) == list("01234")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_done_at_the_end_is_done_by_each_rank(tmp_path: Path, kind: str) -> None:
    """Handlers in their order, destructors after them; text that was still to be written."""
    main = 'strcat(order, "main"); setvbuf(stdout, NULL, _IOFBF, 0); printf("here\\n"); return 0;'
    outside = """static void last(void) { printf("last %s\\n", order); }
        __attribute__((destructor)) static void gone(void) { printf("gone\\n"); }"""
    site = ProgramSite(tmp_path).make(main, DOES[kind] + "atexit(last);", outside=outside)
    site.said()
    words = " ".join(ORDER)
    assert site.said() == [*["gone"] * 3, *["here"] * 3, *[f"last {words} main"] * 3]
    assert (site.fork()["kind"], site.fork()["ranks"]) == (kind, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("how", "status"), [("return 7;", 7), ("kill(getpid(), SIGKILL);", -9), ("abort();", -6),
                        ("raise(SIGTERM);", -15)]
)  # fmt: skip
def test_the_end_of_the_job_is_a_ranks(tmp_path: Path, kind: str, how: str, status: int) -> None:
    site = ProgramSite(tmp_path).make(f"if (argc > 1) {{{how}}} return 0;", DOES[kind])
    site.said()
    plain = site.brigade("end", run=()).returncode
    assert site.brigade("end").returncode == plain
    assert site.fork()["ranks"] == 3
    assert plain in (status, 128 - status)


@stops_before_constructors
def test_threads_allocation_and_loading_work_in_a_rank(tmp_path: Path) -> None:
    main = """\
        static const size_t sizes[] = {1, 1 << 10, 1 << 24};
        for (int i = 0; i < 3; i++) free(memset(malloc(sizes[i]), 1, sizes[i]));
        pthread_t thread; void *result = NULL;
        void *twice(void *x) { errno = 5; return (char *)x + 1; }
        if (pthread_create(&thread, NULL, twice, &own) || pthread_join(thread, &result)) return 2;
        struct timespec now; clock_gettime(CLOCK_MONOTONIC, &now);
        void *c = dlopen("libm.so.6", RTLD_NOW);
        double (*root)(double) = dlsym(c, "sqrt");
        printf("%d %d %.0f %d\\n", result == (char *)&own + 1, errno, root(16), fork() == -1);
        return 0;"""
    for kind, does in DOES.items():
        folder = tmp_path / kind
        folder.mkdir()
        site = ProgramSite(folder).make(main, does)
        site.said()
        assert len(site.said()) == 6
        assert (site.fork()["kind"], site.fork()["ranks"]) == (kind, 3)
