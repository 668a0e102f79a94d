"""Under the view every question about a path has the answer that it has without."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from world import ODD, World, compile_c, everything, grow, run


def assert_same(world: World, probe: Path, *arguments: str, **options: object) -> None:
    plain = world.plain(probe, *arguments, **options)
    viewed = world.run(probe, *arguments, **options)
    assert viewed.stderr == plain.stderr
    for ours, real in zip(viewed.stdout.splitlines(), plain.stdout.splitlines()):
        assert ours == real
    assert (viewed.stdout, viewed.returncode) == (plain.stdout, plain.returncode)


def test_every_path_of_a_tree(tree_world: World, probe: Path) -> None:
    tree_world.reset()
    assert_same(tree_world, probe, *everything(tree_world))
    assert tree_world.counts().hits > 1000


def test_odd_spellings(tree_world: World, probe: Path) -> None:
    assert_same(tree_world, probe, *[f"{tree_world.tree}/{name}" for name in ODD])
    # from a folder whose parent nothing else changes meanwhile
    names = [f"/{tree_world.tree}//file", "", "/", "//", "..", "/.."]
    assert_same(tree_world, probe, *names, cwd=tree_world.tree / "sub")


def test_relative_to_the_working_directory(tree_world: World, probe: Path) -> None:
    assert_same(tree_world, probe, *ODD, "sub", "file", cwd=tree_world.tree)
    assert_same(tree_world, probe, "../file", "er/leaf", "..", cwd=tree_world.tree / "sub/deep")


def test_relative_to_a_descriptor(tree_world: World, probe: Path) -> None:
    names = ["deep/er/leaf", "up/file", "missing", "../to_file", "script", "deep/../../file"]
    assert_same(tree_world, probe, "-d", str(tree_world.tree / "sub"), *names)
    assert_same(tree_world, probe, "-d", str(tree_world.tree / "to_dir"), *names)


def test_another_user_gets_the_same_refusals(tree_world: World, probe: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to run the probe as another user")
    for folder in [tree_world.base, *tree_world.base.parents]:
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o055)
    for path in [probe, *probe.parents]:
        if path.stat().st_mode & 0o005 != 0o005:
            path.chmod(path.stat().st_mode | 0o055)
    tree_world.reset()
    with tree_world.staged_by(65534):
        assert_same(tree_world, probe, *everything(tree_world), user=65534, group=65534,
                    extra_groups=[])  # fmt: skip
    assert tree_world.counts().hits > 1000


@pytest.mark.parametrize(
    "command",
    [
        "cp /dev/stdin {work}/copy && cat {work}/copy",
        "install -m 600 /dev/stdin {work}/copy && cat {work}/copy",
        "stat -L -c '%d %i %s %Y' /dev/stdin /dev/fd/0 /proc/self/fd/0",
        "cd /dev && stat -L -c '%d %i %s %Y' stdin fd/0",
        "python3 -S -c 'import os; print(os.readlink(\"/dev/fd/0\"), os.path.sameopenfile(0, 0))'",
        "python3 -S -c 'import os; print(os.path.samestat(os.stat(\"/dev/stdin\"), os.fstat(0)))'",
        'python3 -S -c \'import os; print(os.readlink("fd/0", dir_fd=os.open("/dev", 0)))\'',
    ],
)
def test_what_dev_says_of_a_descriptor_is_its_file(
    tree_world: World, tmp_path: Path, command: str
) -> None:
    def said(run: Callable[..., Any]) -> str:
        words = command.format(work=tmp_path)
        done = run("sh", "-c", f"rm -f {tmp_path}/copy; ({words}) < {tree_world.tree}/file")
        assert (done.returncode, done.stderr) == (0, "")
        return str(done.stdout)

    assert said(tree_world.run) == said(tree_world.plain)


def test_paths_that_there_is_no_room_for_are_the_kernels(world: World, probe: Path) -> None:
    grow(world)
    deep = world.tree
    while len(str(deep)) < 2600:
        deep = deep / ("d" * 200)
        deep.mkdir()
    (deep / "file").write_text("deep\n")
    (world.tree / "way").symlink_to(deep)
    world.put(unlisted=["open"])
    paths = [f"{deep}/file", f"{world.tree}/way/file", f"{deep}/none", str(deep), f"{deep}/../x"]
    assert_same(world, probe, *paths)
    assert_same(world, probe, "file", "none", "../" + deep.name, cwd=deep)
    (deep / "file").write_text("deep\n")
    script = f"open({str(deep / 'new')!r}, 'w'); open({str(deep / 'file')!r}, 'w').write('more')"
    assert world.run("/usr/bin/python3", "-S", "-c", script).returncode == 0
    assert_same(world, probe, *paths, f"{deep}/new")


def test_a_link_is_cut_to_the_room_that_there_is_for_it(tree_world: World) -> None:
    source = (
        "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        f'int main(void) {{ int fd = open("{tree_world.tree}/file", O_RDONLY); char path[32];\n'
        '  sprintf(path, "/proc/self/fd/%d", fd);\n'
        "  for (int n = 1; n < 300; n++) { char buf[300] = {0}; \n"
        '    printf("%zd %s\\n", readlink(path, buf, n), buf); } return 0; }\n'
    )
    program = compile_c(source, tree_world.base / "cut")
    assert tree_world.run(program).stdout == tree_world.plain(program).stdout


parts = st.sampled_from(
    ["sub", "deep", "er", "leaf", "file", "to_file", "to_dir", "up", "loop", "dangling", "absolute",
     "chain", "outside", "open", "known", "empty", "nope", ".", "..", ""]
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(parts, min_size=1, max_size=6).map("/".join), min_size=20, max_size=20))
def test_any_path(tree_world: World, probe: Path, names: list[str]) -> None:
    assert_same(tree_world, probe, *[f"{tree_world.tree}/{name}" for name in names])


def test_no_request_reaches_the_tree(tree_world: World, tmp_path: Path) -> None:
    tree = tree_world.tree
    script = (
        "import os, sys\n"
        f"t = {str(tree)!r}\n"
        "for d in ('', '/sub', '/sub/deep/er', '/empty'):\n"
        "    for e in os.scandir(t + d):\n"
        "        if e.name == 'loop': continue\n"
        "        if e.is_file(): open(e.path, 'rb').read(); os.access(e.path, os.R_OK)\n"
        "        e.stat(follow_symlinks=False); os.path.realpath(e.path); e.inode()\n"
        "    os.listdir(t + d); os.path.exists(t + d + '/none'); os.stat(t + d + '/.')\n"
    )
    trace = tmp_path / "trace"
    done = run(["strace", "-f", "-e", "trace=%file", "-o", str(trace), tree_world.rank, "--job",
                "test", "--", "/usr/bin/python3", "-S", "-c", script])  # fmt: skip
    assert done.returncode == 0, done.stderr
    asked = [
        line
        for line in trace.read_text().splitlines()
        if re.search(rf'"{re.escape(str(tree))}[/"]', line) and "execve" not in line
    ]
    assert asked == []


def test_the_tree_may_be_gone(world: World, probe: Path) -> None:
    grow(world)
    world.put()
    paths = [p for p in everything(world) if os.path.isfile(p) and "out" not in p]
    before = world.plain(probe, *paths)
    world.hide()
    try:
        assert world.run(probe, *paths, strict=True).stdout == before.stdout
    finally:
        world.show()


def test_a_listing_survives_moving_about_in_it(tree_world: World) -> None:
    script = (
        "import os, sys\n"
        "p = sys.argv[1]\n"
        "print(sorted((e.name, e.is_dir(), e.is_symlink(), e.is_file(), e.inode(),\n"
        "  e.stat(follow_symlinks=False).st_ino) for e in os.scandir(p)))\n"
        "print(sorted(os.listdir(p)), sorted(os.listdir(os.open(p, os.O_RDONLY))))\n"
        "print(sorted((a, sorted(b), sorted(c)) for a, b, c in os.walk(p)))\n"
        "print(sorted((a, sorted(b), sorted(c)) for a, b, c, d in os.fwalk(p)))\n"
        "import glob, pathlib; print(sorted(glob.glob(p + '/s*/*')))\n"
        "print(sorted(map(str, pathlib.Path(p).rglob('*'))))\n"
        "f = open(p + '/file')\n"
        "print(os.path.samestat(os.fstat(f.fileno()), os.stat(p + '/file')))\n"
    )
    command = ["/usr/bin/python3", "-c", script, str(tree_world.tree)]
    plain, viewed = tree_world.plain(*command), tree_world.run(*command)
    assert plain.returncode == 0, plain.stderr
    assert (viewed.stdout, viewed.stderr) == (plain.stdout, plain.stderr)
