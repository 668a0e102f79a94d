"""What is started is no Python, and no wrapper that is known, but starts one: it runs as often as
there are ranks, and sees no child of Brigade's. A script that names env is what env would start."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from project import Site

RUN = ("--fork", "-n", "3")
# starts its arguments, waits for any child, and says whose status that was
WRAPPER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words)
{
    int status = 0, others = 0;
    pid_t child = fork(), ended;
    if (child == 0)
        return execv(words[1], words + 1);
    while ((ended = wait(&status)) != child)
        others += ended > 0;
    printf("wrapped %d %d %d\n", count, WEXITSTATUS(status), others);
    return 0;
}
"""
COUNTED = """\
import os, sys
import pkg
os.write(os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), b"x")
print(sys.argv[1:], sys.orig_argv[1:] if hasattr(sys, "orig_argv") else "")
"""


@pytest.fixture
def counted(site: Site) -> Path:
    """A file that gets a letter by each process that runs the program."""
    path = site.base / "counted"
    site.app.write_text(COUNTED.format(path=str(path)))
    return path


@pytest.mark.parametrize("options", [[], ["-static"]], ids=["dynamic", "static"])
def test_a_wrapper_runs_as_often_as_there_are_ranks_and_sees_its_own_child_alone(
    site: Site, counted: Path, options: list[str]
) -> None:
    source = site.base / "wrapper.c"
    source.write_text(WRAPPER)
    wrapper = site.base / "wrapper"
    if subprocess.run(["cc", *options, "-o", wrapper, source], check=False).returncode:
        pytest.skip("no static C library")
    words = [str(wrapper), str(site.python), str(site.app)]
    assert site.brigade_of(words, RUN).returncode == 0
    counted.unlink()
    done = site.brigade_of(words, RUN)
    assert (done.returncode, counted.read_text()) == (0, "xxx")
    assert [x for x in done.stdout.splitlines() if x.startswith("wr")] == ["wrapped 3 0 0"] * 3
    fork = site.report()["fork"]
    assert fork["ranks"] == 0
    assert "starts one" in str(fork["nowhere"]) or "is static" in str(fork["why"]), fork


def test_the_first_rank_sees_no_child_of_ours_where_none_is_forked(site: Site) -> None:
    site.app.write_text(
        "import os\nimport pkg\n"
        "try: print(os.waitpid(-1, 0))\nexcept ChildProcessError: print('no child')\n"
    )
    site.brigade(run=RUN)
    assert site.report()["fork"]["ranks"] == 3
    done = site.brigade(run=RUN, env={"BRIGADE_FORK_HASH": "refuse"})
    assert site.report()["fork"]["ranks"] == 0
    assert done.stdout.splitlines() == ["no child"] * 3


def test_ranks_whose_wrapper_ignores_ends_of_children_are_forked_and_find_that_so(
    site: Site,
) -> None:
    text = "import pkg, signal, sys\nprint(repr(signal.getsignal(signal.SIGCHLD)))\nsys.exit(5)\n"
    site.app.write_text(text)
    words = ["bash", "-c", f"trap '' CHLD; exec {site.python} {site.app}"]
    plain = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "SIG_IGN" in plain.stdout
    for _ in range(2):
        done = site.brigade_of(words, RUN)
    fork = site.report()["fork"]
    assert (fork["ranks"], fork["plain"]) == (3, []), fork
    assert (done.returncode, done.stdout) == (5, plain.stdout * 3)


def test_a_script_that_names_env_is_forked(site: Site, counted: Path) -> None:
    text = site.app.read_text()
    site.app.write_text("#!/usr/bin/env python\n" + text)
    site.app.chmod(0o755)
    path = f"{site.python.parent}:/usr/bin:/bin"
    words = [str(site.app), "a word"]
    plain = subprocess.run(
        words, env={"PATH": path}, capture_output=True, text=True, check=True
    ).stdout
    counted.unlink()
    site.brigade_of(words, RUN, {"PATH": path})
    counted.unlink()
    done = site.brigade_of(words, RUN, {"PATH": path})
    assert site.report()["fork"]["ranks"] == 3
    assert (done.returncode, done.stdout, counted.read_text()) == (0, plain * 3, "xxx")


#: what stands in PATH by a Python's name, of pyenv and its kin: it finds out which one is meant
SHIM = """\
#!/usr/bin/env bash
exec "{manager}" exec "${{0##*/}}" "$@"
"""
MANAGER = """\
#!/usr/bin/env bash
shift
where=$(dirname "{python}")
exec "$where/$@"
"""


@pytest.mark.parametrize("front", ["", "env -u NOTHING", "bash -c", "path"])
def test_a_python_that_a_script_of_its_name_chooses_is_forked(
    site: Site, counted: Path, front: str
) -> None:
    shims, manager = site.base / "shims", site.base / "libexec/manager"
    for path in (shims, manager.parent):
        path.mkdir()
    (shims / "python").write_text(SHIM.format(manager=manager))
    manager.write_text(MANAGER.format(python=site.python))
    for path in (shims / "python", manager):
        path.chmod(0o755)
    words = ["python", str(site.app), "a word"]
    if front == "path":  # a wrapper has found it
        words = ["env", str(shims / "python"), *words[1:]]
    elif front == "bash -c":
        words = ["bash", "-c", '"$@"; exit', "bash", *words]
    else:
        words = [*front.split(), *words]
    env = {"PATH": f"{shims}:/usr/bin:/bin"}
    plain = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
    for _ in range(2):
        counted.unlink()
        done = site.brigade_of(words, RUN, env)
        assert (done.returncode, done.stdout, done.stderr and counted.read_text()[-3:]) == (
            0, plain * 3, "xxx",
        ), done.stderr  # fmt: skip
        fork = site.report()["fork"]
        assert (fork["ranks"], fork["plain"]) == (3, []), fork
    assert counted.read_text() == "xxx"
