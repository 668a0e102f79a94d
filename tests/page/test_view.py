"""What the reports show adds up, and words stay honest."""

from __future__ import annotations

import pytest
import startups
from hypothesis import given
from hypothesis import strategies as some

from brigade.page import forest, view
from brigade.page.chart import chart, nice
from brigade.printable import size
from brigade.profile import words
from brigade.profile.profile import Timeline
from brigade.profile.sums import Sums


def test_the_heat_map_adds_up_to_what_each_entry_wasted():
    profile = startups.numpy()
    heat = view.heat(profile, most_rows=6, most_names=4)
    for row in heat.rows:
        assert sum(row.calls) + row.rest == row.entry.wasted
    wasted = sum(entry.wasted for entry in profile.searches)
    assert sum(row.entry.wasted for row in heat.rows) + heat.folded_wasted == wasted
    assert [row.entry.wasted for row in heat.rows] == sorted(
        (row.entry.wasted for row in heat.rows), reverse=True
    )


def test_a_column_of_the_heat_map_is_sought_in_more_than_one_place():
    entries = [
        startups.entry("sys.path", "/mnt/site/a", 9, names={"common": 2, "alone": 7}),
        startups.entry("sys.path", "/mnt/site/b", 5, names={"common": 1, "lonely": 4}),
    ]
    heat = view.heat(startups.quiet(searches=entries))
    assert heat.names == ["common"]
    assert [(row.calls, row.rest, row.others) for row in heat.rows] == [
        ([2], 7, "alone 7"),
        ([1], 4, "lonely 4"),
    ]


def test_phases_add_up_to_all_calls_of_ranks():
    sums = Sums(startups.numpy(3))
    rows = view.phases(sums)
    assert sum(row.shared + row.failed + row.rest for row in rows) == sums.calls()


@given(some.lists(some.integers(-1, 30), max_size=31))
def test_a_tree_keeps_its_sums_whatever_is_folded_and_whoever_loads_whom(loaders):
    tree = [
        startups.node("module", f"m{i}", loader, calls=i + 1, wasted=i)
        for i, loader in enumerate(loaders)
    ]
    rows = list(forest.rows(tree, most=3))
    roots = [row for row in rows if row.depth == 0]
    assert sum(row.calls for row in roots) == sum(node.calls for node in tree)
    assert sum(row.wasted for row in roots) == sum(node.wasted for node in tree)
    assert sum(1 for row in rows if row.children) == sum(row.last for row in rows)


@given(
    some.dictionaries(
        some.text(max_size=3), some.lists(some.integers(0, 9), max_size=900), max_size=9
    )
)
def test_a_chart_loses_no_operation(kinds):
    drawn = chart(Timeline("calls", 0.1, kinds))
    assert drawn.total == sum(sum(values) for values in kinds.values())
    assert len(drawn.series) <= 6
    assert drawn.peak <= drawn.top * 1.001


@given(some.floats(1e-3, 1e9))
def test_an_axis_ends_at_a_round_number_not_far_above(value):
    assert value <= nice(value) * 1.001 <= 2.1 * value


@pytest.mark.parametrize(
    "number, text",
    [(0, "0"), (2.5, "2.5"), (2.0, "2"), (9_999, "9,999"), (12_345, "12.3 thousand")]
    + [(231_000, "231 thousand"), (999_700, "1 million"), (5_430_000, "5.43 million")]
    + [(162_000_000, "162 million"), (2.0e9, "2 billion")],
)
def test_large_numbers_have_three_figures(number, text):
    assert words.big(number) == text


@pytest.mark.parametrize(
    "part, whole, text",
    [(0, 9, "0%"), (1, 9000, "under 1%"), (8999, 9000, "99%"), (9, 9, "100%"), (0, 0, "0%")],
)
def test_a_share_is_never_rounded_to_nothing_or_to_all(part, whole, text):
    assert words.percent(part, whole) == text


def test_times_and_sizes_have_the_unit_that_suits():
    assert [words.seconds(n) for n in (0.0000123, 0.0042, 0.34, 1.25, 312.0)] == [
        *("12 µs", "4.2 ms", "340 ms", "1.25 s", "312 s")
    ]
    assert [size(n) for n in (12, 4096, 88_200_000)] == ["12 B", "4.0 KiB", "84.1 MiB"]


def test_a_look_up_asks_by_path_or_lists_a_folder():
    table = """
    imports /mnt/site stat no yes no 10 1 0
    imports /mnt/site stat no no no 200 1 0
    imports /mnt/site list no no no 4 1 0
    imports /mnt/site read no no no 500 1 0
    user /mnt/site open no yes no 70 1 0
    imports / stat no yes no 900 1 0
    """
    sums = Sums(startups.quiet(2, cells=startups.cells(table, 2)))
    assert sums.lookups() == 2 * 14 and sums.each_rank() == {0: 14, 1: 14}
    assert sums.lookups(phase="user") == 2 * 70


def test_modules_that_load_each_other_hang_below_one_of_them():
    ring = [startups.node("module", f"m{i}", (i + 1) % 4, calls=1) for i in range(4)]
    rows = list(forest.rows(ring))
    assert [row.depth for row in rows] == [0, 1, 2, 3] and rows[0].calls == 4
