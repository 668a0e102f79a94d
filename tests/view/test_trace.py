"""A trial of a program that no library can be loaded into: its system calls are recorded."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from processes import field, until
from world import World, compile_c

from brigade.paths import native

#: Looks up in each way, from a thread and from a child too; says what wait() gives at the end.
LOOKS = """
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static struct stat st;
static void *thread(void *none) { stat("by_thread", &st); return none; }
int main(int argc, char **argv)
{
    char text[100] = "";
    int status, fd = open("data", O_RDONLY);
    printf("%zd %d\\n", read(fd, text, sizeof text), argc);
    stat("no_such", &st);
    lstat("link", &st);
    access("data", R_OK);
    if (readlink("link", text, sizeof text) < 0) perror("link");
    DIR *dir = opendir("sub");
    while (dir && readdir(dir)) continue;
    close(open("made", O_WRONLY | O_CREAT, 0600));
    mkdir("folder", 0700);
    if (chdir("sub")) return 1;
    faccessat(AT_FDCWD, "../data", R_OK, 0);
    if (chdir("..")) return 1;
    pthread_t t;
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    pid_t child = fork();
    if (child == 0) { stat("by_child", &st); execlp("cat", "cat", "data", (char *)NULL); }
    waitpid(child, &status, 0);
    printf("%d %d %s\\n", status, wait(&status), strerror(errno));
    fflush(stdout);
    if (argc > 2) raise(atoi(argv[2]));
    return atoi(argv[1]);
}
"""


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("looks")
    return compile_c(LOOKS, folder / "looks", "-static", "-pthread")


@pytest.fixture
def place(world: World) -> Path:
    (world.tree / "data").write_text("four\n")
    (world.tree / "link").symlink_to("data")
    (world.tree / "sub").mkdir()
    return world.tree


def test_every_look_up_of_a_static_program_is_recorded(
    world: World, place: Path, looks: Path
) -> None:
    trial, done = world.record(looks, "0", cwd=place)
    assert done.returncode == 0, done.stderr
    program = next(p for p in trial.processes if p.exe == str(looks))
    found = {(r.kind, r.path.replace(f"{place}/", "", 1), r.status) for r in program.records}
    assert found >= {
        ("open", "data", 0), ("stat", "no_such", 2), ("lstat", "link", 0), ("access", "data", 0),
        ("readlink", "link", 0), ("list", "sub", 0), ("write", "made", 0), ("write", "folder", 0),
        ("access", "sub/../data", 0), ("stat", "by_thread", 2), ("stat", "by_child", 2),
    }  # fmt: skip
    assert (program.cwd, program.argv) == (str(place), [str(looks), "0"])
    # a child that our libraries reach records itself, once
    children = [p for p in trial.processes if p.exe.endswith("/cat")]
    assert [child.parent for child in children] == [program.pid]
    opened = [
        (p.exe, r.times)
        for p, r in trial.records()
        if (r.kind, r.path) == ("open", f"{place}/data")
    ]
    assert sorted(opened) == sorted([(str(looks), 1), (children[0].exe, 1)])


@pytest.mark.parametrize("arguments", [["7"], ["0", "15"], ["0", "6"]], ids=str)
def test_a_traced_program_ends_and_says_as_it_would(
    world: World, place: Path, looks: Path, arguments: list[str]
) -> None:
    plain = world.plain(looks, *arguments, cwd=place)
    for name in ("made", "folder"):
        subprocess.run(["rm", "-r", place / name], check=True)
    _, traced = world.record(looks, *arguments, cwd=place)
    assert (traced.stdout, traced.returncode) == (plain.stdout, plain.returncode)


def test_a_program_goes_on_when_it_is_stopped_or_its_tracer_killed(tmp_path: Path) -> None:
    program = compile_c(
        "#include <stdio.h>\nint main(){return getchar();}", tmp_path / "p", "-static"
    )
    (tmp_path / "records").mkdir()
    words = [native("brigade-rank"), "--record", tmp_path / "records", "--", program]
    process = subprocess.Popen(words, stdin=subprocess.PIPE)
    try:
        tracer = until(lambda: int(field(process.pid, "TracerPid")))
        process.send_signal(signal.SIGSTOP)
        until(lambda: field(process.pid, "State")[0] in "tT")
        process.send_signal(signal.SIGCONT)
        os.kill(tracer, signal.SIGKILL)
        until(lambda: field(process.pid, "TracerPid") == "0")
        process.communicate(b"A", timeout=60)
    finally:
        process.kill()
    assert process.wait(60) == ord("A")
