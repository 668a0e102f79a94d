"""The shell that starts each rank: the wrapper where there is one, and no search of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from brigade.elf import file as elf_file
from brigade.launch import environment, guarded
from brigade.paths import native

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


def test_guard_starts_what_the_launcher_finds_in_the_ranks_folder(tmp_path: Path) -> None:
    for name in ("in-folder", "echo"):
        (tmp_path / name).write_text('#!/bin/sh\necho here "$@"\n')
        (tmp_path / name).chmod(0o755)

    def out(last: str, wrapper: str, *program: str) -> str:
        words = guarded([wrapper, "--job", "x"], {}, searches_last=last)
        done = subprocess.run([*words, *program], capture_output=True, text=True, cwd=tmp_path)
        return done.stdout or str(done.returncode)

    for wrapper in ("/missing", str(native("brigade-rank"))):
        assert out("word", wrapper, "in-folder", "a b", "--") == "here a b --\n"
        assert out("whole", wrapper, "in-folder", "a b", "--") == "here a b --\n"
        assert out("", wrapper, "in-folder") == out("word", wrapper, "none") == "127"
        assert out("word", wrapper, "echo", "--search-last") == "--search-last\n"
        assert out("word", wrapper, "./in-folder", "x") == "here x\n"


#: No shell could give its own variables these names; `t` it could, and so must not.
ODD = {
    "BASH_FUNC_module%%": "() {  echo \"it's\" '$HOME' \\\n}",
    "a.b": " $(touch /no) `x` 'y'",
    "q": "'",
    "0": "",
    "t": "the program's",
}


def _seen(words: list[str], env: dict[str, str] | None) -> dict[bytes, bytes]:
    """The environment that `words`, which start env(1), give it."""
    done = subprocess.run([*words, "env", "-0"], env=env, capture_output=True, check=True)
    pairs = (one.partition(b"=") for one in done.stdout.split(b"\0") if one)
    return {name: value for name, _, value in pairs}


@pytest.mark.parametrize("wrapper", ["missing", "brigade-rank"])
def test_variables_that_the_shell_would_lose_reach_the_program(wrapper: str) -> None:
    plain = {**os.environ, "PWD": os.getcwd(), **ODD}
    given = environment(plain)
    if Path("/bin/sh").resolve().name == "dash":
        assert given and set(given) - set(plain) == {"BRIGADE_KEPT"}
    words = guarded([str(native("brigade-rank")) if wrapper != "missing" else "/missing"], plain)
    assert _seen(words, given or plain) == _seen([], plain)
    assert environment({"PATH": "/bin"}) is None


@pytest.mark.skipif(Path("/bin/sh").resolve().name != "dash", reason="needs dash as /bin/sh")
def test_what_the_launcher_has_set_itself_stays(tmp_path: Path) -> None:
    given = environment({**os.environ, "a.b": "ours", "c.d": "ours"})
    assert given
    rank = [str(native("brigade-rank"))]
    seen = _seen(rank, {**given, "a.b": "the launcher's", "c.d": "the launcher's"})
    assert seen[b"a.b"] == seen[b"c.d"] == b"the launcher's"


@pytest.mark.skipif(Path("/bin/sh").resolve().name != "dash", reason="needs dash as /bin/sh")
def test_no_variable_is_too_long_for_a_start() -> None:
    many = {f"a.{number}": "x" * 1000 for number in range(300)}
    plain = {**os.environ, **many, "b.c": "y" * 120_000}
    seen = _seen(guarded(["/missing"], plain), environment(plain))
    assert 80 < sum(name.startswith(b"a.") for name in seen) < 100
