"""What bench/onesided.py makes of samples: cells, ratios and verdicts, no MPI."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from support import onesided_table as table  # noqa: E402
from support.samples import as_rows, from_rows  # noqa: E402

SECONDS = {
    "OMPIO": (4.0, 2.0),
    "ROMIO": (2.0, 4.0),
    "PRELOADED": (1.0, 1.0),
    "ONESIDED": (2.5, 1.0),
    "ONESIDED:seam=shmem": (2.0, 2.0),
    "OMPIO:view": (9.0, 9.0),
    "ROMIO:view": (8.0, 8.0),
    "ONESIDED:view": (4.0, 4.0),
}


def sample(pattern: str, ranks: int, variant: str, number: int, **more: object) -> dict:
    phases = {"open": 0.0, "move": 0.0, "close": 0.0}
    write, read = SECONDS[variant]
    kind = table.kind(variant)
    return {
        "pattern": pattern, "record": 65536, "ranks": ranks, "bytes": ranks << 20,
        "variant": variant, "component": kind if kind in table.PEERS else "", "round": number,
        "write": {**phases, "total": write}, "read": {**phases, "total": read}, **more,
    }  # fmt: skip


@pytest.fixture
def samples() -> list[dict]:
    return [
        sample(pattern, ranks, variant, number)
        for ranks in (4, 16)
        for pattern in ("contiguous", "strided, a call each")
        for variant in SECONDS
        for number in range(3)
    ]


def test_each_of_ours_is_compared_with_the_best_of_the_same_kind_of_view(samples):
    found = table.cells(samples)
    assert [(c["ranks"], c["pattern"], c["view"], c["access"]) for c in found[:5]] == [
        (4, "contiguous", False, "write"),
        (4, "contiguous", False, "read"),
        (4, "contiguous", True, "write"),
        (4, "contiguous", True, "read"),
        (4, "strided, a call each", False, "write"),
    ]
    write, read, view = found[:3]
    assert (write["best"], read["best"], view["best"]) == ("ROMIO", "OMPIO", "ROMIO")
    figures = {name: ratio["ratio"] for name, ratio in write["ratios"].items()}
    assert figures == {"PRELOADED": 2.0, "ONESIDED": 0.8, "SHMEM": 1.0}
    assert read["ratios"]["ONESIDED"]["ratio"] == 2.0
    assert view["ratios"]["ONESIDED"]["ratio"] == 2.0


def test_a_target_is_reached_where_every_cell_reaches_it(samples):
    said = {text: (shown, yes) for text, shown, yes in table.verdicts(table.cells(samples))}
    shown, reached = said["one-sided, windows: large contiguous: write: 1"]
    assert shown.startswith("2 of 4 cells; least 0.80") and not reached
    assert shown.endswith("(contiguous 64 KiB, 4 ranks)")
    assert said["one-sided, windows: large contiguous: read: 1"][1]
    assert said["MPI-IO beneath `brigade mpiio`: 64 KiB strided: write: 1.5"][1]
    assert not said["one-sided, OpenSHMEM: 64 KiB strided: read: 1.5"][1]
    assert not any("4-D" in text for text in said), "what was not measured has no verdict"


def test_the_tables_have_a_column_for_each_of_ours_that_was_measured(samples, capsys):
    few = [s for s in samples if "shmem" not in s["variant"]]
    table.print_table(table.cells(few))
    head, _, first = capsys.readouterr().out.splitlines()[:3]
    assert "OpenSHMEM" not in head and head.count("|") == first.count("|")
    assert first == (
        "| 4 | contiguous | 64 KiB | 4.0 | no | write | 4,000.0 | 2,000.0 | 1,000.0 "
        "| 2.00 [2.00, 2.00] | 2,500.0 | 0.80 [0.80, 0.80] |"
    )


def test_samples_come_back_from_the_rows_in_which_they_are_kept(samples):
    assert from_rows(as_rows(samples, "bytes")) == samples
