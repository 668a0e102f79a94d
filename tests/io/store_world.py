"""Files written by tests/io/store_driver.c, and what may lie beside them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, NamedTuple

import numpy
import pytest
from mpi_python import run
from mpi_world import INCLUDE, compile_mpi, run_mpi

from brigade.paths import native, native_dir

SOURCE = Path(__file__).with_name("store_driver.c")
MIB = 1 << 20
#: system calls that change what lies on disk; what others leave is what the next of these meets
CHANGING = (
    "pwrite64",
    "fsync",
    "rename",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "rmdir",
    "fchmod",
    "ftruncate",
    "copy_file_range",
)
EVERY = (*CHANGING, "openat", "close", "pread64", "flock")


class Told(NamedTuple):
    """What one rank was told."""

    rank: int
    code: int
    failed_rank: int
    offset: int
    path: str


def compile_alone(target: Path) -> Path:
    """The driver for one process, without MPI."""
    folder = native_dir()
    command = ["cc", "-g", "-DBRG_NO_MPI", f"-I{INCLUDE}", str(SOURCE), "-o", str(target)]
    command += [f"-L{folder}", "-lbrigade_io", f"-Wl,-rpath,{folder}"]
    subprocess.run(command, check=True)
    return target


def compile_for(mpi: str, target: Path) -> Path:
    return compile_mpi(mpi, SOURCE, target)


def words(path: Path, way: str, hints: str, size: int, calls: int, salt: int) -> list[str]:
    return [str(path), way, hints, str(size), str(calls), str(salt)]


def told(output: str) -> list[Told]:
    lines = [line.split(" ", 4) for line in output.splitlines()]
    return sorted(Told(*map(int, line[:4]), line[4]) for line in lines)


def run_ranks(mpi: str, ranks: int, driver: Path, *args: Any, **environment: str) -> list[Told]:
    """What each rank was told; all of them came to their end."""
    done = run_mpi(mpi, ranks, [driver, *words(*args)], **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    found = told(done.stdout)
    assert [line.rank for line in found] == list(range(ranks)), done.stdout
    return found


def pattern(size: int, salt: int) -> bytes:
    offsets = numpy.arange(size, dtype=numpy.uint64) * numpy.uint64(2654435761)
    return bytes(((offsets >> numpy.uint64(13)) + numpy.uint64(salt)).astype(numpy.uint8))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def calls_by_name(log: Path, folder: Path) -> list[tuple[str, str]]:
    """Of strace's log, what was called of files in the folder, in order: call and name (of the
    folder itself: ""). What Brigade makes up of a name is "brg"."""
    found = []
    for line in log.read_text().splitlines():
        names = re.findall(rf"[\"<]{re.escape(str(folder))}/([^\">]*)", line)
        call = re.match(r"(?:\d+ +)?(\w+)\(", line)
        if names and call:
            found.append((call[1], re.sub("brg-[0-9a-f]+", "brg", names[0])))
    return found


def need_strace() -> None:
    if not shutil.which("strace"):
        pytest.skip("needs Debian package strace")


def calls_of_ranks(
    body: str, folder: Path, calls: str
) -> tuple[list[dict[str, Any]], list[list[tuple[str, str]]]]:
    """What three ranks of a Python program said, and which of these system calls each process made
    of files in the folder (calls_by_name)."""
    need_strace()
    logs = folder.parent / "log"
    under = ["strace", "-ff", "-y", "-o", logs, "-e", f"trace={calls}"]
    said = run("openmpi", 3, body, folder, under=under)
    return said, [calls_by_name(log, folder) for log in folder.parent.glob("log.*")]


def verify(path: Path) -> dict[str, Any]:
    """The outcome of brigade-file: `damaged` blocks, or an `error`."""
    command = [str(native("brigade-file")), "verify", str(path)]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode in (0, 1), done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome


def assert_whole(path: Path, content: bytes) -> None:
    assert path.read_bytes() == content
    assert verify(path).get("damaged") == 0, verify(path)


def killed_everywhere(
    calls: tuple[str, ...], command: Callable[[], list[str]]
) -> Iterator[tuple[str, bool]]:
    """Runs the commands that `command` makes, each killed one system call later than the one
    before; (where, whether it was killed). strace counts each kind of call by itself."""
    need_strace()
    for name in calls:
        for number in range(1, 1000):
            inject = f"inject={name}:signal=SIGKILL:when={number}"
            done = subprocess.run(
                [
                    "strace",
                    "-f",
                    "-o",
                    "/dev/null",
                    "-e",
                    f"trace={name}",
                    "-e",
                    inject,
                    *command(),
                ],
                text=True,
                capture_output=True,
            )
            if "Operation not permitted" in done.stderr:
                pytest.skip("needs ptrace")
            assert done.returncode in (0, -9, 137), done.stderr
            yield f"{name} {number}", done.returncode != 0
            if done.returncode == 0:
                break
