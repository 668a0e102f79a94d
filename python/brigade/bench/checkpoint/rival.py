"""A neighbour on the file system: writes in bursts, syncs, reads back, rests, until it is ended.

python -m brigade.bench.checkpoint.rival FOLDER MEGABYTES SEED
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from brigade.errors import BrigadeError

_LONGEST_REST_S = 0.4
_PIECE = 1 << 20


@contextlib.contextmanager
def rival(folder: Path, megabytes: int) -> Iterator[None]:
    """While the block runs, bursts of up to `megabytes` go to `folder`; 0: none. BrigadeError after
    it if they did not go on until its end."""
    if not megabytes:
        yield
        return
    command = [sys.executable, "-m", __spec__.name, str(folder), str(megabytes), "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        yield  # then its standard input is closed: it ends with its burst, or with us
    if child.returncode:
        raise BrigadeError(
            f"the neighbour (--rival) ended with status {child.returncode}, and not with the "
            "measurement",
            hint="what was measured without it is no measurement beside another job",
        )


def _burst(folder: str, pieces: int, contents: bytes) -> None:
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(pieces):
            file.write(contents)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        while file.read(_PIECE):
            pass


def main(words: list[str]) -> None:
    """Bursts until standard input ends."""
    chance = random.Random(int(words[2]))
    contents = chance.randbytes(_PIECE)
    os.set_blocking(0, False)
    while os.read(0, 1) if _readable() else True:
        try:
            _burst(words[0], chance.randint(1, int(words[1])), contents)
        except OSError as error:
            sys.exit(f"the neighbour (--rival): {words[0]}: {error.strerror}")
        time.sleep(chance.uniform(0, _LONGEST_REST_S))


def _readable() -> bool:
    import select

    return bool(select.select([0], [], [], 0)[0])


if __name__ == "__main__":
    main(sys.argv[1:])
