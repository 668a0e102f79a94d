"""A launcher that keeps what each rank says apart: `mpirun`, with the options of MPICH's.

    mpirun [-turns DIR] -n 2 -outfile-pattern F [-ppn 1] PROGRAM ARGUMENT...

Rank N's output goes to F.N.out and F.N.err, its exit status to F.N.status; without -outfile-pattern
(a trial, a step of Brigade's own) to where the launcher's own goes. Each rank has pipes, as a
program that subprocess.run starts has. The exit code is the worst rank's.

With -turns one rank starts when the one before has ended, and finds DIR empty: ranks of one command
have one working folder and one environment, or else they would not be forked from one process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    found = {}
    while words and words[0].startswith("-"):
        found[words[0].lstrip("-")] = words[1]
        words = words[2:]
    return found, words


def start(rank: int, ranks: int, program: list[str], pipe: int | None) -> subprocess.Popen[bytes]:
    numbers = {"PMI_RANK": rank, "MPI_LOCALRANKID": rank, "PMI_SIZE": ranks}
    numbers["MPI_LOCALNRANKS"] = ranks
    environment = {**os.environ, **{name: str(number) for name, number in numbers.items()}}
    null = subprocess.DEVNULL
    return subprocess.Popen(program, env=environment, stdin=null, stdout=pipe, stderr=pipe)


def main(words: list[str]) -> int:
    if words == ["--version"]:
        print("a launcher of tests")
        return 0
    given, program = options(words)
    ranks, pattern = int(given.get("n", 1)), given.get("outfile-pattern")
    pipe = subprocess.PIPE if pattern else None
    codes = []
    for at_once in rounds(ranks, given.get("turns")):
        started = [start(rank, ranks, program, pipe) for rank in at_once]
        for rank, said, one in zip(at_once, read_all(started), started):
            codes.append(one.wait())
            if pattern:
                for name, text in zip(("out", "err"), said):
                    Path(f"{pattern}.{rank}.{name}").write_bytes(text)
                Path(f"{pattern}.{rank}.status").write_text(str(codes[-1]))
    return max(code if code >= 0 else 128 - code for code in codes)


def rounds(ranks: int, turns: str | None) -> Iterator[list[int]]:
    """The ranks that run at the same time."""
    if turns is None or ranks == 1:  # a single one is a step of Brigade's own
        yield list(range(ranks))
        return
    for rank in range(ranks):
        for entry in os.scandir(turns):
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)
        yield [rank]


def read_all(started: list[subprocess.Popen[bytes]]) -> list[tuple[bytes, bytes]]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(started)) as pool:
        return list(pool.map(lambda one: one.communicate(), started))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
