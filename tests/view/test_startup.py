"""What is the user's own is answered while a rank starts up, and is the real thing afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from world import World, compile_c, grow, run

SLOTS_OFF, START_OFF = 32, 8  #: of slots_off in struct brg_state, and start_ns in struct brg_slot

ASK = """
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void burn(double seconds)
{
    clock_t end = clock() + seconds * CLOCKS_PER_SEC;
    while (clock() < end) ;
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
/* As if the rank had started, and last looked up software, so much earlier. */
static void age(unsigned seconds)
{
    uint64_t slots, times[2];
    int fd = open(getenv("BRIGADE_STATE"), O_RDWR);
    if (pread(fd, &slots, 8, SLOTS_OFF) != 8 || pread(fd, times, 16, slots + START_OFF) != 16)
        abort();
    for (int i = 0; i < 2; i++) times[i] -= times[i] ? seconds * 1000000000ull : 0;
    if (pwrite(fd, times, 16, slots + START_OFF) != 16) abort();
    close(fd);
}
int main(int argc, char **argv)
{
    struct stat s;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "software")) stat("TREE/file", &s);
        if (!strcmp(argv[i], "ask")) ask();
        if (!strcmp(argv[i], "burn")) burn(3);
        if (!strcmp(argv[i], "burn1")) burn(1.2);
        if (!strcmp(argv[i], "vfork")) {
            if (!vfork()) { stat("TREE/file", &s); _exit(0); }
            wait(0);
        }
        if (!strcmp(argv[i], "age")) age(atoi(argv[++i]));
        if (!strcmp(argv[i], "fork") && fork()) return wait(0) < 0;
        fflush(stdout);
    }
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
    done = world.run(asks(world), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def asks(world: World) -> Path:
    """The program, whose arguments say what it does, one after the other."""
    numbers = f"-DSLOTS_OFF={SLOTS_OFF}", f"-DSTART_OFF={START_OFF}"
    source = ASK.replace("TREE", str(world.tree))
    return compile_c(source, world.base / "asks", *numbers)


NOW = f"late 0 size {len('edited by the user')}"


def test_during_start_up_the_image_answers_for_the_users_own(own: World) -> None:
    before, after = lines(own, "software", "ask", "ask")
    assert before == after
    assert "late -1" in before
    assert own.counts().misses == {}


def test_after_start_up_the_users_own_is_as_it_is_now(own: World) -> None:
    before, after = lines(own, "software", "ask", "burn", "ask")
    assert "late -1" in before
    assert NOW in after
    assert own.counts().misses == {"LATE": 3}


def test_start_up_once_over_stays_over(own: World) -> None:
    _, after = lines(own, "software", "ask", "burn", "ask", "software", "ask")[-2:]
    assert NOW in after


def test_software_is_answered_for_good(own: World) -> None:
    lines(own, "ask", "burn", "ask", "software")
    hits = own.counts().hits
    own.reset()
    lines(own, "ask", "burn", "ask")
    assert own.counts().hits == hits - 1
    assert all(not path.endswith("/file") for _, _, path in own.counts().log)


def test_start_up_ends_where_no_software_is_looked_up(own: World) -> None:
    before, after = lines(own, "ask", "burn", "ask")
    assert "late -1" in before
    assert NOW in after


def test_start_up_ends_though_software_is_looked_up_now_and_then(own: World) -> None:
    words = "software age 110 software ask age 11 software ask"
    before, after = lines(own, *words.split())
    assert "late -1" in before
    assert NOW in after


def test_a_rank_that_has_started_starts_no_process_up(own: World) -> None:
    """As a job that is driven by a script."""
    program = asks(own)
    commands = f"{program} software ask; {program} age 28 ask; {program} age 31 ask"
    done = own.run("/bin/sh", "-c", commands)
    first, soon, late = done.stdout.splitlines()
    assert "late -1" in first and "late -1" in soon
    assert NOW in late


def test_a_forked_child_has_used_no_time_of_its_parents(own: World) -> None:
    before, after = lines(own, "burn", "software", "ask", "fork", "burn", "ask")
    assert "late -1" in before
    assert NOW in after


@pytest.mark.parametrize("first", ["software", "burn1 vfork"])
def test_a_child_that_goes_on_looking_software_up_starts_up(own: World, first: str) -> None:
    """Its own time counts since its own last look-up, and not since it was forked."""
    (said,) = lines(own, *f"{first} fork burn1 software burn1 software ask".split())
    assert "late -1" in said


@pytest.mark.parametrize("first", ["burn1 vfork", "software"])
def test_a_look_up_by_a_child_of_vfork_is_its_parents(own: World, first: str) -> None:
    (said,) = lines(own, *f"{first} burn1 vfork burn1 ask".split())
    assert "late -1" in said


def test_a_moved_snapshot_is_listed_for_real(own: World) -> None:
    own.run("/bin/sh", "-c", f": > {own.tree}/open/made-by-the-job")
    (before,) = lines(own, "software", "ask")
    assert before.startswith(f"names {len(list((own.tree / 'open').iterdir())) + 2} ")


def test_a_link_of_the_users_own_leads_elsewhere_during_start_up_only(world: World) -> None:
    grow(world)
    for name in "one", "two":
        (world.base / name).mkdir()
        (world.base / name / "late").write_text("late")
        (world.base / name / "known").write_text(name * 3)
    latest = world.tree / "open" / "latest"
    latest.symlink_to(world.base / "one")
    world.put(unlisted=["open"])
    latest.unlink()
    latest.symlink_to(world.base / "two")
    (world.base / "two" / "known").write_text("longer than in one")
    source = ASK.replace("TREE/open", f"{latest}").replace("TREE", str(world.tree))
    numbers = f"-DSLOTS_OFF={SLOTS_OFF}", f"-DSTART_OFF={START_OFF}"
    program = compile_c(source, world.base / "asks", *numbers)
    done = world.run(program, "software", "ask", "burn", "ask")
    before, after = done.stdout.splitlines()
    assert before.endswith(f"size {len('one' * 3)}")
    assert after.endswith(f"size {len('longer than in one')}")
    assert world.counts().misses == {"LATE": 3}


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
