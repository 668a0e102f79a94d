"""`brigade study storage`: it runs from the copy, or says that not; and leaves nothing behind."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from brigade.errors import BrigadeError
from brigade.study import copying


def brigade(*words: object, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "brigade", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def script(path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def world(tmp_path):
    """A program that reads what lies beside it, and one folder to try; /opt is not touched."""
    app = tmp_path / "app"
    script(app / "bin/start", '#!/bin/sh\ncat "$APP_DATA/data" "$1"\n')
    (app / "share").mkdir()
    (app / "share/data").write_text("data\n")
    (tmp_path / "place").mkdir()
    return tmp_path


def study(world, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    common = ["study", "storage", "--at", world / "place", "--json", world / "raw.json"]
    return brigade(*common, *words, env={**os.environ, **variables}, cwd=world)


def test_the_copy_runs_with_words_and_variables_of_the_copy(world):
    share = world / "app/share"
    words = ["--here", "--widths", "1,2", "--repeats", 1, "--", world / "app/bin/start"]
    done = study(world, *words, share / "data", APP_DATA=str(share))
    assert done.returncode == 0, done.stderr
    raw = json.loads((world / "raw.json").read_text())
    assert [(s["variant"], s["ranks"]) for s in raw["samples"]] == [
        ("here", 1), ("at0", 1), ("at0", 2), ("here", 2)
    ]  # fmt: skip
    assert not any("old place" in fact for fact in raw["facts"])
    assert raw["operations"]["at0"] == raw["operations"]["here"]
    assert "No difference" in done.stdout
    assert list((world / "place").iterdir()) == []


def test_look_ups_at_the_old_place_are_counted_and_named(world):
    """A path inside a script that no rewriting finds."""
    data = world / "app/share/data"
    hidden = world / "app/share/hidden"
    hidden.write_text(f"A={world}/ap\ncat ${{A}}p/share/data\n")
    script(world / "app/bin/start", '#!/bin/sh\n. "$1"\n')
    done = study(world, "--repeats", 1, "--widths", 1, "--", world / "app/bin/start", hidden)
    assert done.returncode == 0, done.stderr
    facts = " ".join(json.loads((world / "raw.json").read_text())["facts"])
    assert "still went to the old place" in facts
    assert str(data) in facts


def test_the_samples_can_be_read_from_standard_output(world):
    start = script(world / "app/bin/start", "#!/bin/sh\n")
    words = ["--at", world / "place", "--widths", 1, "--repeats", 2, "--json", "-", "--", start]
    done = brigade("study", "storage", *words)
    assert len(json.loads(done.stdout)["samples"]) == 2, done.stderr


def test_until_ends_a_program_that_would_run_on(world):
    start = script(world / "app/bin/start", "#!/bin/sh\necho now ready\nexec sleep 300\n")
    words = ["--until", "ready", "--repeats", 2, "--widths", 1, "--", start]
    done = study(world, *words)
    assert done.returncode == 0, done.stderr
    assert "seconds to a line with 'ready'" in done.stdout


@pytest.mark.parametrize(
    ("text", "words", "code", "said"),
    [
        ("#!/bin/sh\necho broken >&2; exit 4\n", [], 1, "ended with 4"),
        ("#!/bin/sh\n", ["--until", "never"], 1, "without a line that has 'never'"),
        ("#!/bin/sh\nsleep 60\n", ["--limit", "1"], 1, "has not ended for 1 s"),
        ("#!/bin/sh\n", ["--widths", "x"], 2, "numbers with commas"),
        ("#!/bin/sh\n", ["--copy", "/nowhere"], 2, "no such folder"),
        ("#!/bin/sh\n", ["--at", "/proc"], 1, "name a folder that you may write to"),
    ],
)
def test_a_failure_is_one_clear_error_and_leaves_nothing(world, text, words, code, said):
    start = script(world / "app/bin/start", text)
    done = study(world, *words, "--", start)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list((world / "place").iterdir()) == []


def test_a_place_inside_what_is_copied_is_refused(world):
    words = ["study", "storage", "--at", world / "app/share", "--", world / "app/bin/start"]
    done = brigade(*words)
    assert done.returncode == 2
    assert "which is to be copied" in done.stderr


def test_ctrl_c_ends_the_starts_and_removes_the_copies(world):
    start = script(world / "app/bin/start", "#!/bin/sh\nexec sleep 100\n")
    command = [sys.executable, "-m", "brigade", "study", "storage", "--at", world / "place", "--"]
    child = subprocess.Popen([*map(str, command), str(start)], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while not list((world / "place").glob("*/trace-*/*")) and time.monotonic() < until:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=30) == -signal.SIGINT
    finally:
        child.kill()
    assert list((world / "place").iterdir()) == []


def test_a_virtual_environment_moves_with_its_scripts_and_paths(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    site = old / "lib/site-packages"
    site.mkdir(parents=True)
    script(old / "bin/tool", f"#!{old}/bin/python\nprint()\n")
    (old / "bin/python").symlink_to("/bin/sh")
    (old / "lib64").symlink_to(old / "lib")
    (old / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (site / "more.pth").write_text(f"{old}/src\n")
    (site / "module.py").write_text(f"A = '{old}'\n")
    assert copying.copy({str(old): str(new)}, lambda what, files: None) == []
    assert (new / "bin/tool").read_text() == f"#!{new}/bin/python\nprint()\n"
    assert os.access(new / "bin/tool", os.X_OK)
    assert os.readlink(new / "bin/python") == "/bin/sh"
    assert os.readlink(new / "lib64") == f"{new}/lib"
    assert (new / "lib/site-packages/more.pth").read_text() == f"{new}/src\n"
    assert (new / "lib/site-packages/module.py").read_text() == f"A = '{old}'\n"
    before, after = os.stat(site / "module.py"), os.stat(new / "lib/site-packages/module.py")
    assert before.st_mtime_ns == after.st_mtime_ns


def test_a_copy_that_does_not_fit_ends_at_the_first_file(tmp_path, monkeypatch):
    old = tmp_path / "old"
    old.mkdir()
    for i in range(5):
        (old / f"file{i}").write_text("x")
    tried = []

    def full(source: str, target: str) -> None:
        tried.append(source)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("shutil.copy2", full)
    with pytest.raises(BrigadeError, match="No space left on device"):
        copying.copy({str(old): str(tmp_path / "new")}, lambda what, files: None)
    assert len(tried) == 1


def test_a_tree_without_write_permission_is_removed(tmp_path):
    with copying.scratch(str(tmp_path)) as root:
        (root / "a/b").mkdir(parents=True)
        (root / "a/b/file").touch()
        (root / "a/b").chmod(0o500)
    assert list(tmp_path.iterdir()) == []
