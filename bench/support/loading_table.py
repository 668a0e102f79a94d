"""The table of the loading benchmark: medians, and ratios of runs that stood next to each other."""

from __future__ import annotations

import statistics
from typing import Any

from support.samples import median

PHASES = {"pynamic": ("import", "visit"), "cload": ("startup",)}


def ratio(samples: list[dict[str, Any]], key: str, world: str, ranks: int) -> float | None:
    """Median over the repeats of Brigade's `key` to the warm local disk's."""
    by_variant: dict[str, list[float]] = {"brigade": [], "local": []}
    for sample in samples:
        if (sample["world"], sample["ranks"]) == (world, ranks) and sample["variant"] in by_variant:
            by_variant[sample["variant"]].append(sample[key])
    pairs = [
        mine / local for mine, local in zip(by_variant["brigade"], by_variant["local"]) if local
    ]
    return statistics.median(pairs) if pairs else None


def print_table(samples: list[dict[str, Any]]) -> None:
    """One line for each phase of each world at each width."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="seconds, median rank, medians of the repeats", box=None)
    for name in (
        "world",
        "ranks",
        "phase",
        "direct",
        "local",
        "Brigade",
        "Brigade\n/ local",
        "requests\ndirect",
        "requests\nBrigade",
        "memory\n/ loaded",
    ):
        table.add_column(name, justify="right")
    for world in dict.fromkeys(sample["world"] for sample in samples):
        for ranks in sorted({s["ranks"] for s in samples if s["world"] == world}):
            for phase in PHASES[world.partition("-")[0]]:
                table.add_row(*_row(samples, world, ranks, phase))
    Console(width=120).print(table)


def _row(samples: list[dict[str, Any]], world: str, ranks: int, phase: str) -> list[str]:
    def of(key: str, variant: str) -> float | None:
        return median(samples, key, world=world, ranks=ranks, variant=variant)

    node, loaded = of("node_bytes", "brigade"), of("loaded_bytes", "brigade")
    return [
        world,
        str(ranks),
        phase,
        *(_number(of(phase, variant), ".3f") for variant in ("direct", "local", "brigade")),
        _number(ratio(samples, phase, world, ranks), ".3f"),
        _number(of("requests", "direct"), ",.0f"),
        _number(of("requests", "brigade"), ",.0f"),
        _number(node / loaded if node and loaded else None, ".3f"),
    ]


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
