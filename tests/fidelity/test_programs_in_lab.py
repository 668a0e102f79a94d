"""Real programs on the lab's shared file system, plain and under each view: the same output.

The programs stand in programs/table.py. Each is fetched, put onto MooseFS, and removed again; those
of test_real_programs.py are run there as well.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest
from differential import InLab, assert_same, python_path
from lab_needs import missing
from programs.install import install, words, work_of
from programs.table import TABLE, Program

from brigade.lab import Lab

HERE = Path(__file__).parent


pytestmark = [
    pytest.mark.all,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(missing()), reason=missing() or "the lab can be brought up"),
]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    lab = Lab.up(f"programs-{os.getpid()}", nodes=2, binds=[str(HERE)])
    yield lab
    lab.down()


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder that the nodes see, too."""
    folder = Path(f"/var/tmp/brigade-programs-{os.getpid()}")
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("program", TABLE, ids=lambda program: program.name)
def test_a_real_program_says_the_same(lab: Lab, scratch: Path, program: Program) -> None:
    tree = install(program, lab, scratch)
    try:
        pair = InLab(scratch / "pair", lab, work_of(tree))
        for wide in (False, True)[: 1 + bool(program.launcher)]:
            command, environment = words(program, tree, wide)
            if "PYTHONPATH" in environment:
                environment["PYTHONPATH"] = python_path(environment["PYTHONPATH"])
            assert program.says in pair.plain(command, **environment).stdout
            assert_same(
                pair,
                command,
                program.status,
                None if wide else 1,
                program.not_forked,
                program.prints_its_path,
                **environment,
            )
    finally:
        lab.exec("n0", ["rm", "-rf", tree, work_of(tree)], check=True)


def test_small_programs_say_the_same_on_the_labs_file_system(lab: Lab) -> None:
    done = lab.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-m", "", HERE / "test_real_programs.py"]
        + [f"--basetemp={lab.shared}/small"],
        cwd=str(HERE.parents[1]),
        env={"BRIGADE_NODE_DIR": "/dev/shm", "TMPDIR": "/tmp"},
        stdout=PIPE,
        stderr=PIPE,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
