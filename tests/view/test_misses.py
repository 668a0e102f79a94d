"""Every look-up under a covered root that goes to the real file system is counted, once."""

from __future__ import annotations

import pytest
from world import World, compile_c, grow

PROBES = {
    "UNKNOWN": ('stat(T "/open/unknown", &s)', "stat", "/open/unknown"),
    "NO_CONTENT": ('open(T "/file", O_RDONLY)', "open", "/file"),
    "WRITE": ('open(T "/open/known", O_RDWR)', "open", "/open/known"),
    "DIRECTORY": ('(long)opendir(T "/open")', "list", "/open"),
    "UNSUPPORTED": ('access(T "/open/known", W_OK)', "access", "/open/known"),
    "STAGE": ('open(T "/nothing", O_RDONLY)', "open", "/nothing"),
}
PROGRAM = """
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) { struct stat s; return (long)(%s) == -1; }
"""


@pytest.fixture
def partial(world: World) -> World:
    grow(world)
    world.put(unlisted=["open"], unread=["file"], forget=["open/unknown"])
    (world.stage / "root" / str(world.tree)[1:] / "nothing").unlink()
    return world


def program(world: World, body: str):
    text = PROGRAM.replace("%s", body).replace("T ", f'"{world.tree}" ')
    return compile_c(text, world.base / "asks")


@pytest.mark.parametrize("cause", PROBES)
def test_each_cause_is_counted_and_named(partial: World, cause: str) -> None:
    body, call, path = PROBES[cause]
    done = partial.run(program(partial, body))
    assert done.returncode == 0, "the real file system answers"
    counts = partial.counts()
    assert counts.misses == {cause: 1}
    assert counts.log == [(cause, call, f"{partial.tree}{path}")]


@pytest.mark.parametrize("cause", PROBES)
def test_strict_mode_aborts_for_what_is_the_images_fault(partial: World, cause: str) -> None:
    body, call, path = PROBES[cause]
    done = partial.run(program(partial, body), strict=True)
    if cause in ("UNKNOWN", "NO_CONTENT", "STAGE"):
        assert done.returncode == 125
        assert done.stderr.startswith(f"brigade: strict: {call} {partial.tree}{path}: ")
        assert done.stderr.count("\n") == 1
    else:
        assert (done.returncode, done.stderr) == (0, "")


def test_a_changed_entry_is_counted(partial: World) -> None:
    partial.run(program(partial, 'open(T "/open/known", O_WRONLY)'))
    partial.run(program(partial, 'stat(T "/open/known", &s)'))
    assert partial.counts().misses == {"WRITE": 1, "CHANGED": 1}


def test_answers_are_counted_and_what_is_elsewhere_is_not(partial: World) -> None:
    body = 'stat(T "/sub", &s) + access(T "/sub/none", 0) + 1 + stat("/usr", &s)'
    assert partial.run(program(partial, body)).returncode == 0
    counts = partial.counts()
    assert (counts.hits, counts.misses, counts.processes) == (2, {}, 1)


def test_the_list_of_misses_keeps_the_first_1024(partial: World) -> None:
    body = '({ for (int i = 0; i < 3000; i++) stat(T "/open/unknown", &s); 0; })'
    partial.run(program(partial, body))
    counts = partial.counts()
    assert counts.misses == {"UNKNOWN": 3000}
    assert len(counts.log) == 1024


def test_a_missing_state_starts_the_program_plainly(partial: World) -> None:
    partial.state.unlink()
    done = partial.run("/bin/sh", "-c", "echo ${LD_PRELOAD-none} ${BRIGADE_STAGE-none}")
    assert (done.stdout, done.returncode) == ("none none\n", 0)


@pytest.mark.parametrize("damage", [b"", b"short", bytes(4096)])
def test_a_damaged_stage_starts_the_program_plainly(partial: World, damage: bytes) -> None:
    (partial.stage / "index").write_bytes(damage)
    done = partial.run("/bin/sh", "-c", "echo ${LD_PRELOAD-none} ${BRIGADE_STAGE-none}")
    assert (done.stdout, done.stderr, done.returncode) == ("none none\n", "", 0)


def test_a_stage_that_goes_away_leaves_running_programs_right(partial: World) -> None:
    script = (
        "import os, shutil, subprocess, sys\n"
        "stage, tree = sys.argv[1:]\n"
        "open(tree + '/sub/script').read()\n"
        "shutil.rmtree(stage)\n"
        "print(open(tree + '/sub/script').read(), os.stat(tree + '/sub/script').st_size)\n"
        "print(subprocess.run([tree + '/sub/script'], capture_output=True, text=True).stdout)\n"
    )
    command = ["/usr/bin/python3", "-c", script, str(partial.stage), str(partial.tree)]
    done = partial.run(*command)
    assert done.stdout == "#!/bin/sh\necho hello\n 21\nhello\n\n", done.stderr
