"""An image's key: the same program finds its image again, another program never does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from brigade.job.key import image_path
from brigade.trial.invocation import invocation


def kept(words, cover, environment=None):
    return image_path([words], cover, environment)


@pytest.mark.parametrize(
    ("program", "script"),
    [
        (["python", "/a/app.py", "--x"], ["/a/app.py"]),
        (["/v/bin/python3.11", "-u", "-W", "ignore", "-X", "dev", "/a/app.py"], ["/a/app.py"]),
        (["python", "-m", "pkg.mod", "arg"], ["-m", "pkg.mod"]),
        (["python3", "-mpkg"], ["-m", "pkg"]),
        (["python3", "-um", "pkg"], ["-m", "pkg"]),
        (["python3", "-Wignore", "/a/app.py"], ["/a/app.py"]),
        (["python3", "-", "x"], [f"{os.getcwd()}/-"]),
        (["python", "-c", "print(1)"], ["-c", "print(1)"]),
        (["python"], []),
        (["Rscript", "--vanilla", "/a/x.R"], ["/a/x.R"]),
        (["./solver", "/a/input.nml"], []),
        (["bash", "-euo", "pipefail", "/a/run.sh", "x"], ["/a/run.sh"]),
        (["bash", "--rcfile", "/r", "-O", "extglob", "/a/run.sh"], ["/a/run.sh"]),
        (["/bin/sh", "-o", "errexit", "-lc", "exec ./x", "name"], ["-c", "exec ./x"]),
        (["zsh", "/a/run.sh"], ["/a/run.sh"]),
        (["bash", "-c"], []),
    ],
)
def test_script_is_what_the_interpreter_runs(program, script):
    assert invocation(program).script == script


def test_arguments_after_the_script_share_an_image():
    assert kept(["python", "/a.py", "1"], []) == kept(["python", "/a.py", "2"], [])


def test_another_script_variable_or_cover_has_another_image():
    base = kept(["python", "/a.py"], [], {"PATH": "/bin"})
    assert base != kept(["python", "/b.py"], [], {"PATH": "/bin"})
    assert base != kept(["python", "/a.py"], [], {"PATH": "/bin", "LD_LIBRARY_PATH": "/l"})
    assert base != kept(["python", "/a.py"], [], {"PATH": "/bin", "PYENV_VERSION": "3.12"})
    assert base != kept(["python", "/a.py"], ["/data"], {"PATH": "/bin"})
    assert base == kept(["python", "/a.py"], [], {"PATH": "/bin", "HOME": "/h"})


def test_another_build_of_brigade_has_another_image(tmp_path, monkeypatch):
    monkeypatch.setenv("BRIGADE_NATIVE", str(tmp_path))
    paths = set()
    for build in ("one", "two", "one"):
        (tmp_path / "build-id").write_text(build)
        paths.add(kept(["python", "/a.py"], []))
    assert len(paths) == 2


@pytest.mark.parametrize(
    "changed", ["src/view/rank.c", "src/view/hooks.def", "python/brigade/a.py"]
)
def test_a_build_is_named_by_its_sources(tmp_path, changed):
    script = Path(__file__).parents[2] / "tools/build-id.cmake"
    names = set()
    for text in ("one", "two", "one"):
        source = tmp_path / changed
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text)
        words = [f"-DROOT={tmp_path}", f"-DOUT={tmp_path}/id", "-P", str(script)]
        subprocess.run(["cmake", *words], check=True)
        names.add((tmp_path / "id").read_text())
    assert len(names) == 2 and all(len(name) == 16 for name in names)


@pytest.mark.parametrize("option", ["-I", "-sE", "-S", "-O", "-OO", "-X frozen_modules=off"])
def test_python_with_an_option_that_steers_its_search_has_another_image(option):
    plain, with_u = ["python", "/a.py"], ["python", "-u", "/a.py"]
    assert kept(plain, []) == kept(with_u, [])
    assert kept(plain, []) != kept(["python", *option.split(), "/a.py"], [])
    assert kept(["/a.out", option], []) == kept(["/a.out"], [])


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Two wrappers and two programs, each of which can be executed, and two scripts."""
    for name in ("wrap", "torchrun", "one", "two"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    for name in ("a.py", "b.py", "in.dat"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "others"),
    [
        ("./wrap ./one in.dat", "./wrap ./two in.dat"),
        ("sh wrap ./one", "sh wrap ./two"),
        ("./wrap -n 1 A=2 python3 a.py", "./wrap -n 1 A=2 python3 b.py"),
        ("./wrap python3 -m pkg", "./wrap python3 -m other"),
        ("./torchrun --nproc 2 a.py", "./torchrun --nproc 2 b.py"),
        ("python3 -m torch.distributed.run a.py", "python3 -m torch.distributed.run b.py"),
    ],
)
def test_another_program_behind_a_wrapper_has_another_image(programs, words, others):
    one, other = kept(words.split(), []), kept(others.split(), [])
    assert one != other
    assert one == kept([*words.split(), "more", "./two"], [])
    assert Path(one).name.partition("-")[0] in ("one", "a.py", "pkg")


def test_what_a_python_program_is_told_makes_no_other_image(programs):
    base = kept(["python3", "a.py"], [])
    assert base == kept(["python3", "a.py", "./one", "b.py"], [])
    assert kept(["./one", "in.dat"], []) == kept(["./one", "none.dat"], [])


def test_each_program_of_a_job_counts_and_how_often_does_not(programs):
    one, two = ["./one", "in.dat"], ["python3", "a.py"]
    both = image_path([one, two], [])
    assert both not in (kept(one, []), kept(two, []), image_path([one, ["python3", "b.py"]], []))
    assert both == image_path([one, two, ["./one", "none.dat"]], [])
    assert image_path([one, one], []) == kept(one, [])
