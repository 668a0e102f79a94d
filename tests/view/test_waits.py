"""Ranks that wait for others in MPI_Init leave the processors to them; nobody else's sleep is
longer than asked for."""

from __future__ import annotations

import os
import subprocess
from itertools import pairwise

import pytest
from mpi_world import ENVIRONMENT, tools
from world import JOB, World, compile_c

#: Sleeps in turns, as Open MPI does, until so many milliseconds have passed.
WAITS = r"""
#include <time.h>
#include <unistd.h>
#ifdef OPEN_MPI
void ompi_mpi_init(void) {}
#endif
int waits(int ms, int us)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        if (usleep(us))
            return 1;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < ms);
    return 0;
}
"""
#: Tells what is asked of it.
TELLS = r"""
#include <stdio.h>
#include <time.h>
int usleep(unsigned microseconds)
{
    printf("%u\n", microseconds);
    return nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000L}, NULL);
}
"""
CALLS = r"""
#include <stdlib.h>
#include <unistd.h>
int waits(int, int);
int main(int n, char **v)
{
    int ms = atoi(v[1]), us = atoi(v[2]);
    return waits(ms, us) || (n > 3 && (sleep(atoi(v[3])) || waits(ms, us)));
}
"""
INIT = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
int main(void)
{
    struct rusage before, after;
    int late = atoi(getenv("OMPI_COMM_WORLD_RANK"));
    sleep(late);
    getrusage(RUSAGE_SELF, &before);
    MPI_Init(NULL, NULL);
    getrusage(RUSAGE_SELF, &after);
    if (!late)
        printf("%ld\n", after.ru_nvcsw - before.ru_nvcsw);
    return MPI_Finalize();
}
"""


@pytest.fixture
def asked(world: World):
    """What is asked of usleep by a program that waits in a library of some name."""
    tells = compile_c(TELLS, world.base / "tells.so", "-shared")

    def run(start, library: str, *numbers: int) -> list[int]:
        folder = world.tree / library
        app = folder / "app"
        if not app.exists():
            mine = ["-DOPEN_MPI"] if library in ("libmpi.so", "libmpi.so.40") else []
            file = compile_c(WAITS, folder / library, "-shared", f"-Wl,-soname,{library}", *mine)
            compile_c(CALLS, app, f"-Wl,{file}", f"-Wl,-rpath,{folder}")
            world.put()
        env = {**os.environ, "LD_PRELOAD": str(tells)}
        done = start(app, *map(str, numbers), env=env)
        assert done.returncode == 0, done.stderr
        return [int(line) for line in done.stdout.split()]

    return run


@pytest.mark.parametrize("library", ["libmpi.so", "libmpi.so.40"])
def test_open_mpi_waits_longer_the_longer_it_has_waited(world: World, asked, library: str) -> None:
    """mpi4py loads the link that is for linking."""
    assert set(asked(world.plain, library, 100, 100)) == {100}
    ours = asked(world.run, library, 100, 100)
    assert ours[0] == 100 and ours == sorted(ours)
    assert 2000 < ours[-1] <= 5000  # a thirty-second of what it had waited: 97 ms or more


def test_it_never_sleeps_for_more_than_five_milliseconds(world: World, asked) -> None:
    assert asked(world.run, "libmpi.so.40", 400, 100)[-1] == 5000


def test_another_wait_begins_anew(world: World, asked) -> None:
    ours = asked(world.run, "libmpi.so.40", 100, 100, 2)
    assert [after for before, after in pairwise(ours) if after < before] == [100]


@pytest.mark.parametrize(
    ("library", "us"),
    [("libmpi.so.40", 99), ("libmpi.so.40", 200), ("libwait.so.1", 100), ("libmpi.so.12", 100)],
)
def test_other_sleeps_are_as_long_as_they_were(world: World, asked, library: str, us: int) -> None:
    assert set(asked(world.run, library, 100, us)) == {us}


def test_a_rank_that_waits_in_mpi_init_leaves_the_processor_to_others(world: World) -> None:
    mpicc, launcher, _, _ = tools("openmpi")
    source, app = world.tree / "init.c", world.tree / "init"
    source.write_text(INIT)
    subprocess.run([mpicc, str(source), "-o", str(app)], check=True)
    world.put()

    def turns(*front: str) -> int:
        done = world.plain(*launcher, "2", *front, app, env={**os.environ, **ENVIRONMENT})
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    plain, ours = turns(), turns(world.rank, "--job", JOB, "--view", "interpose", "--")
    assert ours < plain / 3, (ours, plain)
    assert sum(world.counts().misses.values()) == 0
