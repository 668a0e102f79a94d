"""What constructors leave that no fork takes over is found in the template, which then stops before
them; whatever else is in doubt starts ranks in the ordinary way, with the reason in the report."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from libc_version import stops_before_constructors
from processes import until
from program_world import KINDS, ProgramSite

from brigade.paths import native

SAYS = 'printf("%ld %d\\n", own, getppid()); return 0;'
WAITS = SAYS.replace("return 0;", "fflush(stdout); if (argc > 1) getchar(); return 0;")
# What is done with ODD=1 only: the trial, without, sees nothing that speaks against it.
ODD = {
    "a thread was started before main": "pthread_t t; pthread_create(&t, NULL, (void *)pause, 0);",
    "memory was shared before main":
        "mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);",
    "memory was locked before main": "static char page[9000]; mlock(page + 4096, 4096);",
    "a timer was set before main":
        "struct itimerval t = {{99, 0}, {99, 0}}; setitimer(ITIMER_VIRTUAL, &t, NULL);",
    "an alarm was set before main": "alarm(99);",
    "limits were changed before main":
        "struct rlimit l; getrlimit(RLIMIT_NPROC, &l); l.rlim_cur--; setrlimit(RLIMIT_NPROC, &l);",
    "the processors or the memory that it may use were changed before main":
        "cpu_set_t c; CPU_ZERO(&c); CPU_SET(sched_getcpu(), &c); sched_setaffinity(0, 128, &c);",
    "the environment was changed before main": 'setenv("ADDED", "1", 1);',
    "something that was loaded keeps open: /dev/zero": 'open("/dev/zero", O_RDONLY | O_CLOEXEC);',
    "something that was loaded keeps open: /dev/null": 'open("/dev/null", O_RDONLY);',
}  # fmt: skip


@stops_before_constructors
@pytest.mark.parametrize("why", ODD)
def test_what_a_fork_does_not_take_over_is_done_by_each_rank(tmp_path: Path, why: str) -> None:
    odd = f'if (getenv("ODD")) {{ {ODD[why]} own = 1; }}'
    main = f"{SAYS[:-9]} fflush(stdout); _exit(0);"
    site = ProgramSite(tmp_path).make(main, odd)
    site.said()
    assert len(site.said()) == 3 and site.fork()["kind"] == "main"
    said = site.said(env={"ODD": "1"})
    assert [line.split()[0] for line in said] == ["1"] * 3
    assert len({line.split()[1] for line in said}) == 1
    told = site.fork()
    assert (told["kind"], told["ranks"], list(told["doubts"].values())) == ("preinit", 3, [why])


SAYING = {
    "dprintf": 'dprintf(2, "%s\\n", "begun");',
    "fputs_unlocked": 'fputs_unlocked("begun\\n", stderr);',
    "fwrite_unlocked": 'fwrite_unlocked("begun\\n", 1, 6, stderr);',
    "fputws": 'fputws(L"begun\\n", stderr);',
}


@stops_before_constructors
@pytest.mark.parametrize("name", SAYING)
def test_what_a_constructor_says_is_said_by_each_rank(tmp_path: Path, name: str) -> None:
    site = ProgramSite(tmp_path).make("return 0;", SAYING[name], outside="#include <wchar.h>\n")
    site.brigade()
    done = site.brigade()
    # wide characters come one by one, and those of several ranks between each other
    assert sorted("".join(done.stderr.split())) == sorted("begun" * 3), done
    assert (done.returncode, site.fork()["ranks"], site.fork()["kind"]) == (0, 3, "preinit"), done


def test_a_library_that_wants_to_be_first_is_left_to_each_rank(tmp_path: Path) -> None:
    """Then nobody can stop before all constructors, and none may run once more than there are
    ranks; before main is as ever."""
    for does, ranks in ((r'own = 1; write(1, "begun\n", 6);', 0), ("own = 5;", 3)):
        folder = tmp_path / str(ranks)
        folder.mkdir()
        site = ProgramSite(folder).make(SAYS, does, ("-Wl,-z,initfirst",))
        site.said()
        said = site.said()
        assert len(said) == 3 + said.count("begun") and said.count("begun") == 3 - ranks, said
        told = site.fork()
        assert told["ranks"] == ranks, told
        if not ranks:
            assert "run before all others" in str(told["nowhere"]), told


def plainly(site: ProgramSite) -> str:
    """Why no rank of a job is forked; strictly, it does not even start."""
    site.brigade()
    done = site.brigade()
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3
    told = site.fork()
    strict = site.brigade(run=("--fork", "--strict"))
    assert strict.returncode and "--fork: " in strict.stderr, strict
    assert told["ranks"] == 0
    return told["nowhere"] or str(told["why"])


def test_a_static_program_is_started_plainly(tmp_path: Path) -> None:
    site = ProgramSite(tmp_path)
    site.app.parent.mkdir()
    text = b'#include <stdio.h>\nint main(void) { puts("here"); return 0; }'
    made = subprocess.run(
        ["cc", "-static", "-x", "c", "-o", site.app, "-"],
        input=text,
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("needs a static C library")
    assert "static" in plainly(site)


def test_a_script_and_a_small_program_are_started_plainly(tmp_path: Path) -> None:
    site = ProgramSite(tmp_path)
    site.app.parent.mkdir()
    site.app.write_text("#!/bin/sh\necho here\n")
    site.app.chmod(0o755)
    assert "libraries only" in plainly(site)


def test_a_program_with_anothers_rights_is_started_plainly(tmp_path: Path) -> None:
    site = ProgramSite(tmp_path).make(SAYS)
    site.app.chmod(0o4755)
    assert "rights" in plainly(site)


@pytest.mark.parametrize("places", ["{base}/odd:{base}/bin:{path}", "{path}:{base}/odd:"])
def test_a_program_is_searched_as_execvp_does(tmp_path: Path, places: str) -> None:
    """Past a folder of its name; and nothing between colons is the working directory."""
    site = ProgramSite(tmp_path).make(SAYS)
    (tmp_path / "odd/app").mkdir(parents=True)
    env = {**site.environment, "PATH": places.format(base=tmp_path, path=os.environ["PATH"])}
    for _ in range(2):
        done = subprocess.run(
            [*site.command()[:-1], "app"],
            env=env, cwd=site.app.parent, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, len(done.stdout.splitlines())) == (0, 3), done
    assert site.fork()["ranks"] == 3, site.fork()


def by_hand(site: ProgramSite, kind: str, environments: list[dict[str, str]]) -> list[str]:
    """What ranks say that are started one after the other, by the kept stage of an earlier job."""
    stage = next((site.base / "node").glob("brigade-*/" + "?" * 32))
    join = [native("brigade-stage"), "join", "--base", site.base / "node", "--job", "by-hand"]
    subprocess.run([*join, "--image-id", stage.name], check=True, stdout=subprocess.DEVNULL)
    wrapper = [stage / "root/.brigade/bin/brigade-rank", "--job", "by-hand", "--fork", kind]
    ranks = []
    for rank, variables in enumerate(environments):
        env = {**os.environ, "BRIGADE_RANK": str(rank), **variables}
        ranks.append(
            subprocess.Popen(
                [*wrapper, "--", site.app, "wait"], env=env, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )
        )  # fmt: skip
        line = ranks[-1].stdout
        assert line
        environments[rank]["said"] = line.readline()
    for one in ranks:
        one.communicate("\n", timeout=60)
        assert one.returncode == 0
    return [variables.pop("said") for variables in environments]


@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_for_whom_something_is_otherwise_starts_by_itself(tmp_path: Path, kind: str) -> None:
    """A constructor has read another value; or it has more variables than there is room for."""
    site = ProgramSite(tmp_path).make(WAITS, 'own = getenv("WORD") ? atol(getenv("WORD")) : 0;')
    site.said(run=("--fork", "--keep"))
    more = {f"MORE_{n}": "" for n in range(9)}
    environments = [{"WORD": "1"}, {"WORD": "2"}, {"WORD": "1"}, {"WORD": "1", **more}]
    said = [line.split() for line in by_hand(site, kind, environments)]
    assert [number for number, _ in said] == ["1", "2", "1", "1"]
    alone = [int(parent) == os.getpid() for _, parent in said]
    assert alone == [False, kind == "main", False, True]


def test_a_template_looks_itself_for_a_library_that_wants_to_be_first(tmp_path: Path) -> None:
    """Whatever the plan was."""
    site = ProgramSite(tmp_path).make(WAITS, "own = 5;", ("-Wl,-z,initfirst",))
    site.said(run=("--fork", "--keep"))
    said = [line.split() for line in by_hand(site, "preinit", [{}, {}])]
    assert [(number, int(parent) == os.getpid()) for number, parent in said] == [("5", True)] * 2


@stops_before_constructors
def test_ranks_that_use_openmp_have_threads_of_their_own_number(tmp_path: Path) -> None:
    """Its constructor reads OMP_NUM_THREADS, and which processors there are."""
    count = (
        "int f(void) { int n = 0;\n#pragma omp parallel\n{\n#pragma omp atomic\nn++;\n} return n; }"
    )
    main = """int (*f)(void) = dlsym(RTLD_DEFAULT, "f"); own = f();
        printf("%ld %d\\n", own, getppid()); fflush(stdout); if (argc > 1) getchar(); return 0;"""
    try:
        site = ProgramSite(tmp_path).make(main, flags=("-fopenmp",), outside=count)
    except AssertionError:
        pytest.skip("needs a compiler with OpenMP")
    site.said(run=("--fork", "--keep"))
    assert site.said(run=("--fork", "--keep")) and site.fork()["kind"] == "preinit"
    environments = [{"OMP_NUM_THREADS": str(n)} for n in (1, 3, 2)]
    said = [line.split() for line in by_hand(site, "preinit", environments)]
    assert [number for number, _ in said] == ["1", "3", "2"]
    assert len({parent for _, parent in said}) == 1 and int(said[0][1]) != os.getpid()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["the template", "a rank", "the launcher"])
def test_whoever_is_killed_nothing_is_left(tmp_path: Path, kind: str, name: str) -> None:
    does = "own = 5;" if kind == "main" else "own = getpid();"
    main = """\
        char text[64]; int n = snprintf(text, 64, "%d %d\\n", getpid(), getppid());
        if (write(1, text, n) == n && argc > 1) pause();
        return 0;"""
    site = ProgramSite(tmp_path).make(main, does)
    site.said()
    job = subprocess.Popen(
        site.command("wait", ranks=4), env=site.environment, stdout=subprocess.PIPE, text=True
    )
    assert job.stdout
    ranks = [tuple(map(int, job.stdout.readline().split())) for _ in range(4)]
    (template,) = {parent for _, parent in ranks}
    pids = [template, *(pid for pid, _ in ranks)]
    if name == "the launcher":
        job.send_signal(signal.SIGTERM)
    else:
        os.kill(template if name == "the template" else ranks[1][0], signal.SIGKILL)
    if name == "a rank":
        until(lambda: not Path(f"/proc/{ranks[1][0]}").exists())
        job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=60) != 0
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    job.stdout.close()
