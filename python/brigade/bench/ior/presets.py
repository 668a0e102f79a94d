"""Published runs of IOR with MPI-IO and one-sided collective I/O side by side, MiB/s.

Titan: 1 MiB transfers into shared files of 4 GiB a task on Lustre, 16 tasks a node. SGI: 8 tasks on
8 nodes, a file that fits into memory and one that does not. Each with and without a view of the
file; one-sided: OpenSHMEM.
"""

from __future__ import annotations

from dataclasses import dataclass

COLUMNS = ("MPIIO", "one-sided", "MPIIO:view", "one-sided:view")


@dataclass(frozen=True)
class Published:
    ranks: int
    nodes: int
    file_gib: int
    access: str
    rates: tuple[int, int, int, int]  # of COLUMNS


@dataclass(frozen=True)
class Preset:
    """A published run: who wrote how much, and what it came to."""

    system: str
    ranks: int
    rank_bytes: tuple[int, ...]  # what each rank writes, of each of the files
    published: tuple[Published, ...]


# what all of them have, by field of options.def
VALUES: dict[str, int | str] = {
    "api": "MPIIO,ONESIDED,MPIIO:view,ONESIDED:view,LAMINAR",
    "block": "1m",
    "transfer": "1m",
    "collective": 1,
    "offset_tasks": "16",
    "reorder_random": 1,
    "reorder_seed": "16",
    "write": 1,
    "read": 1,
}

PRESETS = {
    "titan-1024": Preset(
        "Titan",
        1024,
        (4 << 30,),
        (
            Published(256, 16, 1024, "write", (1777, 1655, 1807, 1681)),
            Published(256, 16, 1024, "read", (878, 1330, 872, 1342)),
            Published(512, 32, 2048, "write", (2947, 2538, 2972, 2523)),
            Published(512, 32, 2048, "read", (1369, 2260, 1321, 2473)),
            Published(1024, 64, 4096, "write", (4593, 3688, 4492, 3450)),
            Published(1024, 64, 4096, "read", (2404, 3989, 2008, 3698)),
        ),
    ),
    "sgi": Preset(
        "SGI",
        8,
        (4 << 30, 256 << 30),
        (
            Published(8, 8, 32, "write", (1605, 695, 3578, 974)),
            Published(8, 8, 32, "read", (4191, 3031, 4056, 2941)),
            Published(8, 8, 2048, "write", (3601, 3714, 3735, 3655)),
            Published(8, 8, 2048, "read", (5286, 4867, 5266, 4888)),
        ),
    ),
}


def scaled(preset: Preset, scale: int) -> tuple[int, list[int]]:
    """(ranks, bytes of a rank of each file) of 1/scale of the ranks, and of what each writes; at
    least 2 ranks and 1 MiB."""
    ranks = max(2, preset.ranks // scale)
    return ranks, [max(1 << 20, size // scale) for size in preset.rank_bytes]
