"""The shell that starts each rank: the wrapper where there is one, and no search of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from brigade.elf import file as elf_file
from brigade.launch import guarded

SHELL = elf_file.read("/bin/sh").interpreter


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    path = tmp_path / "wrapper"
    path.write_text('#!/bin/sh\necho wrapped "$@"\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("env", [{}, {"LD_LIBRARY_PATH": "/no"}], ids=["plain", "with-libraries"])
def test_guard_starts_the_wrapper_where_it_exists_and_the_program_where_not(
    tmp_path: Path, wrapper: Path, env: dict[str, str]
) -> None:
    def out(path: Path) -> str:
        words = [*guarded([str(path), "--job", "a b"], env), "echo", "x y", "--", "z"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    assert out(wrapper) == "wrapped --job a b -- echo x y -- z\n"
    assert out(tmp_path / "missing") == "x y -- z\n"


def test_guard_searches_no_library_of_the_job_and_the_program_does(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    env = {**os.environ, "LD_LIBRARY_PATH": str(library)}
    seen = tmp_path / "strace.out"

    def asked(words: list[str]) -> tuple[int, str]:
        """How often that folder was, and what the program printed."""
        words = ["strace", "-f", "-o", str(seen), *words]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
        calls = [line for line in seen.read_text().splitlines() if "execve(" not in line]
        return sum(str(library) in line for line in calls), done.stdout

    program = ["/bin/sh", "-c", "echo $LD_LIBRARY_PATH"]
    alone, printed = asked(program)
    assert alone > 0 and printed == f"{library}\n"
    assert asked([*guarded(["/missing"], env), *program]) == (alone, printed)


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_AUDIT"])
def test_guard_keeps_the_search_where_what_is_loaded_into_it_may_need_it(name: str) -> None:
    env = {"LD_LIBRARY_PATH": "/no"}
    assert guarded(["w"], env)[:3] == [SHELL, "--library-path", ""]
    assert guarded(["w"], {**env, name: "libmine.so"})[0] == guarded(["w"], {})[0] == "/bin/sh"
