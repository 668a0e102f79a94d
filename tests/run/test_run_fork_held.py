"""Libraries that hold their own file open, as libffi's static trampolines do: `ctypes` makes one as
it is imported wherever libffi is built with them, and nearly everything imports `ctypes`."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from project import Site

#: does what libffi does (src/tramp.c there), by its name
LIBRARY = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int __open_2(const char *path, int flags); /* of what is compiled with _FORTIFY_SOURCE */
static int held = -1;
static int is_here(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, held, 0);
    int same = page != MAP_FAILED && memcmp(page, "\177ELF", 4) == 0;
    return munmap(page, 4096), same;
}
int begin(void)
{
    char line[8192], file[4096], name[64];
    unsigned long start, end, me = (unsigned long)begin;
    snprintf(name, sizeof name, "/proc/%d/maps", getpid());
    FILE *maps = fopen(name, "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %s", &start, &end, file) == 3 && start <= me &&
            me < end)
            break;
    fclose(maps);
    held = OPEN(file, O_RDONLY);
    return is_here();
}
int again(void) { return is_here(); }
int number(void) { return held; }
"""
HOLDS = """
import ctypes, os
library = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libffi.so.77"))
begun = library.begin()
"""
APP = """
import json, os, sys
file = os.open(__file__, os.O_RDONLY)
import pkg.holds as h
os.write(1, (json.dumps([h.begun, h.library.again(), file, os.getppid()]) + "\\n").encode())
if h.library.number() > 900:
    os.write(2, b"apart\\n")
"""
FORK = ("--fork", "-n", "2")


@pytest.fixture(params=["open", "__open_2"])
def holds(site: Site, request: pytest.FixtureRequest) -> Site:
    source = site.base / "holds.c"
    source.write_text(LIBRARY)
    library = site.package / "libffi.so.77"
    subprocess.run(
        ["cc", f"-DOPEN={request.param}", "-shared", "-fPIC", "-o", library, source], check=True
    )
    (site.package / "holds.py").write_text(HOLDS)
    site.app.write_text(APP)
    return site


def ranks(done: subprocess.CompletedProcess[str]) -> list[list[int]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_library_that_holds_its_own_file_is_warm_and_goes_on_holding_it(holds: Site) -> None:
    holds.brigade(run=FORK)
    done = holds.brigade(run=FORK)
    one, two = ranks(done)
    assert one == two and one[:2] == [1, 1], (one, two)
    assert done.stderr.count("apart") == 2  # warm, where no rank's own are
    assert holds.report()["fork"]["ranks"] == 2
    plain = ranks(holds.plain())[0]
    assert plain[:3] == one[:3]  # the program's own have the numbers that they have without


def test_a_rank_that_has_one_in_its_place_is_started_by_itself(holds: Site) -> None:
    holds.brigade(run=FORK)
    read, write = os.pipe()
    os.dup2(read, 960)
    try:
        done = holds.brigade(run=FORK, pass_fds=[960])
    finally:
        for fd in (read, write, 960):
            os.close(fd)
    assert [one[:2] for one in ranks(done)] == [[1, 1]] * 2
    assert "apart" not in done.stderr and holds.report()["fork"]["ranks"] == 0
    assert "could not take over its descriptors" in done.stderr


def test_where_no_descriptor_may_be_so_high_it_is_left(holds: Site) -> None:
    words = ["sh", "-c", 'ulimit -n 900 && exec "$0" "$@"', str(holds.python), str(holds.app)]
    for _ in range(2):
        done = holds.brigade_of(words, FORK)
    assert [one[:2] for one in ranks(done)] == [[1, 1]] * 2
    assert "apart" not in done.stderr
