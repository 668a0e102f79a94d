"""Back ends side by side, in the form that was published: a row for each width, file and access.

A figure is the median of the repetitions' bandwidths, which are of the bytes that were moved. A
ratio is of medians, in jobs that ran both or, where none can, in rounds that did, with a 95%
interval from a bootstrap over repetitions (python/brigade/bench/checkpoint/summary.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from brigade.bench.checkpoint.plan import size_name
from brigade.bench.checkpoint.summary import quantile, ratio
from brigade.bench.ior.presets import COLUMNS, Preset
from brigade.bench.wide import console_for

Sample = dict[str, Any]
_OURS = ("LAMINAR", "ONESIDED", "PRELOADED")
_MPI = ("MPIIO", "OMPIO", "ROMIO")
_ACCESSES = ("write", "read")


def rows(samples: Sequence[Sample], names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of measure.compare's samples of these variants: {"ranks", "nodes", "bytes",
    "access", "variants", "best", "ratios"}. `best` is the fastest variant of MPI-IO, or of all
    others; `ratios` how many times faster than it each of Brigade's is, or, without one, the
    first."""
    keys = dict.fromkeys((s["ranks"], s["nodes"], s["bytes"]) for s in samples)
    made = []
    for key in sorted(keys):
        same = [s for s in samples if (s["ranks"], s["nodes"], s["bytes"]) == key]
        made += [_row(key, a, same, names) for a in _ACCESSES if any(a in s for s in same)]
    return made


def _row(
    key: tuple[int, int, int], access: str, samples: list[Sample], names: Sequence[str]
) -> dict[str, Any]:
    moves = [(s["variant"], s[access]) for s in samples]
    variants = {
        name: _spread([move["bytes"] / move["total"] for variant, move in moves if variant == name])
        for name in names
    }
    ours = [name for name in names if _kind(name) in _OURS] or list(names[:1])
    others = [name for name in names if name not in ours]
    peers = [name for name in others if _kind(name) in _MPI] or others
    best = max(peers, key=lambda name: variants[name]["median"], default=None)
    return {
        "ranks": key[0],
        "nodes": key[1],
        "bytes": key[2],
        "access": access,
        "variants": variants,
        "best": best,
        "ratios": {name: ratio(samples, name, best, access) for name in ours} if best else {},
    }


def _kind(name: str) -> str:
    return name.partition(":")[0]


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "n": len(values),
        "median": statistics.median(values),
        "q1": quantile(values, 0.25),
        "q3": quantile(values, 0.75),
    }


def print_report(found: Sequence[dict[str, Any]], preset: Preset | None) -> None:
    """The table of these rows, and the published one of a preset, on standard output."""
    names = list(found[0]["variants"])
    ours = list(found[0]["ratios"])
    title = "median MiB/s, open to closed; times faster than the best of the others [95%]"
    heads = [*names, *(f"{name} by best" for name in ours)]
    table = _table(title, heads)
    for row in found:
        rates = [f"{row['variants'][name]['median'] / 2**20:,.0f}" for name in names]
        times = [_times(row["ratios"][name]) for name in ours]
        table.add_row(
            *_start(row["ranks"], row["nodes"], row["bytes"], row["access"]), *rates, *times
        )
    tables = [table, *([_published(preset)] if preset else [])]
    console = console_for(*tables)
    for number, one in enumerate(tables):
        if number:
            console.print()
        console.print(one)


def _published(preset: Preset) -> Table:
    table = _table(f"published: {preset.system}, MiB/s", [*COLUMNS, "by best"])
    for row in preset.published:
        best = max(row.rates[::2])
        by_best = f"{max(row.rates[1::2]) / best:.2f}"
        start = _start(row.ranks, row.nodes, row.file_gib << 30, row.access)
        table.add_row(*start, *(f"{rate:,}" for rate in row.rates), by_best)
    return table


def _table(title: str, heads: Sequence[str]) -> Table:
    table = Table(title=title, box=None, title_justify="left", pad_edge=False)
    for text in ("ranks", "nodes", "file", "access", *heads):
        table.add_column(text, justify="left" if text == "access" else "right", no_wrap=True)
    return table


def _start(ranks: int, nodes: int, size: int, access: str) -> list[str]:
    return [str(ranks), str(nodes), size_name(size), access]


def _times(found: dict[str, float]) -> str:
    return f"{found['ratio']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


def as_csv(found: Sequence[dict[str, Any]], system: str) -> str:
    """The published file's form: a column for each variant."""
    names = list(found[0]["variants"])
    lines = [",".join(["system", "ranks", "nodes", "file_gib", "op", *names])]
    for row in found:
        rates = [f"{row['variants'][name]['median'] / 2**20:.1f}" for name in names]
        start = [system, str(row["ranks"]), str(row["nodes"]), f"{row['bytes'] / 2**30:g}"]
        lines.append(",".join([*start, row["access"], *rates]))
    return "\n".join(lines) + "\n"
