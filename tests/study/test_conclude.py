"""Conclusions follow from the samples, and say when nothing follows."""

from __future__ import annotations

import random

import pytest

from brigade.study.conclude import conclude
from brigade.study.samples import Sample, Study, load, save


def study(seconds: dict[str, dict[int, list[float]]], **more) -> Study:
    """A study with these seconds: {variant: {ranks: [of each repeat]}}; the first is the base."""
    samples = [
        Sample(name, ranks, repeat, value)
        for name, widths in seconds.items()
        for ranks, values in widths.items()
        for repeat, value in enumerate(values)
    ]
    labels = {name: name.upper() for name in seconds}
    return Study("paths", ["app"], labels, next(iter(seconds)), None, samples, **more)


def said(*arguments, **more) -> str:
    return "\n".join(conclude(study(*arguments, **more)))


def test_a_clear_difference_is_named_with_its_ratio_and_interval():
    text = said({"slow": {1: [2.0, 2.1, 2.2], 4: [4.0, 4.1, 4.2]},
                 "quick": {1: [1.0, 1.05, 1.1], 4: [2.0, 2.05, 2.1]}})  # fmt: skip
    assert (
        "Quickest at 4 ranks: QUICK, 2.05 s (median); it takes 0.50 of the seconds of SLOW" in text
    )
    assert "QUICK takes less time than SLOW: 0.50 of its seconds (0.50 to 0.50, 6 pairs" in text
    assert "by chance at most once in 32 times" in text
    assert "SLOW 2.10 to 4.10 s (2.0 times)" in text


def test_no_difference_can_be_claimed_from_starts_that_vary():
    text = said({"one": {1: [1.0, 1.6, 0.8, 1.2, 1.1, 0.9]},
                 "other": {1: [1.1, 1.2, 0.9, 1.5, 0.8, 1.0]}})  # fmt: skip
    assert "No difference between OTHER and ONE can be claimed" in text
    assert "that it is quicker than" in text and "cannot be claimed" in text
    assert "takes less time" not in text


def test_too_few_pairs_are_said_to_be_too_few():
    text = said({"one": {1: [9.0, 9.0, 9.0]}, "other": {1: [1.0, 1.0, 1.0]}})
    assert "No difference between OTHER and ONE can be claimed" in text
    assert "at least 3 more pairs would be needed" in text


def test_what_takes_the_same_time_is_said_to():
    text = said({"one": {1: [1.0] * 8}, "other": {1: [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 1.0]}})
    assert "OTHER and ONE take the same time, within a few percent" in text


def test_the_slower_variant_takes_more():
    text = said({"one": {1: [1.0] * 6}, "other": {1: [3.0] * 6}})
    assert "OTHER takes more time than ONE: 3.00 of its seconds" in text
    assert "Quickest at 1 rank: ONE" in text


def test_widths_that_do_not_agree_are_told_apart():
    """Slower alone, quicker together: neither can be claimed over all."""
    text = said({"one": {1: [1.0, 1.1, 0.9], 4: [4.0, 4.1, 4.2]},
                 "other": {1: [1.5, 1.6, 1.4], 4: [2.0, 2.0, 2.1]}})  # fmt: skip
    assert "it is in all 3 pairs there, but the widths do not agree" in text
    assert "No difference between OTHER and ONE can be claimed" in text
    assert "at 4 ranks 0.50 (0.49 to 0.50, 3 pairs)" in text


def test_pairs_that_do_not_all_agree_are_counted():
    """Quicker in 9 of 10 pairs at 4 ranks: enough for a claim there."""
    many = [2.0, 2.1, 2.2, 2.3, 2.0, 2.1, 2.2, 2.3, 2.0, 4.3]
    text = said({"one": {1: [1.0] * 10, 4: [4.2] * 10},
                 "other": {1: [1.5 + 0.01 * i for i in range(10)], 4: many}})  # fmt: skip
    assert "it is in 9 of 10 pairs there, but the widths do not agree" in text


def test_growth_within_the_spread_is_no_growth():
    text = said({"one": {1: [1.0, 2.0, 1.1], 4: [1.5, 1.2, 1.6]}})
    assert "growth within the spread" in text
    assert "no visible growth" in said({"one": {1: [1.0, 1.1], 4: [1.05, 1.0]}})


def test_fewer_calls_without_a_gain_are_named():
    seconds = {
        "base": {1: [1.0, 1.1, 0.9, 1.0, 1.2, 0.8]},
        "links": {1: [1.1, 1.0, 0.9, 1.2, 1.0, 0.8]},
    }
    operations = {"base": {"calls": 5000, "failed": 4000}, "links": {"calls": 1000, "failed": 100}}
    text = said(seconds, operations=operations)
    assert "LINKS 1,000 (100 in vain), 0.20 of BASE" in text
    assert "Fewer calls, but no gain in time shown: LINKS" in text
    same = said({"base": {1: [1.0] * 6}, "links": {1: [1.01] * 6}}, operations=operations)
    assert "Fewer calls, and the same time: LINKS" in same
    gains = {"base": {1: [2.0] * 6}, "links": {1: [1.0] * 6}}
    assert "Fewer calls" not in said(gains, operations=operations)


def test_what_was_not_looked_at_is_named():
    assert "Not shown: more than 8 ranks" in said({"one": {8: [1.0]}})
    more = study({"one": {1: [1.0]}}, left_out={"shrunk": "there is no patchelf"})
    more.labels["shrunk"] = "shrunk RPATH"
    assert "shrunk RPATH was left out: there is no patchelf." in conclude(more)


def test_without_samples_nothing_is_concluded():
    assert conclude(Study("paths", ["app"], {"one": "One"}, "one", None)) == [
        "Nothing was measured."
    ]


def test_noise_is_seldom_taken_for_a_difference():
    """20 comparisons a study, all of them of nothing: at most one study in twenty may claim one."""
    chance = random.Random(5)
    wrong = 0
    for _ in range(200):
        made = study(
            {f"v{i}": {1: [chance.lognormvariate(0, 0.3) for _ in range(9)]} for i in range(4)}
        )
        wrong += any("takes less" in s or "takes more" in s for s in conclude(made))
    assert wrong <= 20  # expected: at most 10


def test_a_study_is_read_back_as_it_was_written(tmp_path):
    made = study({"one": {1: [1.0, 2.0]}}, operations={"one": {"calls": 3, "failed": 1}})
    save(made, tmp_path / "raw.json", conclude(made))
    assert load(tmp_path / "raw.json") == made


def test_a_file_that_is_no_study_is_refused(tmp_path):
    from brigade.errors import BrigadeError

    (tmp_path / "x.json").write_text('{"schema": 7}')
    with pytest.raises(BrigadeError, match="holds no study"):
        load(tmp_path / "x.json")
