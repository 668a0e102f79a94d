"""What the job writes is seen by the job, whoever of the node's processes wrote it, and counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import grow
from world import World

PYTHON = "/usr/bin/python3"


@pytest.fixture
def grown(world: World) -> World:
    grow(world)
    return world.put(absent=["open/absent", "open/later", "sub/absent"], unlisted=["open"])


def python(world: World, script: str, **options) -> str:
    done = world.run(PYTHON, "-S", "-c", f"import os\nt = {str(world.tree)!r}\n{script}", **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("change", "question"),
    [
        ("open(t + '/file', 'w').write('new')", "open(t + '/file').read(), os.stat(t + '/file').st_size"),
        ("open(t + '/file', 'a').write('new')", "os.path.getsize(t + '/file')"),
        ("os.truncate(t + '/file', 1)", "open(t + '/file').read()"),
        ("open(t + '/sub/new', 'w')", "os.path.exists(t + '/sub/new'), sorted(os.listdir(t + '/sub'))"),
        ("open(t + '/open/absent', 'w').write('x')", "open(t + '/open/absent').read()"),
        ("os.makedirs(t + '/sub/a/b'); open(t + '/sub/a/b/c', 'w')", "os.path.exists(t + '/sub/a/b/c')"),
        ("os.mkdir(t + '/open/later'); os.mkdir(t + '/open/later/x')", "os.listdir(t + '/open/later')"),
        ("os.unlink(t + '/file')", "os.path.exists(t + '/file')"),
        ("os.remove(t + '/to_file')", "os.path.lexists(t + '/to_file')"),
        ("os.rmdir(t + '/empty')", "os.path.exists(t + '/empty'), sorted(os.listdir(t))"),
        ("os.rename(t + '/file', t + '/sub/moved')",
         "os.path.exists(t + '/file'), open(t + '/sub/moved').read()"),
        ("os.rename(t + '/sub', t + '/bus')",
         "[os.path.exists(t + p) for p in ('/sub/deep/er/leaf', '/bus/deep/er/leaf', '/to_dir/er/leaf')]"),
        ("os.mkdir('new'); open('new/f', 'w'); os.rename('new', t + '/open/later')",
         "os.listdir(t + '/open/later')"),
        ("os.symlink('file', t + '/sub/absent')", "os.readlink(t + '/sub/absent')"),
        ("os.unlink(t + '/to_dir'); os.symlink('open', t + '/to_dir')",
         "os.path.exists(t + '/to_dir/known'), os.path.exists(t + '/to_dir/er/leaf')"),
        ("os.link(t + '/file', t + '/third')", "os.stat(t + '/file').st_nlink"),
        ("os.chmod(t + '/file', 0o444)", "oct(os.stat(t + '/file').st_mode)"),
        ("os.fchmod(os.open(t + '/file', os.O_RDONLY), 0o400)", "oct(os.stat(t + '/file').st_mode)"),
        ("os.utime(t + '/file', (5, 6))", "os.stat(t + '/file').st_mtime"),
        ("os.utime(os.open(t + '/file', os.O_RDONLY), (5, 6))", "os.stat(t + '/file').st_mtime"),
        ("os.chown(t + '/file', os.getuid(), os.getgid())", "os.stat(t + '/file').st_ctime_ns"),
        ("os.mkfifo(t + '/sub/pipe')", "os.stat(t + '/sub/pipe').st_mode"),
        ("d = os.open(t + '/sub', os.O_RDONLY); os.mkdir('m', dir_fd=d)", "os.path.exists(t + '/sub/m')"),
        ("os.chdir(t + '/sub'); open('here', 'w').write('h')", "open(t + '/sub/here').read()"),
        ("d = os.open(t, os.O_RDONLY); os.replace('file', 'sub/r', src_dir_fd=d, dst_dir_fd=d)",
         "os.path.exists(t + '/file'), os.path.exists(t + '/sub/r')"),
        ("import shutil; shutil.copytree(t + '/sub', t + '/copy', symlinks=True); shutil.rmtree(t + '/sub')",
         "os.path.exists(t + '/sub/deep'), sorted(os.listdir(t + '/copy'))"),
        ("import tempfile; open(tempfile.mkdtemp(dir=t + '/sub') + '/f', 'w')",
         "len(os.listdir(t + '/sub')), sum(len(f) for _, _, f in os.walk(t + '/sub'))"),
        ("os.symlink(t + '/sub', 'way'); open('way/through', 'w').write('t')", "open(t + '/sub/through').read()"),
    ],
)  # fmt: skip
def test_a_change_is_seen_at_once_and_by_later_processes(
    grown: World, change: str, question: str, tmp_path: Path
) -> None:
    here = tmp_path / "cwd"
    here.mkdir()
    before = python(grown, f"try: print({question})\nexcept OSError as e: print(e)")
    own = python(grown, f"{change}\nprint({question})", cwd=here)
    later = python(grown, f"print({question})", cwd=here)
    real = grown.plain(PYTHON, "-c", f"import os; t = {str(grown.tree)!r}; print({question})").stdout
    assert (own, later) == (real, real)
    assert before != real
    assert grown.counts().misses["WRITE"] >= 1


def test_a_staged_copy_is_never_changed(grown: World) -> None:
    copy = grown.stage / "root" / str(grown.tree)[1:] / "file"
    before = (copy.read_text(), copy.stat().st_mode, copy.stat().st_mtime_ns)
    python(grown, "f = os.open(t + '/file', os.O_RDONLY)\nos.fchmod(f, 0o400); os.utime(f, (1, 2))\n"
                  "open(t + '/file', 'w').write('other'); os.fchown(f, os.getuid(), -1)")  # fmt: skip
    assert (copy.read_text(), copy.stat().st_mode, copy.stat().st_mtime_ns) == before


def test_nothing_is_marked_when_the_call_failed(grown: World) -> None:
    python(grown, "for call in (os.mkdir, os.rmdir):\n  try: call(t + '/sub')\n  except OSError: pass\n"
                  "grown = os.stat(t + '/sub/deep')")  # fmt: skip
    counts = grown.counts()
    assert counts.misses == {"WRITE": 2}
