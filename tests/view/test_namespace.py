"""The namespace view: covered folders are the staged ones, for static programs and raw calls too.

What the view answers is told apart from the original by changing the original after staging.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from world import JOB, World, compile_c, grow, run

from brigade.image.reader import Image
from brigade.paths import native

LIMIT_S = 60
#: Says what it sees of each path: by the libc where it is linked to one, and all calls are direct.
SEES = """
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char text[100] = "";
        struct stat st;
        int fd = open(argv[i], O_RDONLY);
        if (fd >= 0 && read(fd, text, sizeof text - 1) > 0) printf("%s", text);
        else if (fd >= 0 && fstat(fd, &st) == 0) printf("mode %o\\n", st.st_mode);
        else printf("%s\\n", strerror(errno));
        close(fd);
    }
    return 0;
}
"""
#: Tells its namespaces and its pid, then waits for a byte; given a pid and an address, reads there.
STAYS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
static char word[] = "from the other rank";
int main(int argc, char **argv)
{
    struct stat user, mount;
    char got[sizeof word] = "";
    stat("/proc/self/ns/user", &user);
    stat("/proc/self/ns/mnt", &mount);
    printf("%lu %lu %d %p", user.st_ino, mount.st_ino, getpid(), (void *)word);
    if (argc == 3) {
        struct iovec to = {got, sizeof got}, from = {(void *)strtoul(argv[2], 0, 16), sizeof got};
        if (process_vm_readv(atoi(argv[1]), &to, 1, &from, 1, 0) < 0) strcpy(got, strerror(errno));
        printf(" %s", got);
    }
    printf("\\n");
    fflush(stdout);
    if (argc == 1) getchar();
    return 0;
}
"""


def refusal() -> str:
    """Why this machine has no such view, or ''."""
    told = subprocess.run(
        [native("brigade-rank"), "--probe", "/dev/shm"], capture_output=True, text=True
    )
    for need in ("user_namespaces", "ids", "mounts", "overlay"):
        if f'"{need}":true' not in told.stdout:
            return f"needs {need} for ordinary users: {told.stdout}"
    return ""


pytestmark = pytest.mark.skipif(bool(refusal()), reason=refusal() or "the kernel allows it")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("programs")
    folder.chmod(0o755)
    return {
        "sees": compile_c(SEES, folder / "sees", "-static"),
        "stays": compile_c(STAYS, folder / "stays", "-static"),
    }


@pytest.fixture
def tree(world: World) -> World:
    """A tree of software, staged; then every file of it is changed."""
    grow(world)
    (world.tree / "work").mkdir()
    world.put(
        absent=["open/absent"], unlisted=["open"], forget=["open/unknown"], unread=["private"]
    )
    for name in ("file", "sub/deep/er/leaf", "open/known", "open/unknown", "private"):
        (world.tree / name).write_text("the original\n")
    return world


def sees(world: World, programs: dict[str, Path], *paths: str, **options) -> list[str]:
    done = world.run(
        programs["sees"], *(world.tree / p for p in paths), view="namespace", **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_static_program_sees_staged_files_and_the_original_where_nothing_is_known(
    tree: World, programs: dict[str, Path]
) -> None:
    paths = [
        "file",
        "sub/deep/er/leaf",
        "absolute/er/leaf",
        "open/known",
        "private",
        "open/unknown",
    ]
    assert (
        sees(tree, programs, *paths) == ["a file", "leaf", "leaf", "known"] + ["the original"] * 2
    )
    plain = tree.plain(programs["sees"], *(tree.tree / path for path in paths))
    assert plain.stdout == "the original\n" * len(paths)


def test_known_absences_are_answered_and_unknown_names_are_found(
    tree: World, programs: dict[str, Path]
) -> None:
    (tree.tree / "open" / "absent").write_text("made since\n")
    (tree.tree / "open" / "new").write_text("new\n")
    (tree.tree / "sub" / "deep" / "er" / "made").write_text("made since\n")
    gone = os.strerror(2)
    complete = "sub/deep/er/made"  # in a folder of which all is staged
    assert sees(tree, programs, "open/absent", "open/new", complete) == [gone, "new", gone]


def test_links_and_folders_are_as_they_were(tree: World) -> None:
    script = (
        'cd "$0" && ls -R . && for l in $(find . -type l | sort); do readlink $l; done; stat -c '
    )
    script += '"%n %A %y" sub sub/deep file absolute; pwd -P; readlink -f /proc/self/exe'
    words = ["/bin/sh", "-c", script, tree.tree]
    under, plain = tree.run(*words, view="namespace"), tree.plain(*words)
    changed = [line for line in plain.stdout.splitlines() if line.startswith("file ")]
    assert len(changed) == 1 and "absolute" in plain.stdout
    assert under.stdout.splitlines()[-1] == plain.stdout.splitlines()[-1]
    lines = [
        [x for x in out.stdout.splitlines() if not x.startswith("file ")] for out in (under, plain)
    ]
    assert lines[0] == lines[1]


def test_with_the_namespace_alone_nothing_of_ours_is_in_the_environment(tree: World) -> None:
    before = {"PATH": os.defpath, "X": "1"}
    under = tree.run("/usr/bin/env", view="namespace", env=before)
    assert sorted(under.stdout.split()) == sorted(f"{k}={v}" for k, v in before.items())


def test_the_folder_that_the_job_works_in_stays_writable(tree: World) -> None:
    work = tree.tree / "work"
    done = tree.run("/bin/sh", "-c", "echo out > made; cat ../file", view="namespace", cwd=work)
    assert (done.stdout, done.stderr) == ("the original\n", "")
    assert (work / "made").read_text() == "out\n"
    done = tree.run(
        "/bin/sh", "-c", f"cat {tree.tree}/sub/deep/er/leaf", view="namespace", cwd=work
    )
    assert done.stdout == "leaf\n"


def test_a_folder_of_the_users_own_inside_software_stays_writable(
    world: World, programs: dict[str, Path]
) -> None:
    grow(world)
    world.put(unlisted=["open"], entered=["open"])
    (world.tree / "open" / "known").write_text("the original\n")
    (world.tree / "file").write_text("the original\n")
    made = world.tree / "open" / "made"
    done = world.run("/bin/sh", "-c", f"echo out > {made}", view="namespace")
    assert done.stderr == "" and made.read_text() == "out\n"
    assert sees(world, programs, "open/known", "file") == ["the original", "a file"]


def test_what_changed_before_the_job_is_in_no_cover(
    world: World, programs: dict[str, Path]
) -> None:
    grow(world)
    for folder in ("lib", "lib/below"):
        (world.tree / folder).mkdir()
        (world.tree / folder / "known").write_text("staged\n")
    world.put()
    names = ["sub/deep/er/leaf", "sub/script", "file", "lib/known", "lib/below/known"]
    with Image(world.base / "image") as image:
        entry = image.lookup(str(world.tree / "sub/deep/er/leaf")).entry
        assert entry is not None
    state = bytearray(world.state.read_bytes())
    dirty = int.from_bytes(state[40:48], "little")  # struct brg_state: dirty_off
    state[dirty + entry.number // 8] |= 1 << entry.number % 8
    world.state.write_bytes(state)
    for name in names:
        (world.tree / name).write_text("the original\n")
    assert sees(world, programs, *names) == ["the original"] * 3 + ["staged"] * 2


def test_software_cannot_be_written_and_is_not(tree: World) -> None:
    done = tree.run("/usr/bin/touch", tree.tree / "sub" / "new", view="namespace")
    assert "Read-only file system" in done.stderr and not (tree.tree / "sub" / "new").exists()


class Ranks:
    """Ranks of one job that stay until they are told to go."""

    def __init__(self, world: World, program: Path) -> None:
        self.world, self.program = world, program
        self.processes: list[subprocess.Popen] = []

    def start(self, *arguments: str) -> subprocess.Popen:
        words = [self.world.rank, "--job", JOB, "--view", "namespace", "--", str(self.program)]
        process = subprocess.Popen(
            [*words, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.processes.append(process)
        return process

    def tell(self, process: subprocess.Popen) -> tuple[str, str, list[str]]:
        """User namespace, mount namespace, and the rest of what a rank says."""
        assert process.stdout
        user, mounts, *rest = process.stdout.readline().split(maxsplit=4)
        return user, mounts, rest

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate(timeout=LIMIT_S)


@pytest.fixture
def ranks(tree: World, programs: dict[str, Path]) -> Iterator[Ranks]:
    made = Ranks(tree, programs["stays"])
    yield made
    made.end()


def test_ranks_that_start_at_once_share_one_namespace(ranks: Ranks) -> None:
    started = [ranks.start() for _ in range(12)]
    told = {ranks.tell(process)[:2] for process in started}
    own = {str(os.stat(f"/proc/self/ns/{kind}").st_ino) for kind in ("user", "mnt")}
    assert len(told) == 1 and own.isdisjoint(told.pop())


def test_a_rank_reads_anothers_memory(ranks: Ranks) -> None:
    """CMA, by which MPI libraries move large messages within a node."""
    _, _, (pid, address) = ranks.tell(ranks.start())
    assert ranks.tell(ranks.start(pid, address))[2][2].strip() == "from the other rank"


def test_a_namespace_lives_on_with_any_rank_and_ends_with_the_last(ranks: Ranks) -> None:
    first = ranks.start()
    place = ranks.tell(first)[:2]
    second = ranks.start()
    assert ranks.tell(second)[:2] == place
    first.send_signal(signal.SIGKILL)
    first.wait(LIMIT_S)
    third = ranks.start()
    assert ranks.tell(third)[:2] == place
    for process in (second, third):
        process.send_signal(signal.SIGKILL)
        process.wait(LIMIT_S)
    assert held_by(ranks.world.tree) == []
    fourth = ranks.start()
    assert ranks.tell(fourth)[0]  # a new one: it may have the old one's number again
    assert held_by(ranks.world.tree) == [str(fourth.pid)]


#: Starts a program and sees to it that who is joined by it (`stays`) ends in that very moment.
ENDS = """
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void end_who_is_joined(int tracee, int fd)
{
    char path[64], line[100] = "";
    int pid = 0;
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", tracee, fd);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pid: %d", &pid) == 1) break;
    if (file) fclose(file);
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    if (!(file = fopen(path, "r"))) return;
    if (fgets(line, sizeof line, file) && strstr(line, "/stays")) {
        kill(pid, SIGKILL);
        snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
        while (access(path, F_OK) == 0) usleep(1000);
    }
    fclose(file);
}
int main(int argc, char **argv)
{
    int child = fork(), status = 0;
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execv(argv[1], argv + 1);
        _exit(127);
    }
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        struct __ptrace_syscall_info info = {0};
        ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_setns)
            end_who_is_joined(child, (int)info.entry.args[0]);
        ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD);
        ptrace(PTRACE_SYSCALL, child, 0, WSTOPSIG(status) == SIGCHLD ? SIGCHLD : 0);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
"""


def test_a_rank_that_ends_while_it_is_joined_leaves_nobody_without(
    ranks: Ranks, programs: dict[str, Path], tmp_path: Path
) -> None:
    """The next one that lives is joined (and, here, killed, too); at last it is made anew."""
    ends = compile_c(ENDS, tmp_path / "ends")
    joined = [ranks.start() for _ in range(3)]
    place = {ranks.tell(process)[:2] for process in joined}
    assert len(place) == 1
    words = [ranks.world.rank, "--job", JOB, "--view", "namespace", "--strict", "--"]
    done = run([str(ends), *words, str(programs["sees"]), str(ranks.world.tree / "file")])
    assert (done.stdout, done.stderr) == ("a file\n", "")
    assert [process.wait(LIMIT_S) for process in joined] == [-signal.SIGKILL] * 3


def test_a_rank_whose_number_is_anothers_by_now_is_not_joined(
    ranks: Ranks, programs: dict[str, Path]
) -> None:
    world = ranks.world
    gone = ranks.start()
    ranks.tell(gone)
    gone.kill()
    gone.wait(LIMIT_S)
    state = bytearray(world.state.read_bytes())
    slots = int.from_bytes(state[32:40], "little")  # struct brg_state: slots_off
    assert int.from_bytes(state[slots : slots + 4], "little") == gone.pid
    state[slots : slots + 4] = os.getpid().to_bytes(4, "little")
    world.state.write_bytes(state)
    assert sees(world, programs, "file", strict=True) == ["a file"]


def held_by(tree: Path) -> list[str]:
    """Processes that have a cover mounted on `tree`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "mountinfo").read_text()
        except OSError:
            continue
        if any(" overlay brigade " in x and f" {tree} " in x for x in text.split("\n")):
            found.append(process.name)
    return sorted(found)


def test_a_maker_that_is_killed_holds_up_nobody(tree: World, programs: dict[str, Path]) -> None:
    """A rank that stops while it makes the namespace, and is killed: the next one makes another."""
    for delay in (0.0, 0.001, 0.002, 0.004, 0.008):
        words = [tree.rank, "--job", JOB, "--view", "namespace", "--", "/bin/true"]
        process = subprocess.Popen(words)
        time.sleep(delay)
        process.kill()
        process.wait(LIMIT_S)
    assert sees(tree, programs, "file") == ["a file"]


# ---- who may not ----

#: In a user namespace of its own in which no further ones may be made.
WITHOUT = ["unshare", "--user", "--map-root-user", "/bin/sh", "-c"]
WITHOUT += ['echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', "sh"]


def test_without_user_namespaces_the_job_runs_by_the_other_views(
    tree: World, programs: dict[str, Path]
) -> None:
    words = [tree.rank, "--job", JOB, "--view", "namespace", "--", "/bin/cat", tree.tree / "file"]
    done = run([*WITHOUT, *map(str, words)])
    assert (done.stdout, done.stderr, done.returncode) == ("a file\n", "", 0)
    assert tree.counts().hits > 0  # interpose
    state = tree.state.read_bytes()
    tree.reset()
    assert state != tree.state.read_bytes()


def test_strictly_a_rank_without_its_namespace_ends(tree: World) -> None:
    words = [tree.rank, "--job", JOB, "--view", "namespace", "--strict", "--", "/bin/true"]
    done = run([*WITHOUT, *words])
    assert done.returncode == 125
    assert "no user namespaces for this user" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_an_ordinary_user_is_himself_in_it(programs: dict[str, Path]) -> None:
    user = pwd.getpwnam("nobody")
    base = Path(tempfile.mkdtemp(prefix="brigade-user-", dir="/tmp"))
    try:
        world = World(base)
        grow(world)
        (world.tree / "mine").mkdir()
        world.put(unlisted=["open"])
        run(["chown", "-Rh", f"{user.pw_uid}:{user.pw_gid}", str(base)], check=True)
        os.chown(world.tree / "file", 0, 0)
        (world.tree / "file").write_text("the original\n")
        script = f"id -u; id -g; cat {world.tree}/file; stat -c %u {world.tree}/sub/script; "
        script += f"touch {base}/written; grep -c overlay.brigade /proc/self/mountinfo"
        options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}
        done = world.run("/bin/sh", "-c", script, view="namespace", **options)
        uid, gid = str(user.pw_uid), str(user.pw_gid)
        assert done.stdout.split("\n")[:5] == [uid, gid, "a file", uid, "1"], done.stderr
        assert os.stat(base / "written").st_uid == user.pw_uid
    finally:
        shutil.rmtree(base)
