"""What lies in a folder that a user may not enter is not said to be absent: the folder is named,
whose it is, and what opens it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from brigade import io as brigade_io
from brigade import shut

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def brigade(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """As an ordinary user."""
    command = [sys.executable, "-m", "brigade", "file", *map(str, words)]
    as_other = AS_NOBODY if os.geteuid() == 0 else []
    return subprocess.run([*as_other, *command], text=True, capture_output=True, cwd="/")


@pytest.fixture(scope="module", autouse=True)
def ordinary_user() -> None:
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("needs setpriv (util-linux), to become an ordinary user")
    if brigade("--help").returncode:
        pytest.skip("an ordinary user cannot read Brigade's own folder")


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder with a file in it that its owner alone, or nobody at all, may enter."""
    base = Path(tempfile.mkdtemp(prefix="brigade-shut-"))
    base.chmod(0o777)
    folder = base / "closed"
    folder.mkdir()
    with brigade_io.open(None, folder / "ckpt", "w", sync=False) as f:
        f.write(0, b"bytes")
    (base / "link").symlink_to(folder / "ckpt")
    folder.chmod(0o700 if os.geteuid() == 0 else 0)
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(base)


def advice(folder: Path) -> str:
    if os.geteuid() == 0:
        return f"you may not enter the folder {folder}; its owner, root, can allow it: chmod o+x"
    return f"the folder {folder} is shut; it is yours: chmod u+x"


def test_what_clean_cannot_remove_is_said_to_stay(closed: Path) -> None:
    folder = closed.parent / "left"
    parts = folder / ".b.brg-0123456789abcdef.parts"
    parts.mkdir(parents=True)
    for path in (folder / ".a.brg-0123456789abcdef", parts / "000000"):
        path.write_bytes(b"another host's")
    parts.chmod(0o555)
    folder.chmod(0o555)
    told = brigade("clean", "--force", folder)
    listed = brigade("clean", "--force", "--json", folder)
    for one in (folder, parts):
        one.chmod(0o755)
    assert (told.returncode, told.stderr) == (listed.returncode, listed.stderr) == (10, "")
    lines = sorted(told.stdout.splitlines())
    assert len(lines) == 2 and all("; stays: cannot remove" in line for line in lines)
    assert all(line.endswith("Permission denied") for line in lines)
    for left in json.loads(listed.stdout):
        assert not left["removed"] and "Permission denied" in left["failure"]
    assert len(list(folder.rglob("*"))) == 3


@pytest.mark.parametrize("verb", ["info", "verify", "join", "split", "clean"])
def test_the_folder_that_may_not_be_entered_is_named(closed: Path, verb: str) -> None:
    more = {"join": ["/dev/null/out"], "split": ["-n", "2", "/dev/null/out"]}.get(verb, [])
    for path in (closed / "ckpt", closed / "none", closed.parent / "link"):
        done = brigade(verb, path, *more)
        assert done.returncode == 2 and "not exist" not in done.stderr, done
        said = " ".join(done.stderr.split())
        assert f"'{path}' cannot be looked at: {advice(closed)}" in said


def test_what_is_absent_or_no_file_is_still_called_so(closed: Path) -> None:
    assert "does not exist" in brigade("info", closed.parent / "none").stderr
    assert "is a directory" in brigade("info", closed.parent).stderr


@pytest.mark.parametrize("verb", ["join", "export", "import", "exported"])
def test_so_it_is_where_a_file_is_to_be_made_or_opened(closed: Path, verb: str) -> None:
    pytest.importorskip("h5py")
    here = closed.parent / "here"
    with brigade_io.open(None, here, "w", sync=False) as f:
        f.write(0, b"bytes")
    words = {
        "join": ["join", here, closed / "out"],
        "export": ["export", closed / "ckpt", closed.parent / "out.h5"],
        "exported": ["export", here, closed / "out.h5"],
        "import": ["import", closed / "in.h5", closed.parent / "out"],
    }[verb]
    done = brigade(*words)
    assert done.returncode in (1, 10) and "ermission denied" in done.stderr, done
    assert done.stderr.endswith(f"\n  {advice(closed)}\n")


def test_a_folder_that_may_be_entered_is_nobodys_reason(tmp_path: Path) -> None:
    assert shut.advice(tmp_path / "none" / "ckpt") is None
    assert shut.advice(None) is None
