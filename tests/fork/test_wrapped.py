"""Programs behind wrappers and launchers are forked like those that stand there themselves; what
only looks like the program of the trial is started as ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from program_world import KINDS, ProgramSite
from world_of_c import program

APP = """\
import email.message, json, os, subprocess, sys
with open("/proc/self/cmdline") as file:
    words = file.read()
with open("/proc/self/status") as file:
    tracer = next(int(line.split()[1]) for line in file if line.startswith("TracerPid:"))
line = json.dumps({
    "argv": sys.argv, "parent": os.getppid(), "words": words,
    "left": sorted(name for name in os.environ if name.startswith("BRIGADE_F")),
    "own": os.environ.get("OWN", ""), "modules": len(sys.modules),
    "child": sys.argv[-1] == "child" and "CHILD" not in os.environ and subprocess.run(
        [sys.executable, *sys.argv], env={**os.environ, "CHILD": "1"}, capture_output=True,
        text=True).stdout,
    "me": os.getpid(), "tracer": tracer,
})
os.write(1, f"{line}\\n".encode())
"""
EXEC = (
    '#!/bin/sh\nexport OWN="$BRIGADE_RANK"\n[ "$INSTEAD" ] && eval "$INSTEAD"\nexec $FRONT "$@"\n'
)
STAYS = '#!/bin/sh\nOWN=$(echo "$BRIGADE_RANK") "$@"\nstatus=$?\ntrue\nexit $status\n'
LAUNCHER = """\
import os, subprocess, sys
started = [subprocess.Popen([sys.executable, *sys.argv[1:]], env={**os.environ, "OWN": str(n)},
                            start_new_session=True) for n in range(3)]
sys.exit(max(one.wait() for one in started))
"""
BECOMES = "import os, sys\nos.execv(sys.argv[1], sys.argv[1:])\n"
# starts what stands behind `run`, as uv does: it stays, and ends as that ends
RUNNER = r"""
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
int main(int count, char **words)
{
    int status = 0;
    pid_t child;
    extern char **environ;
    setenv("OWN", getenv("BRIGADE_RANK"), 1);
    if (count < 3 || posix_spawnp(&child, words[2], NULL, NULL, words + 2, environ) != 0)
        return 127;
    return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 1;
}
"""
# becomes what stands behind `exec`
BECOMER = r"""
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words)
{
    setenv("OWN", getenv("BRIGADE_RANK"), 1);
    return count < 3 || execvp(words[2], words + 2);
}
"""
# executes its arguments in a child that it traces, as a debugger does, and ends as that ends
TRACER = r"""
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execvp(words[1], words + 1);
        _exit(127);
    }
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
        ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
    return count < 2 || WEXITSTATUS(status);
}
"""


class Wrapped:
    """A folder with wrappers and a Python program, and what a job of them said."""

    def __init__(self, base: Path) -> None:
        self.base = base
        (base / "node").mkdir()
        for name, text in (
            ("exec.sh", EXEC), ("stays.sh", STAYS), ("launch.py", LAUNCHER), ("becomes.py", BECOMES)
        ):  # fmt: skip
            self.write(name, text)
        self.write("app.py", f"#!{sys.executable}\n{APP}")
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
            "BRIGADE_CACHE": str(base / "cache"),
            "BRIGADE_NODE_DIR": str(base / "node"),
            "BRIGADE_PATIENCE": "60",
            "FRONT": "",
        }

    def write(self, name: str, text: str) -> None:
        (self.base / name).parent.mkdir(exist_ok=True)
        (self.base / name).write_text(text)
        (self.base / name).chmod(0o755)

    def run(self, *words: str, ranks: int = 3, **env: str) -> subprocess.CompletedProcess[str]:
        front = [sys.executable, "-m", "brigade", "run", "-q", "--fork", "-n", str(ranks)]
        front += ["--json", str(self.base / "report.json"), "--trial-quiet", "2", "--"]
        job = subprocess.Popen(
            [*front, *words], env={**self.environment, **env}, cwd=self.base,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.starter = job.pid
        out, err = job.communicate(timeout=120)
        return subprocess.CompletedProcess(words, job.returncode, out, err)

    def said(self, *words: str, **options: Any) -> list[dict[str, Any]]:
        done = self.run(*words, **options)
        assert (done.returncode, done.stderr) == (0, ""), done
        return [json.loads(line) for line in done.stdout.splitlines()]

    def fork(self) -> dict[str, Any]:
        return json.loads((self.base / "report.json").read_text())["fork"]

    def forked(self, said: list[dict[str, Any]]) -> int:
        """How many ranks have the template for their parent, as the report says."""
        parents = [one["parent"] for one in said]
        ranks = self.fork()["ranks"]
        assert self.starter not in parents and max(map(parents.count, parents)) == ranks
        return ranks


@pytest.fixture
def site(tmp_path: Path) -> Wrapped:
    return Wrapped(tmp_path)


STARTERS = [
    ("uv", RUNNER, []),
    ("pixi", RUNNER, ["-static"]),
    ("mise", BECOMER, ["-static"]),
]
FRONTS = {
    "exec": ["./exec.sh", sys.executable],
    "a shell that stays": ["./stays.sh", sys.executable, "-u"],
    "sh -c": ["sh", "-c", '"$@"; exit $?', "sh", sys.executable],
    "env": ["env", "OWN=", sys.executable, "-W", "ignore"],
    "several": ["nice", "-n", "1", "./exec.sh", "stdbuf", "-oL", sys.executable],
    "the script itself": ["./exec.sh"],
    "a project's runner": ["./uv", "run", sys.executable],
    "a static one that stays": ["./pixi", "run", sys.executable],
    "a static one that becomes it": ["./mise", "exec", sys.executable],
    "a static one, the script itself": ["./mise", "exec"],
    "a static one behind a shell": ["./stays.sh", "./pixi", "run", sys.executable],
    "a Python": [sys.executable, "becomes.py", sys.executable],
}


@pytest.mark.parametrize("front", FRONTS.values(), ids=FRONTS)
def test_the_program_of_a_wrapper_is_forked(site: Wrapped, front: list[str]) -> None:
    for name, source, options in STARTERS:
        if f"./{name}" in front:
            program(site.base / name, *options, source=source)
    script = "./app.py" if front[-1] in ("./exec.sh", "exec") else "app.py"
    words = [*front, script, "x y"]
    site.said(*words)
    said = site.said(*words)
    assert site.forked(said) == 3 and site.fork()["modules"] > 5, site.fork()
    assert site.fork()["refused"] == 0
    plain = subprocess.run(
        words, env={**site.environment, "BRIGADE_RANK": "0"}, cwd=site.base, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    wanted = json.loads(plain.stdout)
    for one in said:
        assert one["left"] == []
        assert [one[k] for k in ("argv", "words", "modules")] == [
            wanted[k] for k in ("argv", "words", "modules")
        ]
    owns = sorted(one["own"] for one in said)
    assert owns == (["0", "1", "2"] if wanted["own"] else ["", "", ""])


def test_a_module_is_forked_and_its_children_are_not(site: Wrapped) -> None:
    site.write("pack/app.py", APP)
    site.write("pack/__init__.py", "")
    words = ["./exec.sh", sys.executable, "-m", "pack.app", "x"]
    site.said(*words)
    assert site.forked(site.said(*words)) == 3
    words = ["./exec.sh", sys.executable, "app.py", "child"]
    said = site.said(*words)
    assert site.forked(said) == 3
    assert [json.loads(one["child"])["parent"] for one in said] == [one["me"] for one in said]
    assert site.fork()["refused"] == 0


@pytest.mark.parametrize("told", [{}, {"LOCAL_WORLD_SIZE": "3"}], ids=["untold", "told"])
def test_what_a_launcher_starts_is_forked(site: Wrapped, told: dict[str, str]) -> None:
    """One rank for the job: three processes that share a node, whether or not they are told."""
    words = [sys.executable, "launch.py", "app.py", "x"]
    site.said(*words, ranks=1, **told)
    said = site.said(*words, ranks=1, **told)
    assert site.forked(said) == 3 == len(said) and site.fork()["modules"] > 5
    assert sorted(one["own"] for one in said) == ["0", "1", "2"]


def test_what_a_launcher_behind_a_shell_starts_is_forked(site: Wrapped) -> None:
    """It has the program's name among its arguments, as the program would have."""
    words = ["./exec.sh", sys.executable, "launch.py", "app.py", "x"]
    site.said(*words, ranks=1)
    said = site.said(*words, ranks=1)
    assert site.forked(said) == 3 == len(said)
    assert site.fork()["refused"] == 0


def test_other_programs_of_the_wrapper_are_not_forked(site: Wrapped) -> None:
    words = ["./exec.sh", sys.executable]
    site.said(*words, "app.py")
    other = site.base / "other/app.py"
    site.write("other/app.py", APP)
    for instead, argv in (
        (f"exec {sys.executable} {other} x", [str(other), "x"]),
        (
            f"exec {sys.executable} -c 'import runpy; runpy.run_path(\"app.py\")' app.py",
            ["app.py"] * 2,
        ),
        (f"exec {sys.executable} -X dev --check-hash-based-pycs never app.py", ["app.py"]),
    ):
        said = site.said(*words, "app.py", INSTEAD=instead)
        assert [one["argv"] for one in said] == [argv] * 3
        told = site.fork()
        assert (told["ranks"], told["not_met"]) == (0, f"{site.base}/app.py"), told


def test_a_node_has_one_template_whatever_its_ranks_are_told(site: Wrapped) -> None:
    words = ["./exec.sh", sys.executable, "app.py"]
    site.said(*words)
    said = site.said(*words, INSTEAD='set -- "$@" "$OWN"')
    assert sorted(one["argv"][-1] for one in said) == ["0", "1", "2"]
    told = site.fork()
    assert (told["ranks"], told["refused"]) == (1, 2), told
    assert list(told["why"].values()) == ["its command line is not the node's first"]


def test_a_traced_program_is_not_forked(site: Wrapped) -> None:
    words = ["./exec.sh", sys.executable, "app.py"]
    site.said(*words)
    assert site.forked(site.said(*words)) == 3
    said = site.said(*words, FRONT=str(program(site.base / "tracer", source=TRACER)))
    assert site.fork()["ranks"] == 0 and len(said) == 3
    assert all(one["tracer"] == one["parent"] > 0 for one in said)


def test_what_cannot_be_executed_fails_as_ever(site: Wrapped) -> None:
    words = ["./exec.sh", "./app.py"]
    site.said(*words)
    for name, text, mode in (("one", APP, 0o644), ("two", "#!/nowhere/python\n", 0o755)):
        site.write(f"{name}/app.py", text)
        (site.base / name / "app.py").chmod(mode)
        env = {"INSTEAD": f"{name}/app.py; exit $?"}
        plain = subprocess.run(
            words, env={**site.environment, **env}, cwd=site.base, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        done = site.run(*words, **env)
        assert plain.returncode and done.returncode == plain.returncode
        why = plain.stderr.strip().rpartition(": ")[2]
        assert done.stderr.count(why) == 3 and "brigade-rank" not in done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_of_c_is_forked_behind_its_wrapper(tmp_path: Path, kind: str) -> None:
    asks = "own = getpid();" if kind == "preinit" else "own = 3;"
    text = 'printf("%s %d %d\\n", argv[1], getppid(), own == 3 || own == getpid()); return 0;'
    site = ProgramSite(tmp_path).make(text, asks)
    wrapper = tmp_path / "wrap.sh"
    wrapper.write_text('#!/bin/sh\necho "in $BRIGADE_RANK" > /dev/null\n"$@"\nexit $?\n')
    wrapper.chmod(0o755)
    site.app.rename(tmp_path / "bin/real")
    site.app.symlink_to("real")  # the trial knows it by its file
    for _ in range(2):
        command = site.command("word")
        command[-2:-2] = [str(wrapper)]
        done = subprocess.run(
            command, env=site.environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), done
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [(word, right) for word, _, right in lines] == [("word", "1")] * 3
    told = site.fork()
    assert (told["kind"], told["ranks"], told["refused"]) == (kind, 3, 0), told
    assert len({parent for _, parent, _ in lines}) == 1


@pytest.mark.parametrize("searched", [True, False])
def test_a_script_by_the_programs_name_is_its_wrapper(tmp_path: Path, searched: bool) -> None:
    """As R's, which chooses the program and becomes it."""
    site = ProgramSite(tmp_path).make('printf("%d\\n", getppid()); return 0;', "own = 3;")
    script = tmp_path / "commands/app"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {site.app} "$@"\n')
    script.chmod(0o755)
    site.environment["PATH"] = f"{script.parent}:{os.environ['PATH']}"
    command = [*site.command()[:-1], "app" if searched else str(script)]
    for _ in range(2):
        done = subprocess.run(
            command, env=site.environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), done
    told = site.fork()
    assert (told["ranks"], told["refused"]) == (3, 0), told
    assert len(set(done.stdout.split())) == 1
