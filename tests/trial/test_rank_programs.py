"""A rank's program is what stands behind its wrappers, or what its launcher started."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from made import INTERPRETER, process, record

from brigade.trial.modules import behind, rank_modules
from brigade.trial.programs import called, programs
from brigade.trial.record import Process, Trial, load, parse

PYTHON = record("interpreter", "/v/bin/python", extra=INTERPRETER % ("/v", "/v"))


def imports(*names: str) -> list[bytes]:
    return [PYTHON, *(record("imported", name, status=n) for n, name in enumerate(names, 1))]


class Site:
    """Processes of a trial, each started after those before it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 0

    def add(
        self, words: str, records: Iterable[bytes] = (), pid: int = 10, parent: int = 1,
        **options: Any,
    ) -> None:  # fmt: skip
        self.now += 1
        argv = words.split()
        if "exe" not in options and not records:
            options["exe"] = f"/usr/bin/{argv[0]}"
        made = process(self.folder, records, pid=pid, parent=parent, argv=argv, **options)
        host = options.get("host", "n0")
        made.rename(self.folder / f"{host}.{pid}.{self.now}.rec")

    def trial(self) -> Trial:
        return load(self.folder)

    def chosen(self, rank: int = 0) -> list[list[str]]:
        return [one.argv for one in programs(self.trial())[rank]]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_what_was_started_is_the_program(site: Site) -> None:
    site.add("app in.dat", exe="/opt/app")
    site.add("python3 tool.py", imports("a"), pid=11, parent=10)
    assert site.chosen() == [["app", "in.dat"]] and behind(site.trial()) == ""


def test_wrappers_that_become_the_program_are_passed_over(site: Site) -> None:
    site.add("bash wrap.sh")
    site.add("hostname", pid=11, parent=10)
    site.add("python3 count.py", imports("a", "b", "c"), pid=12, parent=10)
    site.add("numactl -N 0 python3 app.py")
    site.add("env A=1 python3 app.py")
    site.add("python3 app.py", imports("a"), cwd="/work")
    site.add("python3 later.py", imports("a", "b"), pid=13, parent=10)
    assert site.chosen() == [["python3", "app.py"]]
    assert behind(site.trial()) == "/work/app.py"


def test_of_what_a_shell_starts_the_largest_counts(site: Site) -> None:
    site.add("sh job.sh")
    site.add("hostname", [record("load", "/a")] * 3, pid=11, parent=10, exe="/bin/hostname")
    site.add("sh", pid=12, parent=10)
    site.add("lmp -in x", [record("load", "/a")] * 9, pid=13, parent=12, exe="/opt/lmp_mpi")
    site.add("cat", [record("load", "/a")] * 2, pid=14, parent=10, exe="/bin/cat")
    assert site.chosen() == [["lmp", "-in", "x"]] and behind(site.trial()) == "/opt/lmp_mpi"


def test_what_a_projects_runner_starts_is_the_program(site: Site) -> None:
    site.add("uv run app.py")
    site.add("python3 -c version", imports("a"), pid=11, parent=10)
    site.add("python3 app.py", imports("a", "b"), pid=12, parent=10, cwd="/work")
    assert site.chosen() == [["python3", "app.py"]]
    assert behind(site.trial()) == "/work/app.py"


def test_what_a_static_wrapper_started_has_an_unknown_parent(site: Site) -> None:
    site.add("bash job.sh")
    site.add("hostname", pid=11, parent=10, exe="/bin/hostname")
    site.add("sh -c", pid=13, parent=12, exe="/bin/sh")  # 12 left no records
    site.add("python3 app.py", imports("a", "b"), pid=14, parent=13, cwd="/work")
    site.add("python3 helper.py", imports("a"), pid=15, parent=14)
    assert site.chosen() == [["python3", "app.py"]]
    assert behind(site.trial()) == "/work/app.py"


def test_a_program_that_leaves_processes_to_nobody_is_itself(site: Site) -> None:
    site.add("python3 app.py", imports("a"))
    site.add("python3 worker.py", imports("a", "b"), pid=14, parent=1)
    assert site.chosen() == [["python3", "app.py"]]


@pytest.mark.parametrize("words", ["conda run -n env app", "-m conda run -n env app"])
def test_what_condas_runner_starts_is_the_program(site: Site, words: str) -> None:
    site.add(f"python3 {words}", imports("a", "b", "c"))
    site.add("bash /tmp/script", pid=11, parent=10)
    site.add("python3 app.py", imports("a"), pid=12, parent=11, cwd="/work")
    assert site.chosen() == [["python3", "app.py"]]
    assert behind(site.trial()) == "/work/app.py"


def test_a_runner_that_starts_nothing_is_itself(site: Site) -> None:
    site.add("python3 conda info", imports("a"))
    assert site.chosen() == [["python3", "conda", "info"]]


@pytest.mark.parametrize(("becomes", "modules", "chosen", "known"), [
    ("python3 app.py", "bc", "python3 app.py", "/work/app.py"),
    ("python3 app.py", "", "python3 poetry run python app.py", ""),  # which is less than it was
    ("python3 -c print()", "bc", "python3 poetry run python app.py", ""),
    ("bash app.sh", "", "python3 poetry run python app.py", ""),
])  # fmt: skip
def test_a_python_that_becomes_a_larger_program_stands_in_front_of_that(
    site: Site, becomes: str, modules: str, chosen: str, known: str
) -> None:
    site.add("python3 poetry run python app.py", imports("a"))
    records = imports(*modules) if becomes.startswith("python") else ()
    site.add(becomes, records, cwd="/work")
    assert site.chosen() == [chosen.split()] and behind(site.trial()) == known


def test_a_shell_that_starts_nothing_is_itself(site: Site) -> None:
    site.add("bash job.sh")
    assert site.chosen() == [["bash", "job.sh"]] and behind(site.trial()) == ""


def test_a_measuring_program_is_no_wrapper(site: Site) -> None:
    site.add("strace python3 app.py")
    site.add("python3 app.py", imports("a"), pid=11, parent=10)
    assert site.chosen() == [["strace", "python3", "app.py"]]
    assert rank_modules(site.trial()) == []


@pytest.mark.parametrize(("words", "host", "found"), [
    ("python3 /v/bin/torchrun --nproc 2 t.py", "n0", 2),
    ("python3 -m torch.distributed.run t.py", "n0", 2),
    ("python3 start.py", "n1", 2),
    ("python3 start.py", "n0", 1),
])  # fmt: skip
def test_a_launchers_processes_are_the_programs(
    site: Site, words: str, host: str, found: int
) -> None:
    """One in Python that nobody knows is one if it is the only rank of its node."""
    site.add(words, imports("a"), rank=0)
    for pid in (11, 12):
        site.add("python3 -u t.py x", imports("a", "b"), pid=pid, parent=10, rank=0, cwd="/w")
    site.add("python3 -c pool", imports("a"), pid=13, parent=10, rank=0)
    site.add("python3 -c pool", imports("a"), pid=14, parent=10, rank=0)
    site.add("app", exe="/opt/app", pid=20, rank=1, host=host)
    assert len(site.chosen()) == found
    assert behind(site.trial()) == ""  # the ranks do not agree
    assert [one.rank for one in rank_modules(site.trial())] == list(range(found))


@pytest.mark.parametrize(("launcher", "chosen"), [
    ("torchrun", "t.py"), ("-m accelerate.commands.launch", "t.py"), ("start.py", "start.py"),
])  # fmt: skip
def test_a_known_launcher_may_start_one(site: Site, launcher: str, chosen: str) -> None:
    site.add(f"python3 {launcher} t.py", imports("a"))
    site.add("python3 t.py", imports("a"), pid=11, parent=10)
    assert site.chosen()[0][1] == chosen


def test_ranks_that_do_not_agree_have_nothing_to_wait_for(site: Site) -> None:
    for rank, name in enumerate(("a.py", "b.py")):
        site.add("bash wrap.sh", rank=rank, pid=10 + rank)
        site.add(f"python3 {name}", imports("a"), rank=rank, pid=10 + rank)
    assert behind(site.trial()) == "" and len(rank_modules(site.trial())) == 2


@pytest.mark.parametrize(("words", "name"), [
    ("python3 app.py x", "/w/app.py"),
    ("python3 -W error -u ../app.py", "/app.py"),
    ("python3 -m pack.age x", "module:pack.age"),
    ("python3 -c print()", ""),
    ("python3", ""),
])  # fmt: skip
def test_what_a_python_is_known_by(words: str, name: str) -> None:
    records = [one for one in parse(BytesIO(PYTHON)) if one]
    one = Process(
        "n0", 1, 1, exe="/usr/bin/python3.11", cwd="/w", argv=words.split(), records=records
    )
    assert called(one) == name


def test_several_of_a_launcher_are_said_to_be(site: Site) -> None:
    site.add("python3 start.py", imports("a"))
    for pid in (11, 12):
        site.add("python3 t.py", imports("a", "b"), pid=pid, parent=10, cwd="/w")
    assert behind(site.trial()) == "several /w/t.py"
