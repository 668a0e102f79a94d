"""`brigade file`: what people see of a file, its checksums and its parts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from array import array
from pathlib import Path

import pytest
from store_world import MIB, assert_whole, compile_alone, names, pattern, told, words

from brigade import io as brigade_io

BAD = 10


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_alone(tmp_path_factory.mktemp("alone") / "driver")


def write(alone: Path, path: Path, hints: str, salt: int) -> None:
    command = [alone, *words(path, "create", hints, 2 * MIB + 5, 2, salt)]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    assert told(done.stdout)[0].code == 0


def brigade(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "brigade", "file", *map(str, args)]
    return subprocess.run(command, text=True, capture_output=True)


def ask(*args: str | Path) -> str:
    done = brigade(*args)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_split_and_join_keep_every_byte(alone: Path, tmp_path: Path):
    plain, parts, again = tmp_path / "plain", tmp_path / "parts", tmp_path / "again"
    write(alone, plain, "", 1)
    ask("split", "-n", "3", plain, parts)
    facts = json.loads(ask("info", "--json", parts))
    assert (facts["layout"], facts["bytes"]) == ("parts", 2 * MIB + 5)
    assert sum(part["bytes"] for part in facts["parts"]) == 2 * MIB + 5
    assert "all 3 blocks are as they were written" in ask("verify", parts)
    assert f"3 parts in {facts['folder']}" in ask("info", parts)
    ask("join", parts, again)
    assert_whole(again, pattern(2 * MIB + 5, 1))
    ask("join", parts, parts)  # in its own place; the parts go
    assert_whole(parts, pattern(2 * MIB + 5, 1))
    assert names(tmp_path) == sorted(
        f"{n}{s}" for n in ("again", "parts", "plain") for s in ("", ".sums")
    )


def test_named_arrays_and_attributes_are_told(tmp_path: Path):
    path = tmp_path / "f"
    with brigade_io.open(None, path, "w") as f:
        f.attrs["time"], f.attrs["spin"] = 1.5, 1j
        f.write_array("group/a", array("d", range(6)))
        f["group/a"].attrs["unit"] = "K"
    assert "array      group/a: float64 [6]" in ask("info", path)
    facts = json.loads(ask("info", "--json", path))
    assert facts["attributes"] == {"time": 1.5, "spin": "1j"}
    (told,) = facts["arrays"]
    assert (told["name"], told["shape"], told["attributes"]) == ("group/a", [6], {"unit": "K"})
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    assert "damaged" in ask("info", path)


@pytest.mark.parametrize(
    "words",
    ["info FILE", "verify FILE", "join FILE to", "split -n 2 FILE to", "export FILE to.h5",
     "import FILE to"],
)  # fmt: skip
def test_what_is_no_plain_file_is_refused_and_not_waited_for(tmp_path: Path, words: str):
    os.mkfifo(tmp_path / "pipe.h5")
    (tmp_path / "link.h5").symlink_to(tmp_path / "pipe.h5")
    for name in ("pipe.h5", "link.h5"):
        line = [word.replace("FILE", name) for word in words.split()]
        done = subprocess.run(
            [sys.executable, "-m", "brigade", "file", *line],
            cwd=tmp_path, text=True, capture_output=True, timeout=100,
        )  # fmt: skip
        assert done.returncode in (2, BAD) and done.stdout == ""
        assert "no plain file" in done.stderr
    assert names(tmp_path) == ["link.h5", "pipe.h5"]


def test_damage_is_named_and_ends_with_code_10(alone: Path, tmp_path: Path):
    good, bad, bare = tmp_path / "good", tmp_path / "bad", tmp_path / "bare"
    for path in (good, bad):
        write(alone, path, "", 1)
    bare.write_bytes(b"no checksums")
    with bad.open("r+b") as file:
        file.seek(MIB + 3)
        file.write(b"!")
    done = brigade("verify", good, bad, bare)
    assert done.returncode == BAD
    assert f"{bad}, bytes {MIB} to {MIB + 65536}: its checksum differs" in done.stdout
    assert "has no checksums" in done.stdout
    outcomes = json.loads(brigade("verify", "--json", good, bad).stdout)
    assert [outcome["damaged"] for outcome in outcomes] == [0, 1]


def test_a_pattern_of_names_that_matches_checksums_too_verifies_files(tmp_path: Path):
    for name in ("ckpt.1", "ckpt.2"):
        with brigade_io.open(None, tmp_path / name, "w") as f:
            f.write(0, b"whole")
    assert len(ask("verify", *sorted(tmp_path.glob("ckpt.*"))).splitlines()) == 2
    (tmp_path / "ckpt.1").write_bytes(b"other")
    assert brigade("verify", *tmp_path.glob("ckpt.*")).returncode == BAD
    (tmp_path / "alone.sums").write_bytes(b"somebody's")
    assert brigade("verify", tmp_path / "alone.sums").returncode == BAD


def test_one_part_is_not_called_parts(alone: Path, tmp_path: Path):
    write(alone, tmp_path / "one", "layout=parts", 1)
    assert "1 part in ." in ask("info", tmp_path / "one")


def test_damage_is_not_copied_into_a_file_with_new_checksums(alone: Path, tmp_path: Path):
    bad, out = tmp_path / "bad", tmp_path / "out"
    write(alone, bad, "layout=parts", 1)
    (part,) = tmp_path.glob(".bad.*/000000")
    part.write_bytes(b"!" + part.read_bytes()[1:])
    done = brigade("join", bad, out)
    assert done.returncode == BAD
    assert "does not match its checksum" in done.stderr
    assert not [name for name in names(tmp_path) if "out" in name]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_tool_that_is_told_to_end_has_taken_back_what_it_began(
    tmp_path: Path, stop: signal.Signals
):
    plain = tmp_path / "plain"
    plain.touch()
    os.truncate(plain, 256 * MIB)
    command = [sys.executable, "-m", "brigade", "file", "join", plain, tmp_path / "out"]
    job = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    try:
        while names(tmp_path) == ["plain"]:
            assert job.poll() is None
            time.sleep(0.002)
        (tool,) = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        os.kill(int(tool), signal.SIGSTOP)
        job.send_signal(stop)  # to it alone, as a batch system or `kill` does
        time.sleep(1)
        os.kill(int(tool), signal.SIGCONT)
        _, said = job.communicate(timeout=60)
    finally:
        job.kill()
    assert names(tmp_path) == ["plain"]
    assert (job.returncode, said) == (128 + stop, b"")


def test_info_is_json_whatever_the_numbers_are(tmp_path: Path):
    with brigade_io.open(None, tmp_path / "f", "w") as file:
        file.attrs["nan"] = float("nan")
        file.attrs["limits"] = array("d", [float("-inf"), 1.5, float("inf")])
        file.attrs["wave"] = 1 + 2j

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    facts = json.loads(ask("info", "--json", tmp_path / "f"), parse_constant=refuse)
    assert facts["attributes"] == {
        "nan": "nan",
        "limits": ["-inf", 1.5, "inf"],
        "wave": "(1+2j)",
    }


def test_clean_removes_what_dead_jobs_left_and_nothing_else(alone: Path, tmp_path: Path):
    write(alone, tmp_path / "kept", "layout=parts", 1)
    (tmp_path / "kept").rename(tmp_path / "moved")
    before = names(tmp_path)
    for layout in ("shared", "parts"):
        command = [alone, *words(tmp_path / layout, "create", f"layout={layout}", MIB, 1, 1)]
        env = {**os.environ, "BRIGADE_FAULT": "io.kill:3"}
        assert subprocess.run(command, env=env).returncode == -signal.SIGKILL
    left = names(tmp_path)
    assert len(left) > len(before)
    assert ask("clean", "--dry-run", tmp_path).count("dead; would be removed") == 2
    assert names(tmp_path) == left
    assert ask("clean", tmp_path).count("dead; removed") == 2
    assert names(tmp_path) == before


def test_clean_leaves_what_may_be_of_a_living_job(alone: Path, tmp_path: Path):
    elsewhere = tmp_path / ".ckpt.brg-0123456789abcdef"
    elsewhere.write_bytes(b"another host's")
    orphan = tmp_path / ".gone.brg-0123456789abcdef.parts"
    orphan.mkdir()
    (orphan / "000000").write_bytes(b"parts")
    before = names(tmp_path)
    assert ask("clean", tmp_path).count("stays") == 2
    assert names(tmp_path) == before
    holder = elsewhere.open("rb")
    subprocess.run(["flock", "-n", str(holder.fileno())], pass_fds=[holder.fileno()], check=True)
    assert "in use; stays" in ask("clean", "--force", tmp_path)
    holder.close()
    assert "removed" in ask("clean", "--force", tmp_path)
    assert names(tmp_path) == []


#: locks as NFS gives them, only to who may write; or none at all
LOCKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
int flock(int fd, int operation)
{
    int (*real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
    int writes = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    errno = getenv("NO_LOCKS") ? ENOLCK : writes ? 0 : EBADF;
    return errno ? -1 : real(fd, operation);
}
"""


@pytest.fixture
def locks(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.mktemp("locks")
    (folder / "locks.c").write_text(LOCKS)
    command = ["cc", "-shared", "-fPIC", "-o", folder / "locks.so", folder / "locks.c", "-ldl"]
    subprocess.run(command, check=True)
    monkeypatch.setenv("LD_PRELOAD", str(folder / "locks.so"))


def leave(alone: Path, path: Path) -> None:
    """What a killed job does."""
    fault = {**os.environ, "BRIGADE_FAULT": "io.kill:1"}
    done = subprocess.run([alone, *words(path, "create", "", MIB, 1, 1)], env=fault)
    assert done.returncode == -signal.SIGKILL and len(names(path.parent)) >= 1


def test_what_a_killed_job_left_goes_away_on_nfs(alone: Path, tmp_path: Path, locks: None):
    leave(alone, tmp_path / "a")
    write(alone, tmp_path / "a", "", 1)
    assert names(tmp_path) == ["a", "a.sums"]
    leave(alone, tmp_path / "b")
    assert ask("clean", tmp_path).count("dead; removed") == 1
    assert names(tmp_path) == ["a", "a.sums"]


def test_where_locks_cannot_be_tried_only_force_removes(
    alone: Path, tmp_path: Path, locks: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NO_LOCKS", "1")
    leave(alone, tmp_path / "a")
    write(alone, tmp_path / "a", "", 1)
    assert "perhaps in use: its lock cannot be tried; stays" in ask("clean", tmp_path)
    assert "removed" in ask("clean", "--force", tmp_path)
    assert names(tmp_path) == ["a", "a.sums"]


def test_info_shows_text_that_would_move_the_cursor_escaped(tmp_path: Path) -> None:
    with brigade_io.open(None, tmp_path / "f", "w", sync=False) as f:
        f.attrs["title"] = "one\n\x1b[2Jtwo, é"
        f.write_array("a\tb", array("d", [1]))
    said = ask("info", tmp_path / "f").splitlines()
    assert r"attribute  title = one\n\x1b[2Jtwo, é" in said
    assert r"array      a\tb: float64 [1]" in said
