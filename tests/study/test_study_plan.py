"""What is started, in which order, and with which words."""

from __future__ import annotations

import os

import pytest

from brigade.errors import UsageError
from brigade.launch import parse
from brigade.launch.width import resized, widths_of
from brigade.study import rewrite, sources
from brigade.study.plan import Variant, numbers, starts


def launcher(folder, name: str) -> None:
    path = folder / name
    path.write_text("#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n")
    path.chmod(0o755)


def test_every_variant_stands_next_to_the_others_and_each_begins_in_turn():
    variants = [Variant(name, name, ("app",)) for name in "abc"]
    order = starts(variants, [1, 4], 3)
    assert len(order) == 18
    for at in range(0, 18, 3):
        one = order[at : at + 3]
        assert {start.variant.name for start in one} == set("abc")
        assert len({(start.ranks, start.repeat) for start in one}) == 1
    assert {order[at].variant.name for at in range(0, 18, 6)} == set("abc")


@pytest.mark.parametrize(
    ("words", "ranks", "wanted"),
    [
        ("srun -N 4 -n32 --mpi=pmix app -n 9", 8, "srun -N 4 --mpi=pmix --ntasks 8 app -n 9"),
        ("srun -N 4 -n 32 app", 2, "srun --nodes 2 --ntasks 2 app"),
        ("srun --ntasks-per-node=8 --nodes=2 app", 4, "srun --nodes=2 --ntasks 4 app"),
        ("mpirun -np 4 --bind-to none app x", 2, "mpirun --bind-to none -n 2 app x"),
    ],
)
def test_a_launcher_command_gets_another_width(tmp_path, monkeypatch, words, ranks, wanted):
    for name in ("srun", "mpirun"):
        launcher(tmp_path, name)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert resized(words.split(), ranks) == wanted.split()


def test_a_program_without_a_launcher_is_started_so_many_times():
    assert resized(["app", "x"], 1) == ["app", "x"]
    assert resized(["app", "x"], 3)[-3:] == ["3", "app", "x"]


def test_jobs_of_several_programs_have_no_width(tmp_path, monkeypatch):
    launcher(tmp_path, "mpirun")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(UsageError, match="several programs"):
        resized("mpirun -n 1 a : -n 1 b".split(), 4)


@pytest.mark.parametrize(
    ("asked", "wanted"), [(32, [4, 8, 16, 32]), (1, [1]), (6, [1, 3, 6]), (None, [1, 2, 4])]
)
def test_widths_double_up_to_the_jobs(tmp_path, monkeypatch, asked, wanted):
    launcher(tmp_path, "srun")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    words = ["srun", *(["-n", str(asked)] if asked else []), "app"]
    assert widths_of(parse(words)) == wanted


def test_widths_are_numbers():
    assert numbers("4,1,4", [9]) == [1, 4]
    assert numbers(None, [9]) == [9]
    for wrong in ("", "1,x", "0"):
        with pytest.raises(UsageError, match="--widths"):
            numbers(wrong, [9])


MOVES = {"/opt/app": "/new/place", "/opt/app/inner": "/new/inner"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/opt/app", "/new/place"),
        ("/opt/app/bin/x", "/new/place/bin/x"),
        ("/opt/app2/bin", "/opt/app2/bin"),
        ("/usr/opt/app", "/usr/opt/app"),
        ("/a:/opt/app/lib:/opt/application", "/a:/new/place/lib:/opt/application"),
        ("--path=/opt/app/x", "--path=/new/place/x"),
        ("-L/opt/app/lib", "-L/new/place/lib"),
        ("#!/opt/app/bin/python -s", "#!/new/place/bin/python -s"),
        ("/opt/app/inner/x", "/new/inner/x"),
        ("home = '/opt/app'", "home = '/new/place'"),
    ],
)
def test_a_folder_is_moved_where_it_is_one(text, wanted):
    assert rewrite.moved(text, MOVES) == wanted
    assert rewrite.moved_bytes(text.encode() + b" \xff\n", MOVES) == wanted.encode() + b" \xff\n"


def test_only_variables_that_change_are_changed():
    env = {"PATH": "/opt/app/bin:/usr/bin", "HOME": "/root", "PWD": "/opt/app"}
    assert rewrite.moved_environment(env, MOVES) == {"PATH": "/new/place/bin:/usr/bin"}


def test_the_prefix_of_a_virtual_environment_is_its_own_though_python_is_a_link(tmp_path):
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/python").symlink_to("/bin/sh")
    program = str(tmp_path / "venv/bin/python")
    assert sources.sources([program], []) == [str(tmp_path / "venv")]


def test_the_systems_own_program_has_to_be_named():
    with pytest.raises(UsageError, match="the system's own"):
        sources.sources(["sh"], [])


def test_folders_inside_others_are_copied_once(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    asked = [str(tmp_path / "a"), str(tmp_path / "a/b")]
    assert sources.sources(["sh"], asked) == [str(tmp_path / "a")]
