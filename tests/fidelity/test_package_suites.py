"""The test suites of NumPy and of mpi4py: each single test ends as it does without Brigade.

NumPy's lies in its wheel, mpi4py's in its source archive; both are run as their projects run them,
mpi4py's on two ranks. The packages are installed from PyPI into a virtual environment, which is
covered. A part of NumPy's runs quickly, in a forked rank, with the NumPy of these tests' Python.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import outcomes
import pytest
from differential import FORK, VIEWS, Differential, python_path

HERE = Path(__file__).parent
NUMPY = [
    *(f"numpy.{name}" for name in ("lib", "linalg", "fft", "random")),
    *(f"numpy._core.tests.test_{name}" for name in ("dtype", "numeric", "ufunc")),
]
# These start further processes by MPI_Comm_spawn, for which one machine has no slots
SPAWNING = ("test_spawn", "test_dynproc", "test_util_pool")
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

PART = ["numpy.fft", "numpy.polynomial"]
# each within its limit of time
WAYS = pytest.mark.parametrize("ways", [[FORK], VIEWS], ids=["forked", "views"])


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A virtual environment of its own: what tests write must not be seen by others."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    return tmp_path / "venv/bin/python"


def pip(python: Path, *words: str) -> None:
    command = [python, "-m", "pip", "-q", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"pip {' '.join(words)}: {done.stderr.strip()[-300:]}")


def pair(tmp_path: Path) -> Differential:
    return Differential(tmp_path / "pair", covered=[tmp_path / "venv"])


def numpys(
    pair: Differential, python: Path, modules: list[str], at_least: int, ways: Sequence[str]
) -> Counter[str]:
    lines = pair.folder / "lines"
    first = [python, HERE / "pytest_lines.py"]
    options = ["-q", "-W", "ignore", "--pyargs", *modules]
    imports = [*first, "", *options]
    return outcomes.compare(
        pair, [*first, lines, *options], lines, at_least, imports=imports, ways=ways
    )


def test_a_part_of_numpys_tests_passes_alike_in_a_forked_rank(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    quick = Differential(tmp_path / "pair", covered=[Path(numpy.__file__).parent])
    print("NumPy:", dict(numpys(quick, Path(sys.executable), PART, 500, [FORK])))


@pytest.mark.all
@pytest.mark.timeout(1800)
@WAYS
def test_numpy_passes_its_tests_alike(tmp_path: Path, python: Path, ways: Sequence[str]) -> None:
    pip(python, "install", "numpy", "pytest", "hypothesis")
    print("NumPy:", dict(numpys(pair(tmp_path), python, NUMPY, 10_000, ways)))


@pytest.mark.all
@pytest.mark.timeout(1800)
@WAYS
@pytest.mark.skipif(not shutil.which("mpirun.openmpi"), reason="needs the package openmpi-bin")
def test_mpi4py_passes_its_tests_alike_on_two_ranks(
    tmp_path: Path, python: Path, ways: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # one-sided operations by another component end Open MPI 4 with a signal, without Brigade, too
    monkeypatch.delenv("OMPI_MCA_osc", raising=False)
    pip(python, "install", "mpi4py", "numpy")
    version = "import mpi4py; print(mpi4py.__version__)"
    found = subprocess.run([python, "-c", version], capture_output=True, text=True, check=True)
    archive = f"mpi4py=={found.stdout.strip()}"
    pip(python, "download", "--no-deps", "--no-binary=mpi4py", "-d", str(tmp_path), archive)
    with tarfile.open(next(tmp_path.glob("mpi4py-*.tar.gz"))) as tar:
        tar.extractall(tmp_path)
    suite = next(tmp_path.glob("mpi4py-*/test"))
    modules = sorted(path.stem for path in suite.glob("test_*.py") if path.stem not in SPAWNING)
    program = [python, HERE / "unittest_lines.py", f"{tmp_path}/lines.%r", *modules]
    command = ["mpirun.openmpi", "-n", "2", "--oversubscribe", *program]
    counts = outcomes.compare(
        pair(tmp_path),
        command,
        tmp_path / "lines",
        at_least=3000,
        ranks=None,
        ways=ways,
        PYTHONPATH=python_path(suite),
        **ROOT,
    )
    print("mpi4py:", dict(counts))
