"""What the job writes is seen by the job, whoever of the node's processes wrote it, and counted."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from libc_version import GLIBC
from world import World, compile_c, grow

PYTHON = "/usr/bin/python3"
DIRTY_ANY_OFF, UNSEEN = 64, 4  #: of dirty_any in struct brg_state, and LOOK_UNSEEN
CAN_CHOWN = struct.pack("<5I", 0x02000001, 1, 0, 0, 0)  #: as `setcap cap_chown+ep`


@pytest.fixture
def grown(world: World) -> World:
    grow(world)
    return world.put(absent=["open/absent", "open/later", "sub/absent"], unlisted=["open"])


HELPERS = """
import os
def has(*paths): return [os.path.lexists(t + p) for p in paths]
def names(path): return sorted(os.listdir(t + path))
def read(path): return open(t + path).read()
def write(path, text="x", mode="w"): open(t + path, mode).write(text)
def stat(path): return os.stat(t + path)
def fd(path): return os.open(t + path, os.O_RDONLY)
"""


def script(world: World, text: str) -> str:
    return f"t = {str(world.tree)!r}{HELPERS}{text}"


def python(world: World, text: str, **options) -> str:
    done = world.run(PYTHON, "-S", "-c", script(world, text), **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


CHANGES = {  # what a process does: what it and a later one are asked
    "write('/file', 'new')": "read('/file'), stat('/file').st_size",
    "write('/file', 'new', 'a')": "stat('/file').st_size",
    "os.truncate(t + '/file', 1)": "read('/file')",
    "write('/sub/new')": "has('/sub/new'), names('/sub')",
    "write('/open/absent')": "read('/open/absent')",
    "os.makedirs(t + '/sub/a/b'); write('/sub/a/b/c')": "has('/sub/a/b/c')",
    "os.makedirs(t + '/open/later/x')": "names('/open/later')",
    "os.unlink(t + '/file')": "has('/file')",
    "os.remove(t + '/to_file')": "has('/to_file')",
    "os.rmdir(t + '/empty')": "has('/empty'), names('')",
    "os.rename(t + '/file', t + '/sub/moved')": "has('/file'), read('/sub/moved')",
    "os.rename(t + '/sub', t + '/b')": "has('/sub/deep/er', '/b/deep/er/leaf', '/to_dir/er')",
    "os.rename(t + '/sub', t + '/c')": "has('/sub/../file', '/c/../file', '/file')",
    "os.mkdir('n'); open('n/f', 'w'); os.rename('n', t + '/open/later')": "names('/open/later')",
    "os.symlink('file', t + '/sub/absent')": "os.readlink(t + '/sub/absent')",
    "os.unlink(t + '/to_dir'); os.symlink('open', t + '/to_dir')":
        "has('/to_dir/known', '/to_dir/er/leaf')",
    "os.link(t + '/file', t + '/third')": "stat('/file').st_nlink",
    "os.chmod(t + '/file', 0o444)": "stat('/file').st_mode",
    "os.fchmod(fd('/file'), 0o400)": "stat('/file').st_mode",
    "os.utime(t + '/file', (5, 6))": "stat('/file').st_mtime",
    "os.utime(fd('/file'), (5, 6))": "stat('/file').st_mtime",
    "os.chown(t + '/file', os.getuid(), os.getgid())": "stat('/file').st_ctime_ns",
    "os.mkfifo(t + '/sub/pipe')": "stat('/sub/pipe').st_mode",
    "os.mkdir('made', dir_fd=fd('/sub'))": "has('/sub/made')",
    "os.chdir(t + '/sub'); open('here', 'w').write('h')": "read('/sub/here')",
    "os.replace('file', 'sub/r', src_dir_fd=fd(''), dst_dir_fd=fd(''))": "has('/file', '/sub/r')",
    "from shutil import *; copytree(t + '/sub', t + '/c', symlinks=True); rmtree(t + '/sub')":
        "has('/sub/deep'), names('/c')",
    "import tempfile; open(tempfile.mkdtemp(dir=t + '/sub') + '/f', 'w')":
        "len(names('/sub')), sum(len(f) for _, _, f in os.walk(t + '/sub'))",
    "os.symlink(t + '/sub', 'way'); open('way/in', 'w').write('t')": "read('/sub/in')",
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_at_once_and_by_later_processes(
    grown: World, change: str, tmp_path: Path
) -> None:
    question = CHANGES[change]
    here = tmp_path / "cwd"
    here.mkdir()
    before = python(grown, f"try: print({question})\nexcept OSError as e: print(e)")
    own = python(grown, f"{change}\nprint({question})", cwd=here)
    later = python(grown, f"print({question})", cwd=here)
    real = grown.plain(PYTHON, "-c", script(grown, f"print({question})")).stdout
    assert (own, later) == (real, real)
    assert before != real
    assert grown.counts().misses["WRITE"] >= 1


def test_a_staged_copy_is_never_changed(grown: World) -> None:
    copy = grown.stage / "root" / str(grown.tree)[1:] / "file"
    before = (copy.read_text(), copy.stat().st_mode, copy.stat().st_mtime_ns)
    python(
        grown,
        "f = fd('/file')\n"
        "os.fchmod(f, 0o400); os.utime(f, (1, 2)); os.fchown(f, os.getuid(), -1)\n"
        "write('/file', 'other')\n",
    )
    assert (copy.read_text(), copy.stat().st_mode, copy.stat().st_mtime_ns) == before


@pytest.mark.parametrize(
    "write",
    [
        "os.write(os.open(f'/proc/self/fd/{f}', os.O_WRONLY), b'new')",
        "os.write(os.open(f'/dev/fd/{f}', os.O_RDWR | os.O_CREAT), b'new')",
        "os.dup2(f, 0); open('/dev/stdin', 'r+').write('new')",
        "os.dup2(f, 0); import ctypes; c = ctypes.CDLL(None); c.fopen.restype = ctypes.c_void_p;"
        " c.fputs(b'new', ctypes.c_void_p(c.fopen(b'/dev/stdin', b'r+'))); c.fflush(None)",
        "import ctypes; c = ctypes.CDLL(None); os.write(c.creat(b'/dev/fd/%d' % f, 0o600), b'new')",
    ],
)
def test_what_is_written_through_a_descriptors_name_is_the_original(
    grown: World, write: str
) -> None:
    copy = grown.stage / "root" / str(grown.tree)[1:] / "file"
    before = copy.read_text()
    seen = python(grown, f"f = fd('/file'); {write}; print(read('/file'))")
    assert seen.startswith("new")
    assert python(grown, "print(read('/file'))") == seen == (grown.tree / "file").read_text() + "\n"
    assert copy.read_text() == before


def test_nothing_is_marked_when_the_call_failed(grown: World) -> None:
    python(
        grown,
        "for call in (os.mkdir, os.rmdir):\n"
        "    try: call(t + '/sub')\n"
        "    except OSError: pass\n"
        "stat('/sub/deep')\n",
    )
    counts = grown.counts()
    assert counts.misses == {"WRITE": 2}


REWINDS = """
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void list(DIR *d, const char *when)
{
    int names = 0, sum = 0;
    for (struct dirent *e; (e = readdir(d)); names += e->d_name[0] != '.')
        for (const char *c = e->d_name; *c; c++) sum += *c;
    printf("%s: %d names, sum %d, at the end %d\\n", when, names, sum, readdir(d) == NULL);
}
int main(int argc, char **argv)
{
    int rounds = 0, left = 1;
    chdir(argv[1]);
    DIR *d = opendir(".");
    if (argc > 2) fchdir(dirfd(d));
    list(d, "first");
    close(open("new", O_CREAT | O_WRONLY, 0600));
    rewinddir(d);
    list(d, "with another");
    for (; left && rounds < 50; rounds++) { /* one a round, as some programs empty a folder */
        struct dirent *e;
        left = 0;
        rewinddir(d);
        while (!left && (e = readdir(d)))
            left = e->d_name[0] != '.' && unlink(e->d_name) == 0;
    }
    printf("%d rounds\\n", rounds);
    rmdir(argv[1]);
    rewinddir(d);
    list(d, "gone");
    return closedir(d);
}
"""


@pytest.mark.parametrize("descriptor", [[], ["dirfd"]])
def test_a_rewound_directory_is_read_anew(world: World, descriptor: list[str]) -> None:
    def fill(name: str) -> None:
        (world.tree / name).mkdir()
        for i in range(12):
            (world.tree / name / f"file{i}").touch()

    fill("folder")
    world.put()
    rewinds = compile_c(REWINDS, world.base / "rewinds")
    viewed = world.run(rewinds, world.tree / "folder", *descriptor)
    fill("folder")
    plain = world.plain(rewinds, world.tree / "folder", *descriptor)
    assert "14 rounds" in plain.stdout
    assert (viewed.stdout, viewed.returncode) == (plain.stdout, plain.returncode)
    assert world.counts().hits > 0


def test_a_link_outside_that_leads_in_is_followed_where_the_job_has_put_it(
    world: World,
) -> None:
    grow(world)
    link = world.base / "current"
    link.symlink_to("shared/sub")
    world.put(stones=[link])
    text = f"""
way = {str(link)!r}
read = lambda: open(way + "/deep/er/leaf").read() if os.path.exists(way + "/deep") else "none"
print(read(), os.path.exists(way + "/twin"))
os.symlink("shared", way + ".new"); os.rename(way + ".new", way)
print(read(), os.path.exists(way + "/file"), os.path.realpath(way + "/file"))
"""
    before, _, after = python(world, text).splitlines()
    assert before == "leaf"
    assert after == f"none True {world.tree}/file"


WRITES = """
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int f = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    return write(f, argv[2], strlen(argv[2])) < 0 || close(f);
}
"""
ASKS = """
import subprocess
def told(): return [open(t + p).read() if os.path.exists(t + p) else None for p in PATHS]
PATHS = ["/open/known", "/open/absent", "/open/out/here"]
before = told()
for path in PATHS: subprocess.run([tool, t + path, "new"], check=True)
print(before, told(), os.path.exists(t + "/file"))
"""


@pytest.mark.parametrize("name", ["static", "mpirun", "ldconfig"])
def test_what_a_program_that_is_not_seen_writes_is_seen(
    world: World, tmp_path: Path, name: str
) -> None:
    """In the user's own files. What is called ldconfig writes nothing of a user's, and is asked by
    many a Python package: the image goes on to answer."""
    grow(world)
    (tmp_path / "here").write_text("elsewhere")
    (world.tree / "open" / "out").symlink_to(tmp_path)
    world.put(absent=["open/absent"], unlisted=["open"])
    tool = compile_c(WRITES, tmp_path / name, *(["-static"] if name != "mpirun" else []))
    said = python(world, f"tool = {str(tool)!r}\n{ASKS}")
    before = ["known\n", None, "elsewhere"]
    after = ["known\n", None, "new"] if name == "ldconfig" else ["new"] * 3
    assert said == f"{before} {after} True\n"


STARTS = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
typedef int execveat_(int, const char *, char *const *, char *const *, int);
int main(int argc, char **argv) /* how, and the tool's arguments; in its folder */
{
    char *const words[] = {"tool", argv[2], argv[argc - 1], NULL};
    int status, dir = open(".", O_RDONLY);
    posix_spawn_file_actions_t goes;
    pid_t pid;
    posix_spawn_file_actions_init(&goes);
    setenv("PATH", "none:.:/usr/bin", 1);
    if (!strcmp(argv[1], "relative"))
        status = posix_spawn(&pid, "./tool", NULL, NULL, words, environ);
    else if (!strcmp(argv[1], "searched"))
        status = posix_spawnp(&pid, "tool", NULL, NULL, words, environ);
    else if (!strcmp(argv[1], "from elsewhere"))
        status = posix_spawn_file_actions_addfchdir_np(&goes, dir) || chdir("/") ||
                 posix_spawn(&pid, "./tool", &goes, NULL, words, environ);
    else if (!(pid = fork()))
        _exit(((execveat_ *)dlsym(RTLD_DEFAULT, "execveat"))(dir, "tool", words, environ, 0));
    else
        status = 0;
    return status || waitpid(pid, &status, 0) != pid || status;
}
"""


@pytest.mark.skipif(GLIBC < (2, 34), reason="needs execveat, and posix_spawn that changes folders")
@pytest.mark.parametrize("how", ["relative", "searched", "from elsewhere", "by descriptor"])
def test_however_a_program_that_is_not_seen_is_started(
    world: World, tmp_path: Path, how: str
) -> None:
    """A relative path counts from where the child is, which nobody else need know."""
    grow(world)
    world.put(absent=["open/absent"], unlisted=["open"])
    compile_c(WRITES, tmp_path / "tool", "-static")
    starts = compile_c(STARTS, tmp_path / "starts", "-ldl")
    text = f"""
import subprocess
def told(): return read("/open/known"), has("/open/absent"), has("/file")
before = told()
for name in "known", "absent":
    words = [{str(starts)!r}, {how!r}, t + "/open/" + name, "new"]
    subprocess.run(words, check=True, cwd={str(tmp_path)!r})
print(before, told())
"""
    assert python(world, text) == "('known\\n', [False], [True]) ('new', [True], [True])\n"


def is_taken_for_unseen(world: World, *command: str | Path) -> bool:
    """Whether the user's own files are left to the file system for what a process starts."""
    done = world.run("/bin/sh", "-c", '"$@"; :', "sh", *command)
    assert done.returncode == 0, done.stderr
    return bool(world.state.read_bytes()[DIRTY_ANY_OFF] & UNSEEN)


@pytest.mark.parametrize("by", ["", "set-uid", "set-gid", "capability"])
def test_what_ld_so_takes_our_libraries_from_is_not_seen(
    world: World, tmp_path: Path, by: str
) -> None:
    """Because it has more rights than who starts it: nor are its children."""
    grow(world)
    world.put()
    tool = compile_c("int main(void) { return 0; }", tmp_path / "tool")
    if by == "capability":
        try:
            os.setxattr(tool, "security.capability", CAN_CHOWN)
        except OSError as error:
            pytest.skip(f"no file capabilities here: {error}")
    else:
        tool.chmod({"": 0o755, "set-uid": 0o4711, "set-gid": 0o2711}[by])
    assert is_taken_for_unseen(world, tool) == bool(by)


def test_what_was_started_in_vain_is_no_program(world: World) -> None:
    grow(world)
    world.put()
    text = """
try: os.posix_spawnp("no-such-tool", ["x"], os.environ)
except OSError as error: print(error.errno)
"""
    assert python(world, text, env={**os.environ, "PATH": "/none:/usr/bin"}) == "2\n"
    assert not world.state.read_bytes()[DIRTY_ANY_OFF] & UNSEEN


def test_a_path_that_no_file_system_takes_is_no_fault_of_the_image(grown: World) -> None:
    text = "print(has('/sub/' + 'x' * 256, '/sub/loop/y'))"
    done = grown.run(PYTHON, "-S", "-c", script(grown, text), strict=True)
    assert (done.returncode, done.stdout) == (0, "[False, False]\n"), done.stderr
    assert set(grown.counts().misses) == {"UNSUPPORTED"}
