"""However a program ends, what it wrote before is in the file, and it ends in the same way."""

from __future__ import annotations

from pathlib import Path

import pytest
from buffer_world import buffered, compile_c, contents, run

RETURNS = ["return", "_exit", "quick_exit", "syscall", "atexit", "thread-exit", "pthread_exit"]
OTHERS = ["exec", "execve-number", "execveat-number", "exec-shared", "spawn-shared"]
#: by number, whose default is to end the program; 1000: the first real-time one, -1: the last
SIGNALS = [1, 3, 10, 12, 13, 14, 16, 24, 26, 27, 29, 30, 1000, 1001, -1]
DIES = ["segv", "overflow", "abort", "assert", "thread-segv", "fpe", "term", "int"]


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c("ends_driver", tmp_path_factory.mktemp("ends"))


def outcome(ends: Path, folder: Path, how: str, rules: str | None) -> tuple[int, dict[str, bytes]]:
    folder.mkdir()
    done = run([ends, "e.dat", how], folder, buffered(rules) if rules else None, limit=20)
    found = contents(folder)
    return done.returncode, {name: data for name, data in found.items() if name.endswith(".dat")}


@pytest.mark.parametrize("how", [*RETURNS, *OTHERS, *DIES, *(f"signal {n}" for n in SIGNALS)])
def test_nothing_that_was_written_is_lost(ends, tmp_path, how):
    plain = outcome(ends, tmp_path / "plain", how, None)
    # a delay so long that only the end itself can have written it
    found = outcome(ends, tmp_path / "buffered", how, "*:delay=1000")
    assert plain[1]["e.dat"][:10000] == b"0123456789" * 1000
    assert found == plain


def test_what_is_older_than_the_delay_survives_sigkill(ends, tmp_path):
    code, files = outcome(ends, tmp_path / "buffered", "later-kill", "*:delay=0.1")
    assert code == -9
    assert files["e.dat"] == b"0123456789" * 1000


def test_safe_leaves_nothing_to_lose(ends, tmp_path):
    source = "import os,signal\nf=open('s.dat','wb',0)\nf.write(b'x'*100)\nos.kill(0,0)\n"
    end = "os.kill(os.getpid(),signal.SIGKILL)"
    run(["python3", "-c", source + end], tmp_path, buffered("*.dat:safe:delay=1000"))
    assert (tmp_path / "s.dat").read_bytes() == b"x" * 100
    run(["python3", "-c", source + end], tmp_path, buffered("*.dat:delay=1000"))
    assert (tmp_path / "s.dat").read_bytes() == b"", "this is what safe is for"


def test_signal_handlers_write_to_the_same_file_and_may_jump_away(tmp_path):
    driver = compile_c("signals_driver", tmp_path)
    plain = run([driver, "s.dat"], tmp_path)
    found = run([driver, "s.dat"], tmp_path, buffered("*.dat"))
    assert plain.returncode == 0 and "jumped 1" in plain.stdout
    assert (found.returncode, found.stdout) == (plain.returncode, plain.stdout)
