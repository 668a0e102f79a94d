"""What is the user's own is answered while a rank starts up, and is the real thing afterwards."""

from __future__ import annotations

import pytest
from world import World, compile_c, grow, run

ASK = """
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
static void burn(double seconds)
{
    while (clock() < seconds * CLOCKS_PER_SEC) ;
}
static void ask(void)
{
    struct stat s;
    int names = 0;
    DIR *d = opendir("TREE/open");
    while (d && readdir(d)) names++;
    printf("names %d late %d size %ld\\n", names, stat("TREE/open/late", &s),
           stat("TREE/open/known", &s) ? -1L : (long)s.st_size);
}
int main(int argc, char **argv)
{
    struct stat s;
    FILE *f;
    stat("TREE/file", &s);
    ask();
    burn(argc > 1 ? 3 : 0);
    if (argc > 2) stat("TREE/file", &s);
    ask();
    return 0;
}
"""


@pytest.fixture
def own(world: World) -> World:
    """`open` is the user's own: known as it was when the image was made, and since changed."""
    grow(world)
    world.put(unlisted=["open"], snapshots=["open"], absent=["open/late"])
    (world.tree / "open/late").write_text("came later")
    (world.tree / "open/known").write_text("edited by the user")
    return world


def lines(world: World, *arguments: str) -> list[str]:
    asks = compile_c(ASK.replace("TREE", str(world.tree)), world.base / "asks")
    done = world.run(asks, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_during_start_up_the_image_answers_for_the_users_own(own: World) -> None:
    before, after = lines(own)
    assert before == after
    assert "late -1" in before
    assert own.counts().misses == {}


def test_after_start_up_the_users_own_is_as_it_is_now(own: World) -> None:
    before, after = lines(own, "burn")
    assert "late -1" in before
    assert f"late 0 size {len('edited by the user')}" in after
    assert own.counts().misses == {"LATE": 3}


def test_start_up_once_over_stays_over(own: World) -> None:
    _, after = lines(own, "burn", "and look software up again")
    assert "late 0" in after


def test_software_is_answered_for_good(own: World) -> None:
    lines(own, "burn", "again")
    assert all(not path.endswith("/file") for _, _, path in own.counts().log)


def test_a_moved_snapshot_is_listed_for_real(own: World) -> None:
    own.run("/bin/sh", "-c", f": > {own.tree}/open/made-by-the-job")
    before, _ = lines(own)
    assert before.startswith(f"names {len(list((own.tree / 'open').iterdir())) + 2} ")


MISSING = """
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
    void *handle = dlopen("TREE/sub/libnone.so", RTLD_NOW);
    printf("%p %s\\n", handle, dlerror());
    printf("%s\\n", dlerror() ? "again" : "once");
    return 0;
}
"""


def test_a_missing_library_by_path_costs_nothing_and_is_told_in_the_same_words(
    world: World,
) -> None:
    grow(world)
    world.put()
    asks = compile_c(MISSING.replace("TREE", str(world.tree)), world.base / "asks", "-ldl")
    plain = world.plain(asks)
    assert "libnone.so: cannot open shared object file" in plain.stdout
    trace = world.base / "trace"
    rank = [world.rank, "--job", "test", "--view", "interpose", "--", str(asks)]
    done = run(["strace", "-f", "-e", "trace=%file", "-o", str(trace), *rank])
    assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)
    asked = [line for line in trace.read_text().splitlines() if f'"{world.tree}/sub' in line]
    assert asked == []
