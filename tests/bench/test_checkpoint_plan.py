"""What the checkpoint benchmark plans, and how it judges samples: no MPI."""

from __future__ import annotations

import pytest

from brigade.bench.checkpoint import align, plan, program, summary, table
from brigade.bench.checkpoint.measure import _of, _turns
from brigade.errors import UsageError


@pytest.mark.parametrize(
    ("ranks", "grid"),
    [(1, (1, 1, 1, 1)), (4, (1, 1, 2, 2)), (6, (1, 1, 2, 3)), (32, (2, 2, 2, 4))],
)
def test_a_grid_is_as_equal_as_can_be_and_cuts_the_last_dimension_first(ranks, grid):
    assert plan.grid(ranks, 4) == grid


def test_every_pattern_has_its_record_as_the_run_of_a_rank():
    for cell in plan.cells(plan.PATTERNS, plan.RECORDS, 8):
        assert cell.count[-1] * cell.element == cell.record
        assert cell.ranks == 8
    four = plan.cells(["4d"], [], 8)
    assert [cell.bytes for cell in four] == [8 * 192 * extent**4 for extent in (8, 16)]


def test_records_that_cut_the_signature_are_refused():
    with pytest.raises(UsageError, match="multiples of 8"):
        plan.cells(["strided"], [100], 4)


def test_ompio_and_romio_are_one_back_end_with_a_component_each():
    names = {"ompio": "ompio", "romio": "romio321"}
    ways = [plan.variant(text, names) for text in ("brigade:transport=rotate", "ompio", "romio")]
    assert [way.back_end for way in ways] == ["brigade", "mpiio", "mpiio"]
    assert [way.component for way in ways] == ["", "ompio", "romio321"]
    assert ways[0].hints == "transport=rotate"
    assert [way.name for way in _of(ways, "romio321")] == ["brigade:transport=rotate", "romio"]


def test_in_a_round_every_variant_of_every_cell_has_one_turn_in_an_order_of_its_own():
    import random

    cells = plan.cells(["contiguous", "strided"], plan.RECORDS, 4)
    ways = [plan.variant(text, {}) for text in ("brigade", "posix-fpp", "posix-shared")]
    chance = random.Random(1)
    rounds = [[(i, way.name) for _, i, way in _turns(cells, ways, chance)] for _ in range(2)]
    assert rounds[0] != rounds[1]
    for turns in rounds:
        assert sorted(turns) == sorted((i, way.name) for i in range(len(cells)) for way in ways)
        assert [i for i, _ in turns[::3]] == [i for i, _ in turns[2::3]], "variants are neighbours"


def sample(variant: str, number: int, seconds: float, component: str = "ompio") -> dict:
    phases = {"open": 0.1, "move": seconds, "close": 0.1, "total": seconds}
    cell = {"pattern": "strided", "record": 1024, "ranks": 4, "bytes": 4096, "header": 0}
    return {**cell, "variant": variant, "component": component, "round": number, "write": phases}


def test_a_ratio_is_of_the_jobs_that_had_both():
    samples = [sample("brigade", n, 1.0) for n in range(5)]
    samples += [sample("brigade", n, 100.0, "romio321") for n in range(5)]
    samples += [sample("ompio", n, 3.0) for n in range(5)]
    (cell,) = summary.summarize(samples)
    assert cell["ratios"]["ompio"]["write"] == {"ratio": 3.0, "low": 3.0, "high": 3.0}
    assert cell["variants"]["ompio"]["write"]["median"] == 3.0


def test_a_ratio_of_what_no_job_can_have_together_is_of_rounds():
    """One job has OMPIO or ROMIO."""
    samples = [sample("ompio", n, 1.0) for n in range(5)]
    samples += [sample("romio", n, 2.0, "romio321") for n in range(5)]
    ratio = summary.ratio(samples, "ompio", "romio", "write")
    assert ratio == {"ratio": 2.0, "low": 2.0, "high": 2.0}


def test_the_interval_of_a_ratio_holds_it_and_grows_with_the_noise():
    noise = [1.0, 2.0, 1.5, 3.0, 1.2, 1.1, 2.5]
    samples = [sample("brigade", n, 1.0) for n in range(7)]
    samples += [sample("ompio", n, value) for n, value in enumerate(noise)]
    ratio = summary.ratio(samples, "brigade", "ompio", "write")
    assert ratio["low"] < ratio["ratio"] == 1.5 < ratio["high"]


def test_the_spread_is_of_the_tenth_to_the_ninetieth_by_the_median():
    (cell,) = summary.summarize([sample("brigade", n, float(n)) for n in range(1, 12)])
    assert cell["variants"]["brigade"]["write"]["spread"] == pytest.approx((10 - 2) / 6)


def test_the_alignment_rows_are_as_published():
    samples = []
    for number in range(2):
        for header, seconds in ((0, 2.0), (256, 4.0)):
            one = sample("posix-shared", number, seconds)
            one.update(header=header, record=1_000_000, read={"total": 0.5})
            samples.append(one)
    rows = align.rates(samples, "xt5")
    assert align.as_csv(rows).splitlines() == [
        "system,variant,header,ranks,iteration,read_offset,read_plain,write_offset,write_plain",
        "xt5,posix-shared,256,4,0,8,8,1,2",
        "xt5,posix-shared,256,4,1,8,8,1,2",
    ]


def test_each_width_is_compared_with_its_own_blocks_without_a_header():
    samples = []
    for ranks in (4, 2):
        for header in (0, 256):
            one = {**sample("posix-shared", 0, 1.0), "ranks": ranks, "header": header}
            samples.append({**one, "record": 1_000_000, "read": {"total": 0.5}})
    rows = align.rates(samples, "here")
    found = [(row["ranks"], row["write_plain"], row["read_plain"]) for row in rows]
    assert found == [(2, 2.0, 4.0), (4, 4.0, 8.0)]


NAMES = ("brigade", "brigade:transport=rotate:checksums=no:segment=16M", "posix-fpp")


def test_no_number_or_name_of_a_table_is_cut_off(monkeypatch, capsys):
    """In 80 columns, as a pipe is taken for."""
    monkeypatch.setenv("COLUMNS", "80")
    samples = [sample(name, n, 1234.5 + n) for name in NAMES for n in range(5)]
    settings = {"sync": True, "publish": True}
    table.print_report(
        {"cells": summary.summarize(samples), "settings": settings, "absent": {"hdf5": "none"}}
    )
    rates = [
        {**one, "header": header, "read": one["write"]} for one in samples for header in (0, 8)
    ]
    align.print_table(align.rates(rates, "a system"), 1 << 20)
    said = capsys.readouterr().out
    assert "…" not in said and all(name in said for name in NAMES)
    assert "1,235,500.0-1,237,500.0" in said and "write_offset" in said
    assert "1.00 [1.00, 1.00]" in said


def test_a_header_moves_every_block_of_a_shared_file():
    plain, offset = align.cells([256], 1 << 20, 4)
    assert (plain.header, offset.header) == (0, 256)
    assert offset.bytes - plain.bytes == 4 * 256


@pytest.mark.parametrize(("opened", "taken"), [("Open MPI 4.1.4", True), ("", False)])
def test_an_hdf5_of_another_mpi_is_not_taken(opened, taken, tmp_path, monkeypatch):
    (tmp_path / "H5pubconf.h").write_text("#define H5_HAVE_PARALLEL 1\n")
    said = f"-I{tmp_path} -L/usr/lib/hdf5/openmpi -lhdf5"
    answers = {"hdf5": said, "--showme:version": opened}
    monkeypatch.setattr(program, "says", lambda words: answers.get(words[-1], ""))
    peer = program.parallel_hdf5("mpicc")
    assert (bool(peer.words), bool(peer.absent)) == (taken, not taken)
