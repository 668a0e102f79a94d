"""Containers: a process that sees other files than were staged gets those, and nothing of ours.

A runtime of containers is made here: it takes a mount namespace or a root of its own, and puts
another tree under the path of the staged one. What is staged says "a file", what is there
"the other".
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from containers import RUNTIME, refusal
from world import JOB, World, compile_c, grow, run

from brigade.paths import native

_HOME_OFF, _AWAY_OFF = 104, 128  # of brg_root home, and of away, in struct brg_state
_STRICT_STATUS = 125
SHOWS = """
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char text[100] = "";
    int fd = open(argv[1], O_RDONLY);
    return fd < 0 || read(fd, text, sizeof text - 1) <= 0 || write(1, text, strlen(text)) < 0;
}
"""


pytestmark = pytest.mark.skipif(bool(refusal()), reason=refusal() or "they can be made")


class Container:
    """A world with a tree that is staged, and another one for its path."""

    def __init__(self, world: World, runtimes: dict[str, Path]) -> None:
        grow(world)
        world.put()
        self.world, self.runtimes = world, runtimes
        self.other = world.base / "other"
        self.other.mkdir()
        self.inside = self.other / str(world.tree)[1:]  # where it lies if `other` is a root
        self.inside.mkdir(parents=True)
        for folder in (self.other, self.inside):
            (folder / "file").write_text("the other\n")
        shutil.copytree(world.stage, self.other / str(world.stage)[1:], symlinks=True)
        shutil.copy2(runtimes["shows"], self.inside / "shows")
        shutil.copy2(runtimes["shows"], self.other / "shows")

    def words(self, how: str, linked: str, *program: str) -> list[str]:
        words = [str(self.runtimes[linked]), how, str(self.other), str(self.world.tree)]
        return [*words, *program]

    @property
    def away(self) -> int:
        return struct.unpack_from("<I", self.world.state.read_bytes(), _AWAY_OFF)[0]

    def set_home(self) -> None:
        """As the stager of this node leaves it."""
        here = os.stat("/")
        mounts = os.stat("/proc/self/ns/mnt").st_ino
        state = bytearray(self.world.state.read_bytes())
        struct.pack_into("<3Q", state, _HOME_OFF, mounts, here.st_dev, here.st_ino)
        self.world.state.write_bytes(state)
        shutil.copy("/proc/self/mountinfo", self.world.state.parent / "mounts")

    def rank(self, *program: str) -> list[str]:
        return [self.world.rank, "--job", JOB, "--view", "interpose", "--", *program]


@pytest.fixture(scope="module")
def runtimes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runtimes")
    return {
        "static": compile_c(RUNTIME, folder / "static", "-static"),
        "dynamic": compile_c(RUNTIME, folder / "dynamic"),
        "shows": compile_c(SHOWS, folder / "shows", "-static"),
    }


@pytest.fixture
def container(world: World, runtimes: dict[str, Path]) -> Container:
    return Container(world, runtimes)


def both(test: Callable) -> Callable:
    for name, values in (("linked", ["static", "dynamic"]), ("how", ["mount", "root"])):
        test = pytest.mark.parametrize(name, values)(test)
    return test


@both
def test_what_a_container_shows_is_what_its_programs_read(
    container: Container, linked: str, how: str
) -> None:
    world = container.world
    assert world.run("/bin/cat", world.tree / "file").stdout == "a file\n"
    shows = f"{world.tree}/shows"
    words = container.words(how, linked, shows, f"{world.tree}/file")
    done = world.run(*words)
    assert (done.stdout, done.stderr, done.returncode) == ("the other\n", "", 0)


@both
def test_and_what_the_process_itself_reads_that_goes_there(
    container: Container, linked: str, how: str
) -> None:
    done = container.world.run(*container.words(how, linked))
    assert (done.stdout, done.stderr, done.returncode) == ("the other\n", "", 0)


@pytest.mark.parametrize("linked", ["static", "dynamic"])
def test_dynamic_programs_there_are_left_alone_and_counted(
    container: Container, linked: str
) -> None:
    world = container.world
    script = f"cat {world.tree}/file; grep -c libbrigade-preload /proc/self/maps"
    done = world.run(*container.words("mount", linked, "/bin/sh", "-c", script))
    assert done.stdout.split("\n")[:2] == ["the other", "0"], done.stderr
    assert done.stderr == ""
    assert container.away >= 1


def test_a_preloaded_library_that_cannot_be_loaded_there_ends_no_program(
    container: Container,
) -> None:
    """As where the container's C library is older than what it needs."""
    world = container.world
    library = world.stage / "root" / ".brigade" / "lib" / "libbrigade-preload.so"
    broken = library.read_bytes().replace(b"\0libc.so.6\0", b"\0libq.so.6\0")
    library.write_bytes(broken)
    assert world.run("/bin/cat", world.tree / "file").returncode != 0  # so it would be
    words = container.words("mount", "static", "/bin/cat", f"{world.tree}/file")
    done = world.run(*words)
    assert (done.stdout, done.stderr, done.returncode) == ("the other\n", "", 0)


@pytest.mark.parametrize("how", ["mount", "root"])
def test_a_trial_records_nothing_of_them(container: Container, how: str, tmp_path: Path) -> None:
    world = container.world
    shows = [f"{world.tree}/shows", f"{world.tree}/file"]
    trial, done = world.record(*container.words(how, "dynamic", *shows))
    assert done.stdout == "the other\n", done.stderr
    records = [(record.kind, record.path) for _, record in trial.records()]
    assert str(world.tree / "file") not in [path for _, path in records]
    assert ("away", str(container.runtimes["dynamic"])) in records
    assert trial.damaged == 0


@pytest.mark.parametrize("name", ["apptainer", "ch-run", "podman"])
def test_runtimes_that_are_known_start_with_nothing_of_ours(
    container: Container, tmp_path: Path, name: str
) -> None:
    runtime = tmp_path / name
    runtime.write_text("#!/bin/sh\nenv\n")
    runtime.chmod(0o755)
    before = {"PATH": os.defpath, "PYTHONPATH": "/mine"}
    for words in ([runtime], ["/bin/sh", "-c", f"{runtime}; :"]):
        done = container.world.run(*words, env=before)
        found = dict(line.split("=", 1) for line in done.stdout.splitlines())
        assert not [key for key in found if key.startswith(("LD_", "GLIBC_"))]
        assert not set(found) & {"BRIGADE_STAGE", "BRIGADE_STATE", "BRIGADE_SLOT", "BRIGADE_ROOT"}
        assert found["PYTHONPATH"] == "/mine"
    assert container.away == 2


def test_they_are_neither_traced_nor_put_into_a_namespace(tmp_path: Path) -> None:
    """A runtime may have rights from its file (setuid) that a tracer would take from it."""
    static = compile_c("int main(void) { return 0; }", tmp_path / "other", "-static")
    shutil.copy2(static, tmp_path / "apptainer")
    inspect = [str(native("brigade-rank")), "--inspect"]
    assert run([*inspect, str(static)]).stdout == "apart\n"
    assert run([*inspect, str(tmp_path / "apptainer")]).stdout == "contains\n"


# ---- ranks that are started in one ----


def test_a_rank_that_is_started_in_one_is_plain(container: Container) -> None:
    container.set_home()
    file = f"{container.world.tree}/file"
    assert run(container.rank("/bin/cat", file)).stdout == "a file\n"
    done = run(container.words("mount", "static", *container.rank("/bin/cat", file)))
    assert (done.stdout, done.stderr, done.returncode) == ("the other\n", "", 0)
    assert container.away == 1


def test_strictly_it_ends(container: Container) -> None:
    container.set_home()
    strict = [container.world.rank, "--strict", *container.rank("/bin/true")[1:]]
    done = run(container.words("mount", "static", *strict))
    assert done.returncode == _STRICT_STATUS
    assert "in a container" in done.stderr


def test_a_mount_namespace_with_the_same_software_is_no_container(
    container: Container, tmp_path: Path
) -> None:
    """As where a site gives each login a /tmp of its own."""
    container.set_home()
    world = container.world
    file = world.tree / "file"
    (tmp_path / "place").mkdir()
    file.write_text("changed!\n")
    for place, expected in ((tmp_path / "place", "a file\n"), (world.tree / "sub", "changed!\n")):
        words = [container.runtimes["static"], "mount", container.other, place]
        done = run([*map(str, words), *container.rank("/bin/cat", str(file))])
        assert (done.stdout, done.stderr) == (expected, "")


def test_without_the_stagers_mounts_ranks_in_others_are_plain(
    container: Container, tmp_path: Path
) -> None:
    container.set_home()
    (container.world.state.parent / "mounts").unlink()
    file = container.world.tree / "file"
    file.write_text("changed!\n")
    (tmp_path / "place").mkdir()
    words = [container.runtimes["static"], "mount", container.other, tmp_path / "place"]
    done = run([*map(str, words), *container.rank("/bin/cat", str(file))])
    assert (done.stdout, done.stderr) == ("changed!\n", "")
