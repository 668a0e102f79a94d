"""What of the targets of one-sided collective I/O is reached, as tables in Markdown.

A sample is that of a variant of `brigade bench ior`, with `pattern` and `record`; with a view its
name says `:view`. A cell is a pattern of so many ranks, with or without a view, written or read.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from brigade.bench.checkpoint.plan import size_name
from brigade.bench.checkpoint.summary import ratio

Sample = dict[str, Any]
Cell = dict[str, Any]
PEERS = ("OMPIO", "ROMIO")
OURS = {
    "PRELOADED": "MPI-IO beneath `brigade mpiio`",
    "ONESIDED": "one-sided, windows",
    "SHMEM": "one-sided, OpenSHMEM",
}
# how many times faster than the best of the peers, by pattern
TARGETS = {
    "contiguous": (1.0, "large contiguous"),
    "strided": (1.5, "64 KiB strided"),
    "4d": (3.0, "4-D blocks"),
    "published": (1.0, "as published (there: 0.77 to 0.94 written)"),
}


def kind(variant: str) -> str:
    """OMPIO, ROMIO, or one of OURS."""
    return "SHMEM" if "seam=shmem" in variant else variant.partition(":")[0]


def family(pattern: str) -> str:
    """Whose target it has: `strided, a call each` that of `strided`."""
    return pattern.partition(",")[0]


def cells(samples: Sequence[Sample]) -> list[Cell]:
    """In the order of ranks, and then of the samples' patterns."""
    keys = dict.fromkeys((s["ranks"], s["pattern"], s["record"]) for s in samples)
    found = []
    for key in sorted(keys, key=lambda key: key[0]):
        same = [s for s in samples if (s["ranks"], s["pattern"], s["record"]) == key]
        for view in (False, True):
            some = [s for s in same if ("view" in s["variant"].split(":")) == view]
            ways = [way for way in ("write", "read") if some and some[0].get(way)]
            found += [_cell(key, view, way, some) for way in ways]
    return found


def _cell(key: tuple[int, str, int], view: bool, access: str, samples: list[Sample]) -> Cell:
    names = dict.fromkeys(s["variant"] for s in samples)
    seconds = {
        name: statistics.median(s[access]["total"] for s in samples if s["variant"] == name)
        for name in names
    }
    peers = [name for name in names if kind(name) in PEERS]
    best = min(peers, key=lambda name: seconds[name])
    return {
        "ranks": key[0],
        "pattern": key[1],
        "record": key[2],
        "bytes": samples[0]["bytes"],
        "view": view,
        "access": access,
        "seconds": {kind(name): seconds[name] for name in names},
        "best": kind(best),
        "ratios": {
            kind(name): ratio(samples, name, best, access) for name in names if kind(name) in OURS
        },
    }


def print_table(found: Sequence[Cell]) -> None:
    ours = [name for name in OURS if any(name in cell["ratios"] for cell in found)]
    columns = ["ranks", "pattern", "record", "MiB", "view", "", "OMPIO ms", "ROMIO ms"]
    columns += [text for name in ours for text in (f"{OURS[name]}, ms", "of the best")]
    left = ("pattern", "view", "")
    print(f"| {' | '.join(columns)} |")
    print(f"|{'|'.join('---' if name in left else '--:' for name in columns)}|")
    for cell in found:
        words = [str(cell["ranks"]), cell["pattern"], size_name(cell["record"])]
        words += [f"{cell['bytes'] / 2**20:.1f}", "yes" if cell["view"] else "no", cell["access"]]
        words += [_ms(cell, name) for name in PEERS]
        for name in ours:
            words += [_ms(cell, name), _shown(cell["ratios"].get(name))]
        print(f"| {' | '.join(words)} |")


def _ms(cell: Cell, name: str) -> str:
    there = cell["seconds"].get(name)
    return f"{1000 * there:,.1f}" if there else "-"


def _shown(found: dict[str, float] | None) -> str:
    return f"{found['ratio']:.2f} [{found['low']:.2f}, {found['high']:.2f}]" if found else "-"


def verdicts(found: Sequence[Cell]) -> Iterator[tuple[str, str, bool]]:
    """(target, figure, reached) for each target of each of ours."""
    for name, title in OURS.items():
        for pattern, (target, text) in TARGETS.items():
            for access in ("write", "read"):
                some = [
                    cell
                    for cell in found
                    if family(cell["pattern"]) == pattern
                    and cell["access"] == access
                    and name in cell["ratios"]
                ]
                if some:
                    yield _verdict(f"{title}: {text}: {access}: {target:g}", some, name, target)


def _verdict(text: str, found: Sequence[Cell], name: str, target: float) -> tuple[str, str, bool]:
    enough = sum(cell["ratios"][name]["ratio"] >= target for cell in found)
    worst = min(found, key=lambda cell: cell["ratios"][name]["ratio"])
    where = f"{worst['pattern']} {size_name(worst['record'])}, {worst['ranks']} ranks"
    where += ", view" if worst["view"] else ""
    least = _shown(worst["ratios"][name])
    return text, f"{enough} of {len(found)} cells; least {least} ({where})", enough == len(found)


def print_verdicts(found: Sequence[Cell], title: str) -> None:
    print(f"\n| times the best of OMPIO and ROMIO, {title} | measured | reached |")
    print("|---|---|---|")
    for text, shown, reached in verdicts(found):
        print(f"| {text} | {shown} | {'yes' if reached else 'no'} |")
