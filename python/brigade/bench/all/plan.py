"""Which benchmarks there are, and what each does in a short form and in its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RANKS = "{n}"  # in words: the number of ranks


@dataclass(frozen=True)
class Entry:
    """`show` prints a report: MODULE:FUNCTION, called with the report, or with its `parts`."""

    name: str
    title: str
    about: str
    quick: tuple[str, ...]
    full: tuple[str, ...]
    show: str
    parts: tuple[str, ...] = ()  # keys of the report that `show` gets instead of it
    figure: bool = False
    folder: str = "--dir"
    mpi: bool = True  # its launcher starts so many ranks; the MPI's compiler is needed
    more: tuple[object, ...] = ()  # what `show` gets besides


_IOR = ("-n", RANKS, "-t", "1m", "-w", "-r", "--compare")
ENTRIES = (
    Entry(
        "pynamic", "Python modules",
        "Ranks import generated extension modules and call what they have.",
        ("--modules", "6", "--utilities", "6"), (),
        "brigade.bench.table:print_table", mpi=False,
    ),
    Entry(
        "cload", "Libraries",
        "A C program that is linked with many generated libraries starts.",
        ("--libraries", "24", "--layout", "one"), (),
        "brigade.bench.table:print_table", mpi=False,
    ),
    Entry(
        "cache", "The page cache",
        "How fast writes seem to be over time, and what of a large file stays cached.",
        ("--seconds", "12", "--sizes", "64k,1M"), (),
        "brigade.bench.cache.report:print_report", figure=True, mpi=False,
    ),
    Entry(
        "checkpoint", "Checkpoints",
        "The same bytes through Brigade and its peers, in turn; ratios are of medians.",
        ("-n", RANKS, "--record", "64k,1M", "--rounds", "2"), ("-n", RANKS),
        "brigade.bench.checkpoint.table:print_report", figure=True,
    ),
    Entry(
        "align", "Headers",
        "What a small header before each rank's block does to the rates.",
        ("-n", RANKS, "--block", "4M", "--rounds", "2"), ("-n", RANKS),
        "brigade.bench.checkpoint.align:print_report",
    ),
    Entry(
        "overlap", "The course of a write",
        "A program's barriers while its checkpoint is written.",
        ("-n", RANKS, "--size", "8M", "--rounds", "2", "--barriers", "200"), ("-n", RANKS),
        "brigade.bench.overlap_report:print_report", figure=True,
    ),
    Entry(
        "interfere", "I/O against collective calls",
        "Percentiles of barriers and allreduces before, during and after each rank writes.",
        ("-n", RANKS, "--size", "8M", "--rounds", "1", "--barriers", "200"), ("-n", RANKS),
        "brigade.bench.interfere_report:print_report", figure=True,
    ),
    Entry(
        "ior", "IOR",
        "Back ends of the usual benchmark of parallel I/O, in turn.",
        (*_IOR, "-a", "POSIX,LAMINAR", "-b", "4m", "-i", "2"),
        (*_IOR, "-a", "POSIX,MPIIO,LAMINAR", "-b", "64m", "-i", "3"),
        "brigade.bench.ior.compare:print_report", ("rows",), more=(None,),
    ),
)  # fmt: skip


def words(
    entry: Entry, quick: bool, ranks: int, folder: str, figure: str | None,
    launcher: Sequence[str],
) -> list[str]:  # fmt: skip
    """What stands after `brigade bench`."""
    own = [word.replace(RANKS, str(ranks)) for word in (entry.quick if quick else entry.full)]
    made = [entry.name, *own, entry.folder, folder, "--json"]
    if figure and entry.figure:
        made += ["--figure", figure]
    if entry.name in ("pynamic", "cload"):
        plain = [word.replace("{n}", str(ranks)) for word in launcher]
        return [*made, "--", *plain] if launcher else [*made, "-n", str(ranks)]
    return [*made, "--", *launcher] if launcher and entry.mpi else made
