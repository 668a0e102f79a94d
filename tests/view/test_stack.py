"""Signal handlers open files on stacks of 8 KiB, which the kernel uses for the registers, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from world import World, compile_c, grow

#: that a call may take; the handler's frame comes on top, and the kernel's: 3.5 KiB with AVX-512
HOOKS_BYTES = 3584

HANDLES = """
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
enum { SIZE = 8192, PAGE = 4096 };
static const char *how, *path;
static int result, error;
static void handle(int signal)
{
    struct stat st;
    errno = 0;
    switch (*how) {
    case 'r': result = open(path, O_RDONLY); break;
    case 'w': result = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600); break;
    case 's': result = stat(path, &st); break;
    case 'a': result = access(path, R_OK); break;
    }
    error = errno;
}
static int used(unsigned char *stack)
{
    int i = 0;
    memset(stack, 0xa5, SIZE);
    raise(SIGUSR1);
    while (i < SIZE && stack[i] == 0xa5) i++;
    return SIZE - i;
}
int main(int argc, char **argv)
{
    unsigned char *room = mmap(0, PAGE + SIZE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(room, PAGE, PROT_NONE);
    stack_t stack = {.ss_sp = room + PAGE, .ss_size = SIZE};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&stack, 0) || sigaction(SIGUSR1, &action, 0)) return 2;
    how = "nothing";
    int alone = used(room + PAGE);
    how = argv[1], path = argv[2];
    int with = used(room + PAGE);
    printf("%s %s\\n", result < 0 ? "failed" : "worked", strerror(error));
    fprintf(stderr, "%d", with - alone);
    return 0;
}
"""


@pytest.fixture(scope="module")
def handles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(HANDLES, tmp_path_factory.mktemp("stack") / "handles", "-Wl,-z,now")


@pytest.mark.parametrize("how", ["read", "stat", "access"])
@pytest.mark.parametrize(
    "path",
    ["{tree}/file", "{tree}/chain", "{tree}/sub/up/to_dir/er/../er/leaf", "{tree}/sub/none",
     "{tree}/open/unknown", "file", "sub/none", "/no/such"],
)  # fmt: skip
def test_a_look_up_takes_little_stack(
    tree_world: World, handles: Path, how: str, path: str
) -> None:
    _same_with_little(tree_world, handles, how, path.format(tree=tree_world.tree))


@pytest.mark.parametrize(
    "path", ["{tree}/open/new", "{work}/new", "{work}/none/new", "{tree}/no/x"]
)
def test_a_file_is_written_with_little_stack(
    world: World, handles: Path, tmp_path: Path, path: str
) -> None:
    grow(world)
    world.put()
    _same_with_little(world, handles, "write", path.format(tree=world.tree, work=tmp_path))


def test_a_changed_file_is_opened_with_little_stack(world: World, handles: Path) -> None:
    grow(world)
    world.put()
    world.run("touch", world.tree / "file")
    _same_with_little(world, handles, "read", str(world.tree / "file"))


def _same_with_little(world: World, handles: Path, how: str, path: str) -> None:
    plain = world.plain(handles, how, path, cwd=world.tree)
    viewed = world.run(handles, how, path, cwd=world.tree)
    assert (viewed.returncode, viewed.stdout) == (plain.returncode, plain.stdout)
    assert int(viewed.stderr) < HOOKS_BYTES
