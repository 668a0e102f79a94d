"""Random cases of shared files, a line of text each (io_case.h), and the driver that makes them."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from mpi_world import compile_mpi, run_mpi

TRANSPORTS = ("auto", "direct", "simple", "brigade", "rotate")
STRETCHES, PIECES, ROWS, ALL = 3, 6, 33, 63
RANKS = {"openmpi": (1, 3, 5, 8), "mpich": (1, 2, 3, 3)}  # MPICH's ranks spin while they wait


def hints(pick: random.Random) -> str:
    chosen = {"transport": pick.choice(TRANSPORTS), "sync": pick.choice(["no"] * 5 + ["yes"])}
    optional = {
        "segment": ("64K", "128K", "1M"),
        "stripe": ("64K", "256K", "1M"),
        "writers": ("1", "2", "3", "7"),
        "share": ("no", "no", "yes"),
        "checksums": ("yes", "no"),
        "async": ("yes", "no", "no"),
        "layout": ("parts", "shared", "shared"),
        "lock-unit": ("64K", "256K", "1M"),
    }
    for name, values in optional.items():
        if pick.random() < 0.6:
            chosen[name] = pick.choice(values)
    return ":".join(f"{name}={value}" for name, value in chosen.items())


def case(pick: random.Random, ranks: int) -> str:
    chosen = hints(pick)
    update = pick.choice(["none", "none", "none", "copy", "in-place"])
    words = {
        "seed": pick.randrange(10**9),
        "writers": pick.randint(1, ranks),
        "readers": pick.randint(1, ranks),
        "calls": pick.choice([1, 1, 2, 4, 8]),
        "size": pick.choice([2, 1000, 70_000, 300_000, 300_000, 1_500_000]),
        "gap": pick.choice([0, 0, 0, 1 << 20, 5 << 30, 1 << 36]),
        "kinds": pick.choice([STRETCHES, PIECES, 16, ROWS, ROWS, ALL, ALL]),
        "apart": pick.randint(0, 1),
        "update": "none" if "layout=parts" in chosen else update,  # parts are not changed
        "hints": chosen,
    }
    return " ".join(f"{name}={value}" for name, value in words.items())


def driver_of(mpi: str, folder: Path, *flags: str) -> Path:
    source = Path(__file__).with_name("io_driver.c")
    return compile_mpi(mpi, source, folder / "driver", "-O1", *flags)


def make(
    mpi: str, driver: Path, folder: Path, ranks: int, cases: list[str], **environment: str
) -> None:
    """Make the cases; what is wrong, or where it hung, is said with the line of its case."""
    told = folder / "cases"
    told.write_text("".join(f"{one}\n" for one in cases))
    files = folder / "files"
    files.mkdir(exist_ok=True)
    try:
        done = run_mpi(mpi, ranks, [driver, told, files], **environment)
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode().splitlines()
        pytest.fail(f"it hung in {said[-1] if said else 'the first case'}")
    wrong = [line for line in done.stdout.splitlines() if line.startswith("WRONG")]
    assert not wrong, "\n".join(wrong[:5])
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
    assert not [path for path in files.iterdir() if path.name.startswith(".") and path.is_file()]
