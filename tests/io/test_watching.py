"""How far a call is: the callback's numbers, and the line on a terminal."""

from __future__ import annotations

import ctypes
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_python import run

import brigade.io
from brigade.io import _lib, watching


@pytest.mark.parametrize("transport", ["direct", "simple", "rotate"])
def test_progress_grows_from_nothing_to_all_of_a_calls_bytes(
    tmp_path: Path, transport: str
) -> None:
    seen: list[tuple[int, int]] = []
    callback = watching.PROGRESS(lambda _, done, total: seen.append((done, total)))
    pieces = [(2 * i * 5000, 5000) for i in range(400)]
    path = tmp_path / "file"
    with brigade.io.open(None, path, "w", transport=transport, sync=False) as f:
        pointer = ctypes.cast(callback, ctypes.c_void_p)
        _lib.function("file_on_progress")(f.handle, pointer, None)
        f.write_pieces(pieces, bytes(2_000_000))
        f.write()  # nothing of this rank: nothing to tell
        _lib.function("file_on_progress")(f.handle, None, None)
        f.write(0, b"more")
    assert seen[0] == (0, 2_000_000) and seen[-1] == (2_000_000, 2_000_000)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {total for _, total in seen} == {2_000_000} and len(seen) > 2


PROGRAM = """
import sys, brigade.io
from brigade.io import watching
watching.PATIENCE_S = float(sys.argv[2])
watching.REDRAW_S = 0
with brigade.io.open(None, sys.argv[1], "w", sync=False, transport="simple") as f:
    f.write(0, bytes(4_000_000))
print("end", file=sys.stderr)
"""


@pytest.mark.parametrize("patience, shown", [(0, True), (1000, False)])
def test_a_terminal_shows_a_line_only_for_what_takes_long(
    tmp_path: Path, patience: float, shown: bool
) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "ckpt.7"), str(patience)]
    environment = {**os.environ, "TERM": "xterm"}
    done = subprocess.run(command, stderr=theirs, env=environment)
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    assert done.returncode == 0
    assert ("ckpt.7 [" in said) == shown
    assert said.endswith("end\r\n") and (not shown or "\r\x1b[Kend" in said)


# Of rank 0 alone.
ODD = """
class Writes:
    def write(self, text):
        return len(text)
    def flush(self):
        pass
closed = open(os.devnull, "w")
closed.close()
kept = sys.stderr
for odd in (None, closed, Writes()):
    for progress in (None, True, False):
        sys.stderr = odd if rank == 0 else kept
        try:
            with brigade.io.open(comm, PATH, "w", sync=False, progress=progress) as f:
                f.write(rank, b"x")
            out["written"] = out.get("written", 0) + 1
        except Exception as error:
            out["raised"] = str(error)
        sys.stderr = kept
        if "raised" in out:
            comm.Abort()
"""


def test_a_standard_error_that_is_no_file_keeps_no_rank_waiting(tmp_path: Path) -> None:
    assert run("openmpi", 2, ODD, tmp_path) == [{"written": 9}] * 2
