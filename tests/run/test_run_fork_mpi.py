"""`brigade run --fork` of programs that are no Python: a C++ code under each MPI, and the many
libraries of `brigade bench cload`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_world import EITHER_MPI, ENVIRONMENT, LAUNCHERS

SAID = re.compile(r"rank (\d) of 4 sum 6 parent (\d+)")
SOURCE = """\
#include <mpi.h>
#include <string>
#include <unistd.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    std::string line = "rank " + std::to_string(rank) + " of " + std::to_string(size) + " sum " +
                       std::to_string(sum) + " parent " + std::to_string(getppid()) + "\\n";
    if (write(1, line.data(), line.size()) < 0) return 2;
    MPI_Finalize();
    return 0;
}
"""


def run(
    folder: Path, *words: str | Path, ranks: int = 0, **environment: str
) -> tuple[list[str], dict]:
    """What the job's ranks say, and what the report says of the fork. `ranks`: without launcher."""
    told = folder / "report.json"
    command = [sys.executable, "-m", "brigade", "run", "-q", "--fork", "--json", str(told)]
    command += ["-n", str(ranks)] if ranks else []
    done = subprocess.run(
        [*command, "--", *map(str, words)],
        text=True, capture_output=True, timeout=120, check=False,
        env={
            **os.environ, **ENVIRONMENT, **environment, "BRIGADE_CACHE": str(folder / "cache"),
            "BRIGADE_NODE_DIR": str(folder / "node"), "BRIGADE_PATIENCE": "60",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), json.loads(told.read_text())["fork"]


@pytest.mark.parametrize("mpi", EITHER_MPI)
def test_ranks_of_a_cpp_code_come_from_one_process(tmp_path: Path, mpi: str) -> None:
    if not shutil.which(f"mpicxx.{mpi}"):
        pytest.skip(f"needs Debian package lib{mpi}-dev: mpicxx.{mpi}")
    (tmp_path / "node").mkdir()
    app = tmp_path / "app"
    (tmp_path / "app.cc").write_text(SOURCE)
    subprocess.run([f"mpicxx.{mpi}", tmp_path / "app.cc", "-o", app], check=True)
    job = [*LAUNCHERS[mpi], "4", app]
    run(tmp_path, *job)
    said, told = run(tmp_path, *job)
    found = [SAID.fullmatch(line) for line in said]
    assert all(found) and sorted(one[1] for one in found if one) == list("0123"), said
    assert len({one[2] for one in found if one}) == 1
    assert (told["ranks"], told["plain"], told["nowhere"]) == (4, [], None)
    assert told["kind"] == "main" or (told["kind"] == "preinit" and told["before_main"])


def test_modules_of_pynamic_are_imported_once(tmp_path: Path) -> None:
    """Its program puts their folder into sys.path: a template has it from the environment."""
    (tmp_path / "node").mkdir()
    words = ["bench", "pynamic", "--modules", "8", "--functions", "20", "--dir", str(tmp_path)]
    made = subprocess.run(
        [sys.executable, "-m", "brigade", *words, "--generate", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    world = Path(json.loads(made.stdout)["world"])
    job = (sys.executable, world / "pynamic.py")
    path = ":".join([str(world / "lib"), *filter(None, [os.environ.get("PYTHONPATH")])])
    run(tmp_path, *job, ranks=4, PYTHONPATH=path)
    said, told = run(tmp_path, *job, ranks=4, PYTHONPATH=path)
    sums = {line.partition('"checksum": ')[2] for line in said}
    wanted = json.loads((world / "world.json").read_text())["checksum"]
    assert len(said) == 4 and sums == {f'"{wanted}"}}'}
    assert (told["kind"], told["ranks"], told["dropped"]) == ("python", 4, {})


@pytest.mark.parametrize("layout", ["one", "each"])
def test_ranks_with_many_libraries_come_from_one_process(tmp_path: Path, layout: str) -> None:
    (tmp_path / "node").mkdir()
    words = ["bench", "cload", "--libraries", "40", "--layout", layout, "--dir", str(tmp_path)]
    made = subprocess.run(
        [sys.executable, "-m", "brigade", *words, "--generate", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    world = json.loads(made.stdout)
    app = Path(world["world"]) / "bin/cload-main"
    run(tmp_path, app, "0", ranks=4)
    said, told = run(tmp_path, app, "0", ranks=4)
    plain = subprocess.run([app, "0"], capture_output=True, text=True, check=True).stdout
    sums = {line.partition('"checksum": ')[2] for line in (*said, plain.strip())}
    assert len(said) == 4 and len(sums) == 1
    assert (told["kind"], told["ranks"]) == ("main", 4)
