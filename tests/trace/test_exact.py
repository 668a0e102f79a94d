"""Real programs: per call and error, brigade-trace counts exactly what `strace -f` counts.

Each program runs twice under strace first: only what agrees with itself can be compared. What made
runs differ is fixed here (hash seeds, names of temporary files, caches that the first run writes).
Where processes talk to each other, their timing decides into how many reads and writes the talk
falls: of those programs reads and writes of pipes, sockets and terminals are left out, and only
they. Where processes race (who makes a folder, and who finds it made), a run of brigade-trace must
equal one of strace's, and some tries are given. A process's own map of its memory (which libffi may
read) is not of the same length twice: its reads are left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tracing import compile_c, environment, straced, traced

from brigade.trace.events import KIND_OF, Event, Trace

THREADS = """
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
static void *work(void *n)
{
    struct stat st;
    char name[40];
    for (long i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "/etc/thread%ld/%ld", (long)n, i);
        stat(i % 2 ? name : "/etc", &st);
    }
    return NULL;
}
int main(void)
{
    pthread_t all[8];
    for (long i = 0; i < 8; i++) pthread_create(&all[i], NULL, work, (void *)i);
    for (long i = 0; i < 8; i++) pthread_join(all[i], NULL);
    return 0;
}
"""
STATIC = """
#include <dirent.h>
#include <stdio.h>
int main(void)
{
    DIR *dir = opendir("/etc");
    struct dirent *entry;
    char name[400];
    while ((entry = readdir(dir))) {
        snprintf(name, sizeof name, "/etc/%s/none", entry->d_name);
        FILE *file = fopen(name, "r");
        if (file) fclose(file);
    }
    return 0;
}
"""
MPI = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fopen(rank ? "/etc/rank/one" : "/etc/rank/zero", "r");
    MPI_Finalize();
    return 0;
}
"""
GO = """
package main

import "os"

func main() {
    for i := 0; i < 20; i++ {
        if data, err := os.ReadFile("/etc/hostname"); err == nil {
            os.Stdout.Write(data)
        }
        os.Stat("/etc/no/such")
    }
}
"""
TALK = ("read", "write", "readv", "writev", "recvmsg", "sendmsg")


@dataclass
class Program:
    """`make(folder)` gives the command; `talks`: with whom its processes talk, if they do."""

    make: Callable[[Path], list[str]]
    talks: str = ""
    races: bool = False
    needs: tuple[str, ...] = ()
    prepare: Callable[[Path], None] = lambda folder: None  # before each run


def python(folder: Path) -> list[str]:
    script = "import numpy, json; print(json.dumps(numpy.arange(3).tolist()))"
    return [sys.executable, "-c", script]


def pipes(folder: Path) -> list[str]:
    # a file between the programs: how a pipe's bytes fall into reads is not fixed
    script = """
        for i in 1 2 3; do printf '%s\\n' "$i" | { read -r x; echo "$x"; } >> all; done
        sort -r all > sorted; grep -c . sorted; x=$(cat sorted); [ -e none ] || echo "$x"; rm all
    """
    return ["bash", "-c", script]


def perl(folder: Path) -> list[str]:
    script = "use POSIX; use File::Find; find(sub { -s $_ }, '/usr/share/perl'); print 'done'"
    return ["perl", "-e", script]


def gcc(folder: Path) -> list[str]:
    (folder / "a.c").write_text('#include <stdio.h>\nint main(void) { return puts("a") < 0; }\n')
    return ["gcc", "-O1", "-c", "-o", "a.o", "a.c"]


def git(folder: Path) -> list[str]:
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        (folder / "file").write_text("text\n")
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"]
        subprocess.run(["git", *identity, *words], cwd=folder, check=True)
    return ["git", "log", "--stat"]


def static(folder: Path) -> list[str]:
    return [str(compile_c(STATIC, folder / "static", "-static"))]


def threads(folder: Path) -> list[str]:
    return [str(compile_c(THREADS, folder / "threads", "-pthread"))]


def tar(folder: Path) -> list[str]:
    return ["sh", "-c", "tar cf all.tar /usr/include/linux; tar tf all.tar; find /usr/share/doc"]


def make(folder: Path) -> list[str]:
    names = " ".join(f"o{n}" for n in range(12))
    rules = f"all: {names}\n{names}:\n\t@cat /etc/hostname > $@; test -s $@\n"
    (folder / "Makefile").write_text(rules)
    return ["make", "-j", "4"]


def remove_made(folder: Path) -> None:
    for made in folder.glob("o[0-9]*"):
        made.unlink()


def mpi(folder: Path) -> list[str]:
    (folder / "m.c").write_text(MPI)
    subprocess.run(["mpicc.openmpi", "-o", folder / "m", folder / "m.c"], check=True)
    return ["mpirun.openmpi", "-n", "2", "--oversubscribe", str(folder / "m")]


def go(folder: Path) -> list[str]:
    (folder / "m.go").write_text(GO)
    cache = {"GOCACHE": str(folder / "cache"), "GO111MODULE": "off", "GOFLAGS": "-p=2"}
    words = ["go", "build", "-o", "m", "m.go"]
    subprocess.run(words, cwd=folder, check=True, env={**os.environ, **cache})
    return [str(folder / "m")]


QUICK = {
    "python": Program(python, needs=("numpy",)),
    "bash": Program(pipes),
    "perl": Program(perl),
    "static": Program(static),
    "threads": Program(threads),
}
LONG = {
    "gcc": Program(gcc),
    "git": Program(git),
    "tar and find": Program(tar),
    "make -j": Program(make, "make's jobs, who pass tokens on", prepare=remove_made),
    "mpi": Program(mpi, "mpirun, its ranks", True, ("mpirun.openmpi", "mpicc.openmpi")),
    "go": Program(go, needs=("go",)),
}


def is_talk(event: Event) -> bool:
    return event.call in TALK and (event.path[:1] != "/" or event.path.startswith("/dev/"))


def is_map(event: Event) -> bool:
    return event.call == "read" and re.fullmatch(r"/proc/\d+/maps", event.path) is not None


def of(name: str) -> object:
    return pytest.param(name, marks=[pytest.mark.all] if name in LONG else [], id=name)


@pytest.mark.parametrize("options", [(), ("--all-stops",)], ids=["filter", "all-stops"])
@pytest.mark.parametrize("name", [of(name) for name in {**QUICK, **LONG}])
def test_the_counts_are_exactly_those_of_strace(
    tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    program = {**QUICK, **LONG}[name]
    for need in program.needs:
        if shutil.which(need) is None and need != "numpy":
            pytest.skip(f"needs {need}")
    if "numpy" in program.needs:
        pytest.importorskip("numpy")
    words = program.make(tmp_path)
    env = environment(TMPDIR=str(tmp_path), OMPI_ALLOW_RUN_AS_ROOT="1", GIT_OPTIONAL_LOCKS="0")
    env |= {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat"}
    where = {"cwd": tmp_path, "env": env}

    def told(run: Callable[[], Trace]) -> Counter[tuple[str, int]]:
        program.prepare(tmp_path)
        events = [event for _, event in run().events() if not is_map(event)]
        events = [event for event in events if not (program.talks and is_talk(event))]
        return Counter((event.call, event.error) for event in events)

    program.prepare(tmp_path)
    subprocess.run(words, capture_output=True, check=True, timeout=100, **where)  # warm
    seen: list[Counter[tuple[str, int]]] = []
    for left in reversed(range(8 if program.races else 1)):
        seen += [told(lambda: straced(tmp_path, *words, **where)) for _ in range(2)]
        got = told(lambda: traced(tmp_path, *words, options=options, **where)[0])
        shutil.rmtree(tmp_path / "trace")
        if got in seen or not left:
            break
    if not program.races:
        assert seen[0] == seen[1], "strace does not agree with itself"
    nearest = seen[-1]
    assert got in seen, {key: (got[key], nearest[key]) for key in (got - nearest) | (nearest - got)}
    assert sum(got.values()) > 30 and {KIND_OF[call] for call, _ in got} > {"open", "exec"}
