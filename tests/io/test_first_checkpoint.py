"""docs/tutorial/first-checkpoint.md does what it says, program by program."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_world import run_mpi

from brigade.paths import native_dir

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/tutorial/first-checkpoint.md").read_text()
SAVE, LOAD, FAIL = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(SAVE_C,) = re.findall(r"```c\n(.*?)```", PAGE, re.DOTALL)
SAID = re.findall(r"^    (rank \d: rows .*)", PAGE, re.MULTILINE)
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT / "python"),
    "BRIGADE_NATIVE": str(native_dir().absolute()),
    "MPI4PY_MPIABI": "openmpi",
}


def mpirun(ranks: int, *command: str | Path) -> subprocess.CompletedProcess[str]:
    if not shutil.which("mpirun.openmpi"):
        pytest.skip("needs Debian package openmpi-bin")
    return run_mpi("openmpi", ranks, list(command), **ENVIRONMENT)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {"save.py": SAVE, "load.py": LOAD, "save.c": SAVE_C}.items():
        Path(name).write_text(text)
    return tmp_path


def load() -> list[str]:
    done = mpirun(2, sys.executable, "load.py")
    assert done.returncode == 0, done.stderr
    # launchers may put what two ranks print at once on one line
    return sorted(re.findall(r"rank \d: rows \d+ to \d+, mean [\d.]+ K at [\d.]+ s", done.stdout))


def test_the_python_programs_write_read_and_survive_a_failure(here: Path) -> None:
    done = mpirun(4, sys.executable, "save.py")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in here.glob("ckpt*")) == ["ckpt.0001", "ckpt.0001.sums"]
    assert Path("ckpt.0001").stat().st_size // 10**6 == 9
    assert load() == SAID
    one = re.search(r"python -c '(.*)'", PAGE)
    assert one
    alone = subprocess.run(
        [sys.executable, "-c", one.group(1)],
        env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "<array temperature: float64 [1000, 1000]>" in alone.stdout

    Path("save.py").write_text(SAVE + FAIL)
    failed = mpirun(4, sys.executable, "save.py")
    assert failed.returncode != 0 and "no more memory" in failed.stderr
    assert load() == SAID


def test_the_c_program_is_built_as_the_page_says(here: Path) -> None:
    if not shutil.which("mpicc.openmpi"):
        pytest.skip("needs Debian package libopenmpi-dev")
    config = [sys.executable, "-m", "brigade", "io-config", "--cflags", "--libs"]
    words = subprocess.run(
        config, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "mpicc save.c $(brigade io-config --cflags --libs) -o save" in PAGE
    subprocess.run(["mpicc.openmpi", "save.c", *words, "-o", "save"], check=True)
    done = mpirun(3, "./save")
    assert done.returncode == 0, done.stderr
    assert [line.rpartition(" at ")[2] for line in load()] == ["2.5 s", "2.5 s"]
