"""docs/tutorial/port-mpiio.md does what it says; and OpenSHMEM and MPI in one program, what
docs/how-to/openshmem-and-mpi.md says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mpi_world import INCLUDE
from pgas_world import OSHMEM_ENVIRONMENT, OSHRUN

from brigade.paths import native_dir

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/tutorial/port-mpiio.md").read_text()
(PROGRAM,) = re.findall(r"```c\n(.*?)```", PAGE, re.DOTALL)
#: the lines that a user types, but for what this machine needs more
TYPED = re.findall(
    r"^    ((?:\w+='[^']*' )?(?:\w+=\S+ )?(?:mpicc|mpirun|sed|oshcc|oshrun) .*)", PAGE, re.MULTILINE
)
WORDS = f"-I{INCLUDE} -L{native_dir()} -lbrigade_shmemio -Wl,-rpath,{native_dir()}"

pytestmark = pytest.mark.skipif(
    not shutil.which("oshcc") or not shutil.which("mpicc.openmpi"),
    reason="needs Debian packages openmpi-bin and libopenmpi-dev: oshcc",
)


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    line = line.replace("$(brigade io-config --shmem --cflags --libs)", WORDS)
    line = line.replace("oshrun", " ".join(OSHRUN[:-1]))
    line = re.sub(r"\bmpicc\b", "mpicc.openmpi", line)
    line = re.sub(r"\bmpirun\b", "mpirun.openmpi --oversubscribe", line)
    env = {**os.environ, **OSHMEM_ENVIRONMENT, "BRIGADE_NATIVE": str(native_dir())}
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, env=env, capture_output=True, text=True, timeout=60
    )


def test_the_ported_program_writes_the_same_file_fails_alike_and_publishes(tmp_path: Path) -> None:
    (tmp_path / "field.c").write_text(PROGRAM)
    file = tmp_path / "field"
    build, run, port, build_ported, run_ported, fail, fail_whole, publish = TYPED
    assert shell(build.replace("-o field", "-o plain"), tmp_path).returncode == 0
    assert shell(run.replace("./field", "./plain"), tmp_path).returncode == 0
    expected = file.read_bytes()
    assert len(expected) == 8 << 20
    file.unlink()
    assert shell(port, tmp_path).returncode == 0
    ported = (tmp_path / "field_shmem.c").read_text()
    for line in re.findall(r"^    > (.*)", PAGE, re.MULTILINE):
        assert line in ported
    done = shell(build_ported, tmp_path)
    assert done.returncode == 0, done.stderr
    done = shell(run_ported, tmp_path)
    assert done.stdout.count("of 4: 262144 numbers") == 4, done.stderr
    assert file.read_bytes() == expected
    for line, left, at in ((fail, None, 100000), (fail_whole, b"old", r"\d+")):
        if left:
            file.write_bytes(left)
        done = shell(line, tmp_path)
        assert done.returncode != 0
        said = set(
            re.findall(rf"rank (\d): cannot write \S*/field at byte {at}: No sp", done.stderr)
        )
        assert said <= set("0123") and said, done.stderr
        assert not left or file.read_bytes() == left
    assert shell(publish, tmp_path).returncode == 0
    assert file.read_bytes() == expected
    verify = [native_dir() / "brigade-file", "verify", file]
    assert subprocess.run(verify, capture_output=True).returncode == 0


@pytest.mark.parametrize("first", ["shmem", pytest.param("mpi", marks=pytest.mark.all)])
def test_openshmem_and_mpi_have_files_open_at_once(first: str, tmp_path: Path) -> None:
    source = Path(__file__).with_name("both.c")
    done = shell(f"oshcc {source} {WORDS} -o both", tmp_path)
    assert done.returncode == 0, done.stderr
    done = shell(f"oshrun -n 5 ./both . {first}", tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    files = {path.name: path.read_text() for path in tmp_path.iterdir() if path.name != "both"}
    assert files == {
        "all": "ABCDE", "set.0": "ace", "set.1": "bd", "half.0": "024", "half.1": "13",
    }  # fmt: skip
